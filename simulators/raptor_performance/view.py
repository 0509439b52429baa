"""The timing view: a float32 program as the 8-bit program that published figures speak of.

Element widths become 8 bits, an element one byte: register values and addresses, and the byte counts and offsets of
transfers, are divided by four; lengths of vectors stay. Values that are no addresses (strides, bounds) share
registers with addresses and are divided too; they matter for nothing in this model.

Softmax has no timing in this model. Whoever wants to time a program that has it says what to take its time from.
"""

from __future__ import annotations

import numpy as np

from raptor_pim.isa.opcodes import OPCODES, Kind, Opcode
from raptor_pim.isa.records import Records

ELEMENT_BYTES = 4
_VIEW_BITS = 8

_TRANSFERS = [int(info.opcode) for info in OPCODES if info.kind in (Kind.COPY, Kind.FILL, Kind.PEER)]
_ADDENDS = [int(Opcode.SLDI), int(Opcode.SADDI)]
_BYTE_OFFSETS = [*_TRANSFERS, int(Opcode.SLD)]


def softmax_as(records: Records, mnemonic: str | None) -> Records:
    """The records with ``mnemonic`` in place of every softmax, for timing only; None changes nothing.

    Raises KeyError when it is no instruction's name. Its fields must be those of a softmax (see
    raptor_performance.plugin.SOFTMAX_STAND_INS).
    """
    found = records["op"] == Opcode.VSOFTMAX
    if mnemonic is None or not found.any():
        return records
    view = records.copy()
    view["op"][found] = Opcode[mnemonic.upper()]
    return view


def timing_view(records: Records) -> Records:
    """The records of one core in the timing view."""
    view = records.copy()
    op = view["op"]
    widths = op == Opcode.SETBW
    view["generic1"][widths] = _VIEW_BITS
    view["generic2"][widths] = _VIEW_BITS
    values = np.isin(op, _ADDENDS)
    view["r2_or_imm"][values] //= ELEMENT_BYTES
    transfers = np.isin(op, _TRANSFERS)
    # A part of an element is a byte, too.
    view["generic3"][transfers] = -(-view["generic3"][transfers] // ELEMENT_BYTES)
    offsets = np.isin(op, _BYTE_OFFSETS)
    view["generic2"][offsets] //= ELEMENT_BYTES
    return view
