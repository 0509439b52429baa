"""Binary programs: the 20-byte record and the ``core_N.pim`` container."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from raptor_core.diagnostics import RaptorError

Records = npt.NDArray[np.void]
"""A program: a one-dimensional array of :data:`RECORD`."""

RECORD = np.dtype(
    [
        ("op", "u1"),
        ("rd", "u1"),
        ("rs1", "u1"),
        ("flags", "u1"),
        ("r2_or_imm", "<i4"),
        ("generic1", "<i4"),
        ("generic2", "<i4"),
        ("generic3", "<i4"),
    ]
)
"""One instruction, 20 bytes, little-endian. What a field means depends on the opcode (raptor_pim.isa.opcodes)."""

MAGIC = b"PIMB"
VERSION = 1
_HEADER = struct.Struct("<4sII")


def empty_program(count: int = 0) -> Records:
    """``count`` records of zeros (that is, ``nop``)."""
    return np.zeros(count, dtype=RECORD)


def encode_program(records: Records) -> bytes:
    """The bytes of a ``core_N.pim`` file."""
    if records.dtype != RECORD or records.ndim != 1:
        raise TypeError("a program is a one-dimensional array of RECORD")
    return _HEADER.pack(MAGIC, VERSION, records.size) + np.ascontiguousarray(records).tobytes()


def decode_program(data: bytes, *, where: str) -> Records:
    """The records of a ``core_N.pim`` file, read-only; nothing is copied.

    ``where`` names the file in messages. Raises RaptorError for a bad header or a count that does not fit the size.
    The instructions themselves are not looked at: see raptor_pim.isa.validate.
    """
    if len(data) < _HEADER.size:
        raise _broken(where, f"it has {len(data)} bytes, fewer than the {_HEADER.size} of a header")
    magic, version, count = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise _broken(where, f"it starts with {magic!r} and not with {MAGIC!r}")
    if version != VERSION:
        raise _broken(where, f"its version is {version}; this Raptor reads version {VERSION}")
    body = len(data) - _HEADER.size
    if body != count * RECORD.itemsize:
        raise _broken(where, f"its header counts {count} instructions of {RECORD.itemsize} bytes; {body} bytes follow")
    return np.frombuffer(data, dtype=RECORD, offset=_HEADER.size)


def _broken(where: str, reason: str) -> RaptorError:
    return RaptorError(
        "bad-program-file",
        "not a program file",
        where=where,
        reason=reason,
        hint="compile again; the file may be cut off or of another tool",
    )
