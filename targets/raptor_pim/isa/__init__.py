"""The instruction set of the PIM target: opcodes, records, assembler, disassembler and checks."""

from raptor_pim.isa.assembler import assemble, to_json
from raptor_pim.isa.disassembler import disassemble, disassemble_at
from raptor_pim.isa.opcodes import BY_MNEMONIC, OPCODES, Kind, Opcode, OpcodeInfo
from raptor_pim.isa.records import RECORD, Records, decode_program, empty_program, encode_program
from raptor_pim.isa.validate import Violation, find_violations, validate_programs

__all__ = [
    "BY_MNEMONIC",
    "OPCODES",
    "RECORD",
    "Kind",
    "Opcode",
    "OpcodeInfo",
    "Records",
    "Violation",
    "assemble",
    "decode_program",
    "disassemble",
    "disassemble_at",
    "empty_program",
    "encode_program",
    "find_violations",
    "to_json",
    "validate_programs",
]
