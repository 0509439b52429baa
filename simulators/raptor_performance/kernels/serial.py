"""The simulation of chips whose cores have one instruction in flight (``rob_size`` 1), compiled.

With one instruction at a time nothing else touches a core's local memory or its switch, so a core runs ahead on its
own until it needs another party: the partner of a send or recv, a token, or the host memory. The two ends of a
transfer settle it as soon as both have come to it, whichever is looked at first. Only what depends on order in time,
requests to the host memory and tokens, goes through one queue of events. Whatever a core does after an event happens
later than the event, so the queue never gets an earlier one. Equal times go by core number.

Arguments that several functions share:

- ``core`` [cores, CORE_COLUMNS] and ``chip`` [CHIP_COLUMNS], int64: the state (raptor_performance.kernels.constants);
- ``program``: a tuple of ``words`` [n, 5] int32, the records of all cores; ``first`` [cores + 1], where each core's
  start; ``group_first`` [cores + 1] and ``group_size``, the crossbars of each core's groups;
- ``net``: a tuple of ``latency`` (ps) and ``flit_pj`` [cores + 1, cores + 1], of one flit, the host last;
- ``work``: a tuple of ``stack`` [cores + 1], cores ready to run; ``heap``, the events; ``tokens`` [cores, 32], the
  event registers; ``energy`` [cores], pJ of each core's messages; ``trace`` [rows, 4], filled until full;
- ``t``: a Timing.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from raptor_performance.kernels import constants as k
from raptor_performance.kernels.events import (
    HOST,
    RESUME,
    TOKEN,
    drop_first,
    event_tag,
    push,
    tag_core,
    tag_detail,
    tag_kind,
)
from raptor_performance.kernels.formulas import (
    REQUEST_HOLD,
    accesses,
    compute_ps,
    memory_ps,
    own_edge,
    passes,
    product_bytes,
    read_vectors,
    woken_edge,
    written_bytes,
)
from raptor_performance.kernels.messages import message, trace_row

_REGISTER_BITS = 5
_BLOCKED = -1


@njit(cache=True)
def simulate_serial(program: Any, net: Any, work: Any, core: Any, chip: Any, looping: bool, t: Any) -> None:
    """Runs all programs to their end, or to ``t.end``; the results are in ``core``.

    With ``looping`` streams start again at their end. Tables are given zeroed, except STATUS and STAND.
    """
    stack, heap = work[0], work[1]
    while True:
        while chip[k.DEPTH] > 0:
            chip[k.DEPTH] -= 1
            _run(stack[chip[k.DEPTH]], program, net, work, core, chip, looping, t)
        if chip[k.EVENTS] == 0 or heap[0, 0] > t.end:
            return
        time = heap[0, 0]
        tag = heap[0, 1]
        drop_first(heap, chip[k.EVENTS])
        chip[k.EVENTS] -= 1
        kind = tag_kind(tag)
        if kind == TOKEN:
            _token(time, tag, work, core, chip, t)
        elif kind == HOST:
            _host(time, tag_core(tag), program[0], program[1], work, core, chip, t)
        else:
            stack[chip[k.DEPTH]] = tag_core(tag)
            chip[k.DEPTH] += 1


@njit(cache=True)
def _run(c: int, program: Any, net: Any, work: Any, core: Any, chip: Any, looping: bool, t: Any) -> None:
    """Runs core ``c`` until it is held, ends, or time is over."""
    words, first, group_first, group_size = program
    trace = work[4]
    row = core[c]
    groups = group_size[group_first[c] : group_first[c + 1]]
    base = first[c]
    count = first[c + 1] - base
    # In a round the last instruction is fetched when the one two slots before it comes to the dispatcher.
    signal = (count - 3) % count if looping else -1
    end_edge = t.end // t.period
    pc = row[k.PC]
    stand = row[k.STAND]
    room = row[k.ROOM]
    while True:
        if pc == count:
            _end(row, room, words[base + count - 1, 0] & 255, t)
            break
        i = base + pc
        op = words[i, 0] & 255
        edge = max(stand, room) + 1
        # A product waits one more cycle at its crossbars, while the next instruction comes to the dispatcher.
        placed = 1 if op == k.MVMUL else 0
        if edge + placed > end_edge:
            row[k.STATUS] = k.STOPPED
            break
        if op == k.NOP:
            row[k.STATUS] = k.UNRETIRED
            break
        stand = edge
        edge += placed
        here = pc
        pc = _next_pc(pc, count, signal, row)
        if op < k.FIRST_REAL:
            if op == k.SETBW:
                row[k.IN_BITS] = words[i, 2]
                row[k.OUT_BITS] = words[i, 3]
            continue
        start = edge * t.period
        if op <= k.LAST_VECTOR or op == k.LMV or op == k.LLDI:
            finish = _local(op, words, i, start, row, groups, t)
            room = max(own_edge(finish, t.period), edge + 1) + 1
            trace_row(trace, chip, c, here, start, finish)
        else:
            row[k.HELD_PC] = here
            row[k.SINCE] = start
            row[k.EDGE] = edge
            room = _external(op, words[i], c, net, work, core, chip, t)
            if room == _BLOCKED:
                break
    row[k.PC] = pc
    row[k.STAND] = stand
    if room != _BLOCKED:
        row[k.ROOM] = room


@njit(cache=True, inline="always")
def _next_pc(pc: int, count: int, signal: int, row: Any) -> Any:
    """The instruction after ``pc``; streams that repeat have a ``signal`` and count their rounds."""
    pc += 1
    if signal >= 0:
        if pc == count:
            pc = 0
        if pc == signal:
            row[k.ROUNDS] += 1
    return pc


@njit(cache=True)
def _end(row: Any, room: int, last_op: int, t: Any) -> None:
    """The core has no more instructions."""
    row[k.STATUS] = k.FINISHED
    row[k.FINISH] = room * t.period
    if last_op < k.FIRST_REAL:
        row[k.STATUS] = k.UNRETIRED
    elif row[k.FINISH] > t.end:
        row[k.STATUS] = k.STOPPED


@njit(cache=True, inline="always")
def _local(op: int, words: Any, i: int, start: int, row: Any, groups: Any, t: Any) -> Any:
    """An instruction that only needs its own core; gives when it ends."""
    in_bytes = (row[k.IN_BITS] + 7) >> 3
    out_bytes = (row[k.OUT_BITS] + 7) >> 3
    if op == k.MVMUL:
        crossbars = groups[words[i, 3]]
        slices = passes(row[k.IN_BITS], t)
        reads = accesses(t.rows * in_bytes * 8, t.local_width)
        writes = accesses(product_bytes(words[i, 1], crossbars, out_bytes, t), t.local_width)
        middle = start + memory_ps(reads, t.local_read, t.local_period) + compute_ps(slices, t)
        row[k.PASSES] += slices * crossbars
        row[k.PRODUCTS] += 1
        column = k.TIME_PRODUCT
    elif op <= k.LAST_VECTOR:
        length = words[i, 4]
        reads = accesses(length * in_bytes, t.local_width)
        steps = accesses(length, t.vector_width)
        middle = start + read_vectors(op) * memory_ps(reads, t.local_read, t.local_period) + steps * t.vector_step
        reads *= read_vectors(op)
        writes = accesses(written_bytes(op, length, in_bytes, out_bytes), t.local_width)
        row[k.VECTOR_STEPS] += steps
        column = k.TIME_VECTOR
    else:
        writes = accesses(words[i, 4], t.local_width)
        reads = writes if op == k.LMV else 0
        middle = start + memory_ps(reads, t.local_read, t.local_period)
        column = k.TIME_MOVE
    row[k.LOCAL_READS] += reads
    finish = middle + memory_ps(writes, t.local_write, t.local_period)
    # A move asks for its write at once, the others when their result is there.
    if middle <= t.end or column == k.TIME_MOVE:
        row[k.LOCAL_WRITES] += writes
    row[column] += min(finish, t.end) - start
    return finish


@njit(cache=True)
def _external(op: int, record: Any, c: int, net: Any, work: Any, core: Any, chip: Any, t: Any) -> Any:
    """Starts an instruction that needs another party; gives the cycle in which there is room again, or _BLOCKED."""
    row = core[c]
    if op == k.SYNC:
        return _sync(record, c, net, work, core, chip, t)
    if op == k.WAIT:
        return _wait(record, row, work[2][c], work[4], chip, c, t)
    if op == k.SEND or op == k.RECV:
        return _meet(op, record, c, net, work, core, chip, t)
    _ask_host(op, record, c, net, work, core, chip, t)
    return _BLOCKED


@njit(cache=True)
def _sync(record: Any, c: int, net: Any, work: Any, core: Any, chip: Any, t: Any) -> Any:
    row = core[c]
    arrive = message(c, record[1], 1, row[k.SINCE], net, work[3], core, t)
    push(work[1], chip[k.EVENTS], arrive, event_tag(c, TOKEN, (record[1] << _REGISTER_BITS) | record[2]))
    chip[k.EVENTS] += 1
    row[k.TOKENS] += 1
    row[k.TIME_SYNC] += t.period
    trace_row(work[4], chip, c, row[k.HELD_PC], row[k.SINCE], row[k.SINCE] + t.period)
    room = woken_edge(row[k.SINCE] + t.period, t.period) + 1
    if row[k.TOKENS] < k.TOKEN_BURST:
        return room
    # All that this core does from here on goes through its switch, behind the last token: nothing is late if it
    # pauses until then.
    push(work[1], chip[k.EVENTS], arrive, event_tag(c, RESUME, 0))
    chip[k.EVENTS] += 1
    row[k.ROOM] = room
    return _BLOCKED


@njit(cache=True)
def _wait(record: Any, row: Any, tokens: Any, trace: Any, chip: Any, c: int, t: Any) -> Any:
    if tokens[record[2]] >= record[3]:
        tokens[record[2]] -= record[3]
        trace_row(trace, chip, c, row[k.HELD_PC], row[k.SINCE], row[k.SINCE])
        return woken_edge(row[k.SINCE], t.period) + 1
    row[k.STATUS] = k.WAITING
    row[k.PEER] = record[2]
    row[k.SIZE] = record[3]
    return _BLOCKED


@njit(cache=True)
def _meet(op: int, record: Any, c: int, net: Any, work: Any, core: Any, chip: Any, t: Any) -> Any:
    """A send or recv: settles the transfer if the partner is there already."""
    row = core[c]
    partner = record[1]
    row[k.PEER] = partner
    row[k.SIZE] = record[4]
    if op == k.SEND:
        row[k.ARRIVAL] = message(c, partner, 1, row[k.SINCE], net, work[3], core, t)
        row[k.SWITCH_FREE] += REQUEST_HOLD
        row[k.STATUS] = k.SENDING
        if core[partner, k.STATUS] != k.RECEIVING or core[partner, k.PEER] != c:
            return _BLOCKED
        settled = _settle(c, partner, net, work, core, chip, t)
    else:
        row[k.STATUS] = k.RECEIVING
        if core[partner, k.STATUS] != k.SENDING or core[partner, k.PEER] != c:
            return _BLOCKED
        settled = _settle(partner, c, net, work, core, chip, t)
    if not settled:
        return _BLOCKED
    work[0][chip[k.DEPTH]] = partner
    chip[k.DEPTH] += 1
    return row[k.ROOM]


@njit(cache=True)
def _settle(s: int, r: int, net: Any, work: Any, core: Any, chip: Any, t: Any) -> Any:
    """A transfer whose two ends are there: grant, read, data, write. False when time is over before the grant."""
    energy, trace = work[3], work[4]
    sender, receiver = core[s], core[r]
    grant = message(r, s, 1, max(sender[k.ARRIVAL], receiver[k.SINCE]), net, energy, core, t)
    if grant > t.end:
        return False
    reads = accesses(sender[k.SIZE], t.local_width)
    sender[k.LOCAL_READS] += reads
    sent = grant + memory_ps(reads, t.local_read, t.local_period)
    data = message(s, r, sender[k.SIZE], sent, net, energy, core, t)
    writes = accesses(receiver[k.SIZE], t.local_width)
    if data <= t.end:
        receiver[k.LOCAL_WRITES] += writes
    received = data + memory_ps(writes, t.local_write, t.local_period)
    sender[k.ROOM] = max(own_edge(sent, t.period), sender[k.EDGE] + 1) + 1
    receiver[k.ROOM] = max(own_edge(received, t.period), receiver[k.EDGE] + 1) + 1
    sender[k.STATUS] = k.RUNNING
    receiver[k.STATUS] = k.RUNNING
    sender[k.TIME_PEER_WAIT] += grant - sender[k.SINCE]
    sender[k.TIME_PEER] += min(sent, t.end) - grant
    receiver[k.TIME_PEER_WAIT] += min(data, t.end) - receiver[k.SINCE]
    receiver[k.TIME_PEER] += min(received, t.end) - min(data, t.end)
    trace_row(trace, chip, s, sender[k.HELD_PC], sender[k.SINCE], sent)
    trace_row(trace, chip, r, receiver[k.HELD_PC], receiver[k.SINCE], received)
    return True


@njit(cache=True)
def _ask_host(op: int, record: Any, c: int, net: Any, work: Any, core: Any, chip: Any, t: Any) -> None:
    row = core[c]
    row[k.STATUS] = k.AT_HOST
    row[k.SIZE] = record[4]
    ready = row[k.SINCE]
    size = 1
    if op == k.ST:
        size = record[4]
        reads = accesses(size, t.local_width)
        row[k.LOCAL_READS] += reads
        ready += memory_ps(reads, t.local_read, t.local_period)
    arrive = message(c, core.shape[0], size, ready, net, work[3], core, t)
    push(work[1], chip[k.EVENTS], arrive, event_tag(c, HOST, 0))
    chip[k.EVENTS] += 1


@njit(cache=True)
def _host(time: int, c: int, words: Any, first: Any, work: Any, core: Any, chip: Any, t: Any) -> None:
    """The request of core ``c`` reaches the host memory."""
    row = core[c]
    size = row[k.SIZE]
    count = accesses(size, t.host_width)
    begin = max(time, chip[k.HOST_FREE])
    if words[first[c] + row[k.HELD_PC], 0] & 255 == k.LD:
        row[k.HOST_READS] += count
        done = begin + memory_ps(count, t.host_read, t.host_period)
        writes = accesses(size, t.local_width)
        if done <= t.end:
            row[k.LOCAL_WRITES] += writes
        finish = done + memory_ps(writes, t.local_write, t.local_period)
        row[k.ROOM] = max(own_edge(finish, t.period), row[k.EDGE] + 1) + 1
    else:
        row[k.HOST_WRITES] += count
        done = begin + memory_ps(count, t.host_write, t.host_period)
        finish = done
        row[k.ROOM] = woken_edge(finish, t.period) + 1
    chip[k.HOST_FREE] = done
    row[k.SWITCH_FREE] = done
    row[k.TIME_HOST] += min(finish, t.end) - row[k.SINCE]
    _go_on(c, finish, work, core, chip)


@njit(cache=True)
def _token(time: int, tag: int, work: Any, core: Any, chip: Any, t: Any) -> None:
    """A token arrives."""
    tokens = work[2]
    core[tag_core(tag), k.TOKENS] -= 1
    c = tag_detail(tag) >> _REGISTER_BITS
    register = tag_detail(tag) & (k.EVENT_REGISTERS - 1)
    row = core[c]
    tokens[c, register] += 1
    if row[k.STATUS] == k.WAITING and row[k.PEER] == register and tokens[c, register] >= row[k.SIZE]:
        tokens[c, register] -= row[k.SIZE]
        finish = max(time, row[k.SINCE])
        row[k.ROOM] = woken_edge(finish, t.period) + 1
        row[k.TIME_TOKEN] += finish - row[k.SINCE]
        _go_on(c, finish, work, core, chip)


@njit(cache=True)
def _go_on(c: int, finish: int, work: Any, core: Any, chip: Any) -> None:
    """The instruction that held core ``c`` ended at ``finish``."""
    stack, trace = work[0], work[4]
    core[c, k.STATUS] = k.RUNNING
    trace_row(trace, chip, c, core[c, k.HELD_PC], core[c, k.SINCE], finish)
    stack[chip[k.DEPTH]] = c
    chip[k.DEPTH] += 1
