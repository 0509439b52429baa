"""The simulation of chips whose cores have several instructions in flight (any ``rob_size``), compiled.

Each core does its own things in order of time: its units come to their next phase, an instruction leaves the
dispatcher, a product leaves its waiting place, the dispatcher is looked at. Units meet only in the core's local
memory, which serves them in order of request, so an access is settled when it is asked for. A core runs ahead of the
others while its transfer unit depends on nobody. When it does (a partner, a token, the host memory), the core is kept
in step with the rest of the chip, for the answer may come at any time.

At one instant: phases that end by their own timer, the transfer and vector unit's before the crossbars', then what
the network brings, then starts, the transfer and vector unit's before the crossbars', then the dispatcher. Equal
times of different cores go by core number.

Arguments are those of raptor_performance.kernels.serial; ``row`` is a row of ``core``, which here goes on with the
core's registers, dispatcher and reorder buffer; ``own`` is a tuple of ``group_free``, the edge from which each group
of the chip is ready, and ``tree``, keys of cores kept in step.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from raptor_performance.kernels import constants as k
from raptor_performance.kernels.decode import apply_scalar, conflict, decode_ranges
from raptor_performance.kernels.earliest import first_core, set_key
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

# What happens at one instant, in this order.
_OWN, _CROSSBARS, _WOKEN, _START, _PLACE, _START_PRODUCT, _LOOK = range(7)
_CLASSES = 8
_EVENT = _WOKEN
"""Events of the chip's queue take their turn with what the network brings."""


@njit(cache=True)
def simulate_overlapped(
    program: Any, net: Any, work: Any, own: Any, core: Any, chip: Any, looping: bool, t: Any
) -> None:
    """Runs all programs to their end, or to ``t.end``; the results are in ``core``."""
    words, first, group_first, _ = program
    stack, heap, tree = work[0], work[1], own[1]
    for c in range(core.shape[0]):
        core[c, k.BASE] = first[c]
        core[c, k.COUNT] = first[c + 1] - first[c]
        core[c, k.GROUP_BASE] = group_first[c]
        if core[c, k.STATUS] == k.RUNNING:
            _prepare(core[c], words, program[3], t)
    while True:
        while chip[k.DEPTH] > 0:
            chip[k.DEPTH] -= 1
            _run(stack[chip[k.DEPTH]], k.FAR, program, net, work, own, core, chip, looping, t)
        event = heap[0, 0] * _CLASSES + _EVENT if chip[k.EVENTS] > 0 else k.FAR
        if min(event, tree[1]) // _CLASSES > t.end:
            return
        if tree[1] < event:
            _run(first_core(tree), tree[1], program, net, work, own, core, chip, looping, t)
            continue
        time = heap[0, 0]
        tag = heap[0, 1]
        drop_first(heap, chip[k.EVENTS])
        chip[k.EVENTS] -= 1
        kind = tag_kind(tag)
        if kind == TOKEN:
            _token(time, tag, work, own, core, chip, t)
        elif kind == HOST:
            _host(time, tag_core(tag), work, own, core, chip, t)
        else:
            core[tag_core(tag), k.STATUS] = k.RUNNING
            _ready(tag_core(tag), work, own, chip)


@njit(cache=True)
def _prepare(row: Any, words: Any, group_size: Any, t: Any) -> None:
    """Nothing is at work and the first instruction stands in the dispatcher."""
    row[k.VECTOR_ENTRY] = -1
    row[k.TRANSFER_ENTRY] = -1
    row[k.PLACE] = -1
    row[k.PLACE_START] = k.FAR
    row[k.START_EDGE] = k.FAR
    row[k.COMMITTED] = -1
    row[k.LOOK_EDGE] = row[k.STAND]
    _decode(row, words, group_size, t)


@njit(cache=True)
def _run(
    c: int, only: int, program: Any, net: Any, work: Any, own: Any, core: Any, chip: Any, looping: bool, t: Any
) -> None:
    """Runs a core that depends on nobody until it does, ends, or time is over.

    One that depends on somebody does the one thing of key ``only``.
    """
    words, group_size = program[0], program[3]
    group_free, trace = own[0], work[4]
    row = core[c]
    while row[k.STATUS] == k.RUNNING or only < k.FAR:
        key = _next_key(row, t.period, t.rob_size)
        if key // _CLASSES > t.end:
            _end(row, words, t)
            return
        only = k.FAR
        time = key // _CLASSES
        kind = key % _CLASSES
        if kind == _LOOK:
            _look(time // t.period, row, words, group_size, looping, t)
        elif kind in (_START, _START_PRODUCT):
            edge = _start(row, words, group_free, t)
            if row[k.SLOT + k.E_OP] > k.LAST_VECTOR:
                _start_transfer(c, net, work, own, core, chip, words, t)
            _leave(edge, row, words, group_size, looping, t)
        elif kind == _PLACE:
            _start_product(row, group_size, group_free, t)
        elif kind == _OWN:
            _vector_result(c, time, row, trace, chip, t)
        elif kind == _CROSSBARS:
            _product_result(c, time, row, group_free, trace, chip, t)
        else:
            _network_brings(c, time, net, work, own, core, chip, t)
    if row[k.STATUS] <= k.AT_HOST:
        set_key(own[1], c, _next_key(row, t.period, t.rob_size))


@njit(cache=True)
def _ready(c: int, work: Any, own: Any, chip: Any) -> None:
    """The core depends on nobody (any more)."""
    set_key(own[1], c, k.FAR)
    work[0][chip[k.DEPTH]] = c
    chip[k.DEPTH] += 1


@njit(cache=True)
def _end(row: Any, words: Any, t: Any) -> None:
    """Nothing happens any more on a core that depends on nobody, at least not in time."""
    if _next_key(row, t.period, t.rob_size) < k.FAR:
        row[k.STATUS] = k.STOPPED
        return
    row[k.STATUS] = k.UNRETIRED
    if row[k.PC] < row[k.COUNT] or words[row[k.BASE] + row[k.COUNT] - 1, 0] & 255 < k.FIRST_REAL:
        return
    freed = row[k.FREED]
    for j in range(row[k.USED]):
        freed = max(freed, row[_entry((row[k.HEAD] + j) % t.rob_size) + k.E_RETIRED])
    if freed < k.FAR:
        row[k.FINISH] = freed * t.period
        row[k.STATUS] = k.FINISHED if row[k.FINISH] <= t.end else k.STOPPED


# ---- what happens next ---------------------------------------------------------------------------------------------
@njit(cache=True, inline="always")
def _entry(at: int) -> Any:
    """The first column of entry ``at``."""
    return k.ENTRIES + at * k.ENTRY_COLUMNS


@njit(cache=True, inline="always")
def _earlier(key: int, time: int, kind: int) -> Any:
    return min(key, time * _CLASSES + kind) if time < k.FAR else key


@njit(cache=True)
def _next_key(row: Any, period: int, rob_size: int) -> Any:
    """Time x classes + class of what the core does next; FAR when there is nothing."""
    key = k.FAR
    if row[k.VECTOR_ENTRY] >= 0:
        key = _earlier(key, row[_entry(row[k.VECTOR_ENTRY]) + k.E_PHASE], _OWN)
    if row[k.TRANSFER_ENTRY] >= 0:
        key = _earlier(key, row[_entry(row[k.TRANSFER_ENTRY]) + k.E_PHASE], _WOKEN)
    if row[k.PRODUCTS_RUNNING] > 0:
        at = row[k.HEAD]
        for _ in range(row[k.USED]):
            if row[_entry(at) + k.E_OP] == k.MVMUL:
                key = _earlier(key, row[_entry(at) + k.E_PHASE], _CROSSBARS)
            at = at + 1 if at + 1 < rob_size else 0
    if row[k.PLACE_START] < k.FAR:
        key = min(key, row[k.PLACE_START] * period * _CLASSES + _PLACE)
    if row[k.START_EDGE] < k.FAR:
        kind = _START_PRODUCT if row[k.SLOT + k.E_OP] == k.MVMUL else _START
        key = min(key, row[k.START_EDGE] * period * _CLASSES + kind)
    if row[k.LOOK_EDGE] < k.FAR:
        key = min(key, row[k.LOOK_EDGE] * period * _CLASSES + _LOOK)
    return key


# ---- front end -----------------------------------------------------------------------------------------------------
@njit(cache=True)
def _advance(edge: int, row: Any, looping: bool, t: Any) -> None:
    """The instruction in the dispatcher leaves it at ``edge``, the next one stands there from then on."""
    row[k.STAND] = edge
    row[k.PC] += 1
    if looping:
        if row[k.PC] == row[k.COUNT]:
            row[k.PC] = 0
        if row[k.PC] == (row[k.COUNT] - 3) % row[k.COUNT] and edge * t.period <= t.end:
            row[k.ROUNDS] += 1


@njit(cache=True)
def _decode(row: Any, words: Any, group_size: Any, t: Any) -> None:
    """Prepares the instruction that came to the dispatcher, if there is one and it is a real one."""
    row[k.SLOT + k.E_OP] = -1
    if row[k.PC] == row[k.COUNT]:
        return
    i = row[k.BASE] + row[k.PC]
    op = words[i, 0] & 255
    row[k.SLOT + k.E_OP] = op
    if op >= k.FIRST_REAL and t.rob_size > 1:
        decode_ranges(words, i, row, group_size, t)


@njit(cache=True)
def _look(edge: int, row: Any, words: Any, group_size: Any, looping: bool, t: Any) -> None:
    """Cycle ``edge``: may the instruction in the dispatcher leave at the next edge?"""
    row[k.CLOCK] = edge
    row[k.LOOK_EDGE] = k.FAR
    while row[k.USED] > 0:
        retired = row[_entry(row[k.HEAD]) + k.E_RETIRED]
        if retired > edge:
            break
        row[k.FREED] = max(row[k.FREED], retired)
        row[k.HEAD] = row[k.HEAD] + 1 if row[k.HEAD] + 1 < t.rob_size else 0
        row[k.USED] -= 1
    if row[k.USED] == t.rob_size:
        row[k.LOOK_EDGE] = row[_entry(row[k.HEAD]) + k.E_RETIRED]
        return
    stand = max(edge, row[k.STAND])
    while k.NOP < row[k.SLOT + k.E_OP] < k.FIRST_REAL and stand * t.period <= t.end:
        apply_scalar(words, row[k.BASE] + row[k.PC], row)
        stand += 1
        _advance(stand, row, looping, t)
        _decode(row, words, group_size, t)
    if row[k.SLOT + k.E_OP] < 0:
        return
    if stand > edge:
        row[k.LOOK_EDGE] = stand
        return
    when = _may_leave(edge, row, t.rob_size)
    if when == edge:
        row[k.START_EDGE] = edge + 1
    else:
        row[k.LOOK_EDGE] = when


@njit(cache=True)
def _may_leave(edge: int, row: Any, rob_size: int) -> Any:
    """The next cycle in which to look: ``edge`` when a real instruction may leave now; FAR when that is unknown."""
    op = row[k.SLOT + k.E_OP]
    if op == k.NOP:
        return edge
    at = row[k.HEAD]
    for _ in range(row[k.USED]):
        retired = row[_entry(at) + k.E_RETIRED]
        if retired > edge and conflict(row, _entry(at)):
            return retired
        at = at + 1 if at + 1 < rob_size else 0
    if op == k.MVMUL:
        if row[k.PLACE] < 0 or row[k.PLACE_START] == edge + 1:
            return edge
        return row[k.PLACE_START] - 1 if row[k.PLACE_START] < k.FAR else k.FAR
    return max(edge, row[k.VECTOR_FREE] if op <= k.LAST_VECTOR else row[k.TRANSFER_FREE])


@njit(cache=True, inline="always")
def _look_at(row: Any, edge: int) -> None:
    """Something changes in cycle ``edge``: the dispatcher looks then, unless the instruction is leaving anyway."""
    if row[k.START_EDGE] == k.FAR:
        row[k.LOOK_EDGE] = min(row[k.LOOK_EDGE], max(edge, max(row[k.CLOCK] + 1, row[k.STAND])))


@njit(cache=True, inline="always")
def _counts(row: Any, entry: int, edge: int) -> None:
    """The execution of an entry counts at ``edge``."""
    row[entry + k.E_PHASE] = k.FAR
    row[entry + k.E_RETIRED] = edge + 1
    _look_at(row, edge)


# ---- starts --------------------------------------------------------------------------------------------------------
@njit(cache=True)
def _start(row: Any, words: Any, group_free: Any, t: Any) -> Any:
    """The instruction in the dispatcher enters the reorder buffer, and starts unless the transfer unit does it.

    Gives the edge.
    """
    edge = row[k.START_EDGE]
    row[k.START_EDGE] = k.FAR
    at = row[k.HEAD] + row[k.USED]
    if at >= t.rob_size:
        at -= t.rob_size
    row[k.USED] += 1
    entry = _entry(at)
    for column in range(k.ENTRY_COLUMNS):
        row[entry + column] = row[k.SLOT + column]
    row[entry + k.E_PC] = row[k.PC]
    row[entry + k.E_PHASE] = k.FAR
    row[entry + k.E_RETIRED] = k.FAR
    row[entry + k.E_EDGE] = edge
    row[entry + k.E_START] = edge * t.period
    i = row[k.BASE] + row[k.PC]
    op = row[k.SLOT + k.E_OP]
    if op == k.MVMUL:
        group = row[k.GROUP_BASE] + words[i, 3]
        row[entry + k.E_GROUP] = group
        row[entry + k.E_BITS] = row[k.IN_BITS]
        # Bytes per crossbar of the group, as the widths are now.
        row[entry + k.E_SIZE] = product_bytes(words[i, 1], 1, (row[k.OUT_BITS] + 7) >> 3, t)
        row[k.PLACE] = at
        row[k.PLACED] = edge
        if group_free[group] < k.FAR:
            row[k.PLACE_START] = max(edge, group_free[group]) + 1
    elif op > k.LAST_VECTOR:
        row[k.TRANSFER_ENTRY] = at
        row[k.TRANSFER_FREE] = k.FAR
    elif op != k.NOP:
        row[k.VECTOR_ENTRY] = at
        row[k.VECTOR_FREE] = k.FAR
        _start_vector(entry, op, words[i, 4], row, t)
    return edge


@njit(cache=True)
def _leave(edge: int, row: Any, words: Any, group_size: Any, looping: bool, t: Any) -> None:
    """The next instruction comes to the dispatcher."""
    _advance(edge, row, looping, t)
    _decode(row, words, group_size, t)
    row[k.LOOK_EDGE] = min(row[k.LOOK_EDGE], edge)


@njit(cache=True)
def _access(row: Any, time: int, reads: int, writes: int, t: Any) -> Any:
    """Accesses the local memory, behind the requests before; gives when they are over."""
    row[k.LOCAL_READS] += reads
    row[k.LOCAL_WRITES] += writes
    done = max(time, row[k.MEMORY_FREE])
    done += memory_ps(reads, t.local_read, t.local_period) + memory_ps(writes, t.local_write, t.local_period)
    row[k.MEMORY_FREE] = done
    return done


@njit(cache=True)
def _start_vector(entry: int, op: int, length: int, row: Any, t: Any) -> None:
    in_bytes = (row[k.IN_BITS] + 7) >> 3
    out_bytes = (row[k.OUT_BITS] + 7) >> 3
    reads = accesses(length * in_bytes, t.local_width)
    done = _access(row, row[entry + k.E_START], reads, 0, t)
    if read_vectors(op) == 2:
        done = _access(row, row[entry + k.E_START], reads, 0, t)
    steps = accesses(length, t.vector_width)
    row[k.VECTOR_STEPS] += steps
    row[entry + k.E_PHASE] = done + steps * t.vector_step
    row[entry + k.E_SIZE] = written_bytes(op, length, in_bytes, out_bytes)


@njit(cache=True)
def _start_product(row: Any, group_size: Any, group_free: Any, t: Any) -> None:
    """The product in the waiting place starts on its group."""
    entry = _entry(row[k.PLACE])
    edge = row[k.PLACE_START]
    row[k.PLACE] = -1
    row[k.PLACE_START] = k.FAR
    bits = row[entry + k.E_BITS]
    group = row[entry + k.E_GROUP]
    group_free[group] = k.FAR
    row[entry + k.E_START] = edge * t.period
    row[entry + k.E_EDGE] = edge
    row[entry + k.E_SIZE] *= group_size[group]
    reads = accesses(t.rows * ((bits + 7) >> 3) * 8, t.local_width)
    slices = passes(bits, t)
    row[entry + k.E_PHASE] = _access(row, edge * t.period, reads, 0, t) + compute_ps(slices, t)
    row[k.PASSES] += slices * group_size[group]
    row[k.PRODUCTS] += 1
    row[k.PRODUCTS_RUNNING] += 1
    _look_at(row, edge)


@njit(cache=True)
def _start_transfer(c: int, net: Any, work: Any, own: Any, core: Any, chip: Any, words: Any, t: Any) -> None:
    """The transfer unit starts its instruction."""
    row = core[c]
    record = words[row[k.BASE] + row[k.PC]]
    op = record[0] & 255
    start = row[_entry(row[k.TRANSFER_ENTRY]) + k.E_START]
    if op == k.LMV or op == k.LLDI:
        count = accesses(record[4], t.local_width)
        finish = _access(row, start, count if op == k.LMV else 0, count, t)
        row[k.TIME_MOVE] += min(finish, t.end) - start
        _transfer_over(c, finish, own_edge(finish, t.period), row, work[4], chip)
    elif op == k.SYNC:
        _sync(c, record, start, net, work, core, chip, t)
    elif op == k.WAIT:
        row[k.PEER] = record[2]
        row[k.SIZE] = record[3]
        row[k.STATUS] = k.WAITING
        if work[2][c, record[2]] >= record[3]:
            _waited(c, start, work, core, chip, t)
    elif op == k.SEND or op == k.RECV:
        _meet(op, c, record, start, net, work, own, core, chip, t)
    else:
        row[k.STATUS] = k.AT_HOST
        row[k.SIZE] = record[4]
        size = 1
        if op == k.ST:
            size = record[4]
            start = _access(row, start, accesses(size, t.local_width), 0, t)
        arrive = message(c, core.shape[0], size, start, net, work[3], core, t)
        push(work[1], chip[k.EVENTS], arrive, event_tag(c, HOST, 0))
        chip[k.EVENTS] += 1


@njit(cache=True)
def _sync(c: int, record: Any, start: int, net: Any, work: Any, core: Any, chip: Any, t: Any) -> None:
    row = core[c]
    arrive = message(c, record[1], 1, start, net, work[3], core, t)
    push(work[1], chip[k.EVENTS], arrive, event_tag(c, TOKEN, (record[1] << _REGISTER_BITS) | record[2]))
    chip[k.EVENTS] += 1
    row[k.TOKENS] += 1
    row[k.TIME_SYNC] += t.period
    _transfer_over(c, start + t.period, woken_edge(start + t.period, t.period), row, work[4], chip)
    if row[k.TOKENS] == k.TOKEN_BURST:
        # Whatever of this core concerns others from here on goes through its switch, behind the last token.
        push(work[1], chip[k.EVENTS], arrive, event_tag(c, RESUME, 0))
        chip[k.EVENTS] += 1
        row[k.STATUS] = k.PAUSED


@njit(cache=True)
def _meet(
    op: int, c: int, record: Any, start: int, net: Any, work: Any, own: Any, core: Any, chip: Any, t: Any
) -> None:
    """A send or recv starts; if its partner has come too, the sender is granted its transfer."""
    row = core[c]
    partner = record[1]
    row[k.PEER] = partner
    row[k.SINCE] = start
    row[k.SIZE] = record[4]
    if op == k.SEND:
        row[k.ARRIVAL] = message(c, partner, 1, start, net, work[3], core, t)
        row[k.SWITCH_FREE] += REQUEST_HOLD
        row[k.STATUS] = k.SENDING
        if core[partner, k.STATUS] == k.RECEIVING and core[partner, k.PEER] == c:
            _grant(c, partner, net, work, core, t)
    else:
        row[k.STATUS] = k.RECEIVING
        if core[partner, k.STATUS] == k.SENDING and core[partner, k.PEER] == c:
            _grant(partner, c, net, work, core, t)
            _ready(partner, work, own, chip)


@njit(cache=True)
def _grant(s: int, r: int, net: Any, work: Any, core: Any, t: Any) -> None:
    """The receiver answers the sender's request; the sender goes on when the answer is there."""
    ready = max(core[s, k.ARRIVAL], core[r, k.SINCE])
    core[s, _entry(core[s, k.TRANSFER_ENTRY]) + k.E_PHASE] = message(r, s, 1, ready, net, work[3], core, t)
    core[s, k.STATUS] = k.RUNNING


# ---- results -------------------------------------------------------------------------------------------------------
@njit(cache=True)
def _vector_result(c: int, time: int, row: Any, trace: Any, chip: Any, t: Any) -> None:
    """The vector unit has its result and writes it."""
    entry = _entry(row[k.VECTOR_ENTRY])
    finish = _access(row, time, 0, accesses(row[entry + k.E_SIZE], t.local_width), t)
    edge = max(own_edge(finish, t.period), row[entry + k.E_EDGE] + 1)
    row[k.TIME_VECTOR] += min(finish, t.end) - row[entry + k.E_START]
    row[k.VECTOR_FREE] = edge
    row[k.VECTOR_ENTRY] = -1
    trace_row(trace, chip, c, row[entry + k.E_PC], row[entry + k.E_START], finish)
    _counts(row, entry, edge)


@njit(cache=True)
def _product_result(c: int, time: int, row: Any, group_free: Any, trace: Any, chip: Any, t: Any) -> None:
    """The oldest product that has its result at ``time`` writes it."""
    at = row[k.HEAD]
    while row[_entry(at) + k.E_OP] != k.MVMUL or row[_entry(at) + k.E_PHASE] != time:
        at = at + 1 if at + 1 < t.rob_size else 0
    entry = _entry(at)
    group = row[entry + k.E_GROUP]
    finish = _access(row, time, 0, accesses(row[entry + k.E_SIZE], t.local_width), t)
    edge = max(own_edge(finish, t.period), row[entry + k.E_EDGE] + 1)
    row[k.TIME_PRODUCT] += min(finish, t.end) - row[entry + k.E_START]
    row[k.PRODUCTS_RUNNING] -= 1
    trace_row(trace, chip, c, row[entry + k.E_PC], row[entry + k.E_START], finish)
    group_free[group] = edge
    if row[k.PLACE] >= 0 and row[_entry(row[k.PLACE]) + k.E_GROUP] == group:
        row[k.PLACE_START] = max(row[k.PLACED], edge) + 1
        _look_at(row, row[k.PLACE_START] - 1)
    # Products are committed one per cycle.
    row[k.COMMITTED] = max(edge, row[k.COMMITTED] + 1)
    _counts(row, entry, row[k.COMMITTED])


@njit(cache=True)
def _network_brings(c: int, time: int, net: Any, work: Any, own: Any, core: Any, chip: Any, t: Any) -> None:
    """A grant, data of another core, or data of the host arrive at the transfer unit."""
    row = core[c]
    entry = _entry(row[k.TRANSFER_ENTRY])
    op = row[entry + k.E_OP]
    start = row[entry + k.E_START]
    count = accesses(row[k.SIZE], t.local_width)
    finish = _access(row, time, count, 0, t) if op == k.SEND else _access(row, time, 0, count, t)
    if op == k.LD:
        row[k.TIME_HOST] += min(finish, t.end) - start
    else:
        row[k.TIME_PEER_WAIT] += time - start
        row[k.TIME_PEER] += min(finish, t.end) - time
    if op == k.SEND:
        receiver = row[k.PEER]
        arrive = message(c, receiver, row[k.SIZE], finish, net, work[3], core, t)
        core[receiver, _entry(core[receiver, k.TRANSFER_ENTRY]) + k.E_PHASE] = arrive
        core[receiver, k.STATUS] = k.RUNNING
        _ready(receiver, work, own, chip)
    _transfer_over(c, finish, own_edge(finish, t.period), row, work[4], chip)


@njit(cache=True)
def _transfer_over(c: int, finish: int, edge: int, row: Any, trace: Any, chip: Any) -> None:
    """The transfer unit's execution ends at ``finish`` and counts at ``edge``."""
    entry = _entry(row[k.TRANSFER_ENTRY])
    edge = max(edge, row[entry + k.E_EDGE] + 1)
    row[k.TRANSFER_FREE] = edge
    row[k.TRANSFER_ENTRY] = -1
    row[k.STATUS] = k.RUNNING
    trace_row(trace, chip, c, row[entry + k.E_PC], row[entry + k.E_START], finish)
    _counts(row, entry, edge)


# ---- events of the chip ----------------------------------------------------------------------------------------------
@njit(cache=True)
def _host(time: int, c: int, work: Any, own: Any, core: Any, chip: Any, t: Any) -> None:
    """The request of core ``c`` reaches the host memory."""
    row = core[c]
    entry = _entry(row[k.TRANSFER_ENTRY])
    count = accesses(row[k.SIZE], t.host_width)
    begin = max(time, chip[k.HOST_FREE])
    if row[entry + k.E_OP] == k.LD:
        row[k.HOST_READS] += count
        done = begin + memory_ps(count, t.host_read, t.host_period)
        row[entry + k.E_PHASE] = done
        row[k.STATUS] = k.RUNNING
    else:
        row[k.HOST_WRITES] += count
        done = begin + memory_ps(count, t.host_write, t.host_period)
        row[k.TIME_HOST] += min(done, t.end) - row[entry + k.E_START]
        _transfer_over(c, done, woken_edge(done, t.period), row, work[4], chip)
    chip[k.HOST_FREE] = done
    row[k.SWITCH_FREE] = done
    _ready(c, work, own, chip)


@njit(cache=True)
def _token(time: int, tag: int, work: Any, own: Any, core: Any, chip: Any, t: Any) -> None:
    """A token arrives."""
    tokens = work[2]
    core[tag_core(tag), k.TOKENS] -= 1
    c = tag_detail(tag) >> _REGISTER_BITS
    register = tag_detail(tag) & (k.EVENT_REGISTERS - 1)
    tokens[c, register] += 1
    if core[c, k.STATUS] == k.WAITING and core[c, k.PEER] == register and tokens[c, register] >= core[c, k.SIZE]:
        _waited(c, time, work, core, chip, t)
        _ready(c, work, own, chip)


@njit(cache=True)
def _waited(c: int, time: int, work: Any, core: Any, chip: Any, t: Any) -> None:
    """A wait has its tokens at ``time``."""
    row = core[c]
    start = row[_entry(row[k.TRANSFER_ENTRY]) + k.E_START]
    finish = max(time, start)
    work[2][c, row[k.PEER]] -= row[k.SIZE]
    row[k.TIME_TOKEN] += finish - start
    _transfer_over(c, finish, woken_edge(finish, t.period), row, work[4], chip)
