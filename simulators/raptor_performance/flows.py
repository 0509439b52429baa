"""Which instructions of a run belong together: a send and its receive, a token and the wait that takes it."""

from __future__ import annotations

import numpy as np

from raptor_performance.program import Program
from raptor_performance.traced import UNITS, Numbers, Traced
from raptor_pim.isa.opcodes import Opcode

_SEND, _RECEIVE, _TOKEN = (UNITS.index(unit) for unit in ("send", "receive", "token"))


def message_flows(traced: Traced, program: Program) -> Numbers:
    """A number that a send and its receive share, -1 for other instructions: the n-th message between two cores."""
    flows = np.full(traced.core.size, -1, dtype=np.int64)
    peer = _field(traced, program, "r2_or_imm")
    cores = len(program.programs)
    for unit, (source, target) in ((_SEND, (traced.core, peer)), (_RECEIVE, (peer, traced.core))):
        rows = np.flatnonzero(traced.unit == unit)
        pair = source[rows] * cores + target[rows]
        by_pair = np.lexsort((traced.start[rows], pair))
        flows[rows[by_pair]] = pair[by_pair] * (1 << 24) + _rank(pair[by_pair])
    return flows


def partners(traced: Traced, program: Program) -> Numbers:
    """For a send and a receive the row of the other one, for a wait that of the sync which brought its last token.

    -1 for all other instructions, and where there is none.
    """
    found = np.full(traced.core.size, -1, dtype=np.int64)
    flows = message_flows(traced, program)
    sends, receives = (np.flatnonzero(traced.unit == unit) for unit in (_SEND, _RECEIVE))
    _, send, receive = np.intersect1d(flows[sends], flows[receives], assume_unique=True, return_indices=True)
    found[sends[send]] = receives[receive]
    found[receives[receive]] = sends[send]
    tokens = np.flatnonzero(traced.unit == _TOKEN)
    if tokens.size:
        waits, syncs = _token_partners(traced, program, tokens)
        found[waits] = syncs
    return found


def _token_partners(traced: Traced, program: Program, tokens: Numbers) -> tuple[Numbers, Numbers]:
    """Waits, and for each the sync that brought the last of the tokens that it and those before it took."""
    op = _field(traced, program, "op")[tokens]
    register = _field(traced, program, "generic1")[tokens]
    holder = np.where(op == Opcode.SYNC, _field(traced, program, "r2_or_imm")[tokens], traced.core[tokens])
    place = holder * (1 << 32) + register
    syncs, waits = (np.flatnonzero(op == opcode) for opcode in (Opcode.SYNC, Opcode.WAIT))
    syncs = syncs[np.lexsort((traced.end[tokens[syncs]], place[syncs]))]
    waits = waits[np.lexsort((traced.start[tokens[waits]], place[waits]))]
    value = _field(traced, program, "generic2")[tokens[waits]]
    total = np.cumsum(value)
    first = np.flatnonzero(np.diff(place[waits], prepend=-1))
    taken = total - np.repeat((total - value)[first], np.diff(np.append(first, waits.size)))
    begin, end = (np.searchsorted(place[syncs], place[waits], side) for side in ("left", "right"))
    brought = begin + taken - 1
    known = (value > 0) & (brought < end)
    return tokens[waits[known]], tokens[syncs[brought[known]]]


def _field(traced: Traced, program: Program, name: str) -> Numbers:
    """A field of the record of every traced instruction."""
    values = np.zeros(traced.core.size, dtype=np.int64)
    for core in np.unique(traced.core).tolist():
        own = traced.core == core
        values[own] = program.programs[core][name][traced.pc[own]]
    return values


def _rank(keys: Numbers) -> Numbers:
    """The place of each element among those with its key; ``keys`` is sorted."""
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    return np.arange(keys.size) - np.repeat(begins, np.diff(np.append(begins, keys.size)))
