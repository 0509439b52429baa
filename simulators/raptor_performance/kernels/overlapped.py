"""The simulation of chips whose cores have several instructions in flight (any ``rob_size``), compiled.

Each core does its own things in order of time: its units come to their next phase, an instruction leaves the
dispatcher, a product leaves its waiting place, the dispatcher is looked at. Units meet only in the core's local
memory, which serves them in order of request, so an access is settled when it is asked for. A core runs ahead of the
others while its transfer unit depends on nobody. When it does (a partner, a token, the host memory), the core is kept
in step with the rest of the chip, for the answer may come at any time.

At one instant: phases that end by their own timer, the transfer and vector unit's before the crossbars', then what
the network brings, then starts, the transfer and vector unit's before the crossbars', then the dispatcher. Equal
times of different cores go by core number.

Arguments are those of raptor_performance.kernels.serial, with ``words``, ``first``, ``group_first`` and
``group_size`` in ``program``, and ``own``: a tuple of ``rob`` [cores, rob_size, ENTRY_COLUMNS]; ``slot``
[cores, ENTRY_COLUMNS], the instruction in each dispatcher; ``registers`` [cores, 32]; ``group_free``, the edge from
which each group is ready; ``tree``, keys of cores kept in step.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from raptor_performance.kernels import constants as k
from raptor_performance.kernels.decode import apply_scalar, conflict, decode_ranges
from raptor_performance.kernels.earliest import first_core, set_key
from raptor_performance.kernels.events import HOST, RESUME, TOKEN, drop_first, event_tag, push
from raptor_performance.kernels.events import tag_core, tag_detail, tag_kind
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
    stack, heap, tree = work[0], work[1], own[4]
    for c in range(core.shape[0]):
        if core[c, k.STATUS] == k.RUNNING:
            _prepare(c, program, own, core, looping, t)
    while True:
        while chip[k.DEPTH] > 0:
            chip[k.DEPTH] -= 1
            _run(stack[chip[k.DEPTH]], program, net, work, own, core, chip, looping, t)
        event = heap[0, 0] * _CLASSES + _EVENT if chip[k.EVENTS] > 0 else k.FAR
        if min(event, tree[1]) // _CLASSES > t.end:
            return
        if tree[1] < event:
            c = first_core(tree)
            _step(c, tree[1], program, net, work, own, core, chip, looping, t)
            _settle_down(c, own, work, core, chip, t)
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
def _prepare(c: int, program: Any, own: Any, core: Any, looping: bool, t: Any) -> None:
    """Nothing is at work and the first instruction stands in the dispatcher."""
    row = core[c]
    row[k.VECTOR_ENTRY] = -1
    row[k.TRANSFER_ENTRY] = -1
    row[k.PLACE] = -1
    row[k.PLACE_START] = k.FAR
    row[k.START_EDGE] = k.FAR
    row[k.COMMITTED] = -1
    row[k.LOOK_EDGE] = row[k.STAND]
    _decode(c, program, own, row, t)


@njit(cache=True)
def _run(
    c: int, program: Any, net: Any, work: Any, own: Any, core: Any, chip: Any, looping: bool, t: Any
) -> None:
    """Runs a core that depends on nobody until it does, ends, or time is over."""
    row = core[c]
    while row[k.STATUS] == k.RUNNING:
        key = _next_key(c, own, row, t)
        if key == k.FAR:
            _end(c, program, own, row, t)
            return
        if key // _CLASSES > t.end:
            row[k.STATUS] = k.STOPPED
            return
        _step(c, key, program, net, work, own, core, chip, looping, t)
    _settle_down(c, own, work, core, chip, t)


@njit(cache=True)
def _settle_down(c: int, own: Any, work: Any, core: Any, chip: Any, t: Any) -> None:
    """Puts a core in step with the others, or lets it run if it need not be."""
    row = core[c]
    if row[k.STATUS] == k.RUNNING:
        _ready(c, work, own, chip)
    elif row[k.STATUS] <= k.AT_HOST:
        set_key(own[4], c, _next_key(c, own, row, t))
    else:
        set_key(own[4], c, k.FAR)


@njit(cache=True)
def _ready(c: int, work: Any, own: Any, chip: Any) -> None:
    """The core depends on nobody (any more)."""
    set_key(own[4], c, k.FAR)
    work[0][chip[k.DEPTH]] = c
    chip[k.DEPTH] += 1


@njit(cache=True)
def _end(c: int, program: Any, own: Any, row: Any, t: Any) -> None:
    """Nothing is left to happen on a core that depends on nobody."""
    words, first, _, _ = program
    count = first[c + 1] - first[c]
    row[k.STATUS] = k.UNRETIRED
    if row[k.PC] < count or words[first[c] + count - 1, 0] & 255 < k.FIRST_REAL:
        return
    rob = own[0][c]
    freed = row[k.FREED]
    for j in range(row[k.USED]):
        freed = max(freed, rob[(row[k.HEAD] + j) % rob.shape[0], k.E_RETIRED])
    if freed < k.FAR:
        row[k.FINISH] = freed * t.period
        row[k.STATUS] = k.FINISHED if row[k.FINISH] <= t.end else k.STOPPED


# ---- what happens next ---------------------------------------------------------------------------------------------
@njit(cache=True)
def _next_key(c: int, own: Any, row: Any, t: Any) -> Any:
    """Time x classes + class of what the core does next; FAR when there is nothing."""
    rob = own[0][c]
    key = k.FAR
    if row[k.VECTOR_ENTRY] >= 0:
        key = _earlier(key, rob[row[k.VECTOR_ENTRY], k.E_PHASE], _OWN)
    if row[k.TRANSFER_ENTRY] >= 0:
        key = _earlier(key, rob[row[k.TRANSFER_ENTRY], k.E_PHASE], _WOKEN)
    if row[k.PRODUCTS_RUNNING] > 0:
        for j in range(row[k.USED]):
            entry = rob[(row[k.HEAD] + j) % rob.shape[0]]
            if entry[k.E_OP] == k.MVMUL:
                key = _earlier(key, entry[k.E_PHASE], _CROSSBARS)
    if row[k.PLACE_START] < k.FAR:
        key = _earlier(key, row[k.PLACE_START] * t.period, _PLACE)
    if row[k.START_EDGE] < k.FAR:
        kind = _START_PRODUCT if own[1][c, k.E_OP] == k.MVMUL else _START
        key = _earlier(key, row[k.START_EDGE] * t.period, kind)
    if row[k.LOOK_EDGE] < k.FAR:
        key = _earlier(key, row[k.LOOK_EDGE] * t.period, _LOOK)
    return key


@njit(cache=True, inline="always")
def _earlier(key: int, time: int, kind: int) -> Any:
    return min(key, time * _CLASSES + kind) if time < k.FAR else key


@njit(cache=True)
def _step(
    c: int, key: int, program: Any, net: Any, work: Any, own: Any, core: Any, chip: Any, looping: bool, t: Any
) -> None:
    """Does the one thing that ``key`` says."""
    row = core[c]
    time = key // _CLASSES
    kind = key % _CLASSES
    if kind == _LOOK:
        _look(c, time // t.period, program, own, row, looping, t)
    elif kind == _START or kind == _START_PRODUCT:
        _start(c, program, net, work, own, core, chip, looping, t)
    elif kind == _PLACE:
        _start_product(c, program, own, row, t)
    elif kind == _OWN:
        _vector_result(c, time, own, row, work, chip, t)
    elif kind == _CROSSBARS:
        _product_result(c, time, own, row, work, chip, t)
    else:
        _network_brings(c, time, net, work, own, core, chip, t)


# ---- front end -----------------------------------------------------------------------------------------------------
@njit(cache=True)
def _advance(c: int, edge: int, program: Any, row: Any, looping: bool, t: Any) -> None:
    """The instruction in the dispatcher leaves it at ``edge``, the next one stands there from then on."""
    count = program[1][c + 1] - program[1][c]
    row[k.STAND] = edge
    row[k.PC] += 1
    if looping:
        if row[k.PC] == count:
            row[k.PC] = 0
        if row[k.PC] == (count - 3) % count and edge * t.period <= t.end:
            row[k.ROUNDS] += 1


@njit(cache=True)
def _decode(c: int, program: Any, own: Any, row: Any, t: Any) -> None:
    """Prepares the instruction that came to the dispatcher, if there is one and it is a real one."""
    words, first, group_first, group_size = program
    slot = own[1][c]
    slot[k.E_OP] = -1
    if row[k.PC] == first[c + 1] - first[c]:
        return
    record = words[first[c] + row[k.PC]]
    op = record[0] & 255
    slot[k.E_OP] = op
    if op >= k.FIRST_REAL:
        decode_ranges(record, row, own[2][c], group_size[group_first[c] : group_first[c + 1]], slot, t)


@njit(cache=True)
def _free(c: int, edge: int, rob: Any, row: Any) -> None:
    """Frees the oldest entries that are retired by ``edge``."""
    while row[k.USED] > 0 and rob[row[k.HEAD], k.E_RETIRED] <= edge:
        row[k.FREED] = max(row[k.FREED], rob[row[k.HEAD], k.E_RETIRED])
        row[k.HEAD] = (row[k.HEAD] + 1) % rob.shape[0]
        row[k.USED] -= 1


@njit(cache=True)
def _look(c: int, edge: int, program: Any, own: Any, row: Any, looping: bool, t: Any) -> None:
    """Cycle ``edge``: may the instruction in the dispatcher leave at the next edge?"""
    rob, slot = own[0][c], own[1][c]
    row[k.CLOCK] = edge
    row[k.LOOK_EDGE] = k.FAR
    _free(c, edge, rob, row)
    if row[k.USED] == rob.shape[0]:
        row[k.LOOK_EDGE] = rob[row[k.HEAD], k.E_RETIRED]
        return
    end_edge = t.end // t.period
    while k.NOP < slot[k.E_OP] < k.FIRST_REAL and row[k.STAND] <= end_edge:
        apply_scalar(program[0][program[1][c] + row[k.PC]], row, own[2][c])
        _advance(c, row[k.STAND] + 1 if row[k.STAND] > edge else edge + 1, program, row, looping, t)
        _decode(c, program, own, row, t)
    if slot[k.E_OP] < 0:
        return
    if row[k.STAND] > edge:
        row[k.LOOK_EDGE] = row[k.STAND]
        return
    when = _may_leave(edge, rob, slot, row)
    if when == edge:
        row[k.START_EDGE] = edge + 1
    else:
        row[k.LOOK_EDGE] = when


@njit(cache=True)
def _may_leave(edge: int, rob: Any, slot: Any, row: Any) -> Any:
    """The next cycle in which to look: ``edge`` when a real instruction may leave now; FAR when that is unknown."""
    op = slot[k.E_OP]
    if op == k.NOP:
        return edge
    for j in range(row[k.USED]):
        entry = rob[(row[k.HEAD] + j) % rob.shape[0]]
        if entry[k.E_RETIRED] > edge and conflict(slot, entry):
            return entry[k.E_RETIRED]
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
def _counts(row: Any, entry: Any, edge: int) -> None:
    """The execution of an entry counts at ``edge``."""
    entry[k.E_PHASE] = k.FAR
    entry[k.E_RETIRED] = edge + 1
    _look_at(row, edge)


# ---- starts --------------------------------------------------------------------------------------------------------
@njit(cache=True)
def _start(
    c: int, program: Any, net: Any, work: Any, own: Any, core: Any, chip: Any, looping: bool, t: Any
) -> None:
    """The instruction in the dispatcher leaves it: into the reorder buffer and to its unit."""
    rob, slot, row = own[0][c], own[1][c], core[c]
    edge = row[k.START_EDGE]
    row[k.START_EDGE] = k.FAR
    at = (row[k.HEAD] + row[k.USED]) % rob.shape[0]
    row[k.USED] += 1
    entry = rob[at]
    entry[:] = slot
    entry[k.E_PC] = row[k.PC]
    entry[k.E_PHASE] = k.FAR
    entry[k.E_RETIRED] = k.FAR
    entry[k.E_EDGE] = edge
    entry[k.E_START] = edge * t.period
    record = program[0][program[1][c] + row[k.PC]]
    op = slot[k.E_OP]
    if op == k.MVMUL:
        _place(at, edge, record, program[2][c], own[3], entry, row, t)
    elif op == k.NOP:
        pass
    elif op <= k.LAST_VECTOR:
        _start_vector(at, record, entry, row, t)
    else:
        row[k.TRANSFER_ENTRY] = at
        row[k.TRANSFER_FREE] = k.FAR
        _start_transfer(c, record, entry, net, work, own, core, chip, t)
    _advance(c, edge, program, row, looping, t)
    _decode(c, program, own, row, t)
    if row[k.LOOK_EDGE] > edge:
        row[k.LOOK_EDGE] = edge


@njit(cache=True)
def _access(row: Any, time: int, reads: int, writes: int, t: Any) -> Any:
    """Accesses the local memory, behind the requests before; gives when they are over."""
    begin = max(time, row[k.MEMORY_FREE])
    row[k.LOCAL_READS] += reads
    row[k.LOCAL_WRITES] += writes
    done = begin + memory_ps(reads, t.local_read, t.local_period) + memory_ps(writes, t.local_write, t.local_period)
    row[k.MEMORY_FREE] = done
    return done


@njit(cache=True)
def _start_vector(at: int, record: Any, entry: Any, row: Any, t: Any) -> None:
    op = record[0] & 255
    length = record[4]
    in_bytes = (row[k.IN_BITS] + 7) >> 3
    out_bytes = (row[k.OUT_BITS] + 7) >> 3
    reads = accesses(length * in_bytes, t.local_width)
    done = _access(row, entry[k.E_START], reads, 0, t)
    if read_vectors(op) == 2:
        done = _access(row, entry[k.E_START], reads, 0, t)
    steps = accesses(length, t.vector_width)
    row[k.VECTOR_STEPS] += steps
    row[k.VECTOR_ENTRY] = at
    row[k.VECTOR_FREE] = k.FAR
    entry[k.E_PHASE] = done + steps * t.vector_step
    entry[k.E_SIZE] = written_bytes(op, length, in_bytes, out_bytes)


@njit(cache=True)
def _place(
    at: int, edge: int, record: Any, group_first: int, group_free: Any, entry: Any, row: Any, t: Any
) -> None:
    """A product takes the waiting place."""
    entry[k.E_GROUP] = group_first + record[3]
    # As they are now: the next instruction may change the widths.
    entry[k.E_SIZE] = entry[k.E_WRITE + 1] - entry[k.E_WRITE]
    entry[k.E_BITS] = row[k.IN_BITS]
    row[k.PLACE] = at
    row[k.PLACED] = edge
    free = group_free[entry[k.E_GROUP]]
    row[k.PLACE_START] = max(edge, free) + 1 if free < k.FAR else k.FAR


@njit(cache=True)
def _start_product(c: int, program: Any, own: Any, row: Any, t: Any) -> None:
    """The product in the waiting place starts on its group."""
    entry = own[0][c, row[k.PLACE]]
    edge = row[k.PLACE_START]
    bits = entry[k.E_BITS]
    entry[k.E_START] = edge * t.period
    entry[k.E_EDGE] = edge
    own[3][entry[k.E_GROUP]] = k.FAR
    row[k.PLACE] = -1
    row[k.PLACE_START] = k.FAR
    reads = accesses(t.rows * ((bits + 7) >> 3) * 8, t.local_width)
    done = _access(row, entry[k.E_START], reads, 0, t)
    slices = passes(bits, t)
    entry[k.E_PHASE] = done + compute_ps(slices, t)
    row[k.PASSES] += slices * program[3][entry[k.E_GROUP]]
    row[k.PRODUCTS] += 1
    row[k.PRODUCTS_RUNNING] += 1
    _look_at(row, edge)


@njit(cache=True)
def _start_transfer(
    c: int, record: Any, entry: Any, net: Any, work: Any, own: Any, core: Any, chip: Any, t: Any
) -> None:
    """An instruction of the transfer unit starts."""
    op = record[0] & 255
    row = core[c]
    start = entry[k.E_START]
    if op == k.LMV or op == k.LLDI:
        count = accesses(record[4], t.local_width)
        finish = _access(row, start, count if op == k.LMV else 0, count, t)
        row[k.TIME_MOVE] += min(finish, t.end) - start
        _transfer_over(c, finish, own_edge(finish, t.period), work, own, row, chip)
    elif op == k.SYNC:
        _sync(c, record, start, net, work, own, core, chip, t)
    elif op == k.WAIT:
        tokens = work[2][c]
        row[k.PEER] = record[2]
        row[k.SIZE] = record[3]
        row[k.STATUS] = k.WAITING
        if tokens[record[2]] >= record[3]:
            _waited(c, start, work, own, core, chip, t)
    elif op == k.SEND or op == k.RECV:
        _meet(op, c, record, start, net, work, own, core, chip, t)
    else:
        row[k.STATUS] = k.AT_HOST
        row[k.SIZE] = record[4]
        if op == k.ST:
            ready = _access(row, start, accesses(record[4], t.local_width), 0, t)
            arrive = message(c, core.shape[0], record[4], ready, net, work[3], core, t)
        else:
            arrive = message(c, core.shape[0], 1, start, net, work[3], core, t)
        push(work[1], chip[k.EVENTS], arrive, event_tag(c, HOST, 0))
        chip[k.EVENTS] += 1


@njit(cache=True)
def _sync(
    c: int, record: Any, start: int, net: Any, work: Any, own: Any, core: Any, chip: Any, t: Any
) -> None:
    row = core[c]
    arrive = message(c, record[1], 1, start, net, work[3], core, t)
    push(work[1], chip[k.EVENTS], arrive, event_tag(c, TOKEN, (record[1] << _REGISTER_BITS) | record[2]))
    chip[k.EVENTS] += 1
    row[k.TOKENS] += 1
    row[k.TIME_SYNC] += t.period
    _transfer_over(c, start + t.period, woken_edge(start + t.period, t.period), work, own, row, chip)
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
    other = core[partner]
    row[k.PEER] = partner
    row[k.SINCE] = start
    row[k.SIZE] = record[4]
    if op == k.SEND:
        row[k.ARRIVAL] = message(c, partner, 1, start, net, work[3], core, t)
        row[k.SWITCH_FREE] += REQUEST_HOLD
        row[k.STATUS] = k.SENDING
        if other[k.STATUS] == k.RECEIVING and other[k.PEER] == c:
            _grant(c, partner, net, work, own, core, chip, t)
    else:
        row[k.STATUS] = k.RECEIVING
        if other[k.STATUS] == k.SENDING and other[k.PEER] == c:
            _grant(partner, c, net, work, own, core, chip, t)
            _ready(partner, work, own, chip)


@njit(cache=True)
def _grant(s: int, r: int, net: Any, work: Any, own: Any, core: Any, chip: Any, t: Any) -> None:
    """The receiver answers the sender's request; the sender goes on when the answer is there."""
    sender = core[s]
    ready = max(sender[k.ARRIVAL], core[r, k.SINCE])
    entry = own[0][s, sender[k.TRANSFER_ENTRY]]
    entry[k.E_PHASE] = message(r, s, 1, ready, net, work[3], core, t)
    sender[k.STATUS] = k.RUNNING


# ---- results -------------------------------------------------------------------------------------------------------
@njit(cache=True)
def _vector_result(c: int, time: int, own: Any, row: Any, work: Any, chip: Any, t: Any) -> None:
    """The vector unit has its result and writes it."""
    entry = own[0][c, row[k.VECTOR_ENTRY]]
    finish = _access(row, time, 0, accesses(entry[k.E_SIZE], t.local_width), t)
    edge = max(own_edge(finish, t.period), entry[k.E_EDGE] + 1)
    row[k.TIME_VECTOR] += min(finish, t.end) - entry[k.E_START]
    row[k.VECTOR_FREE] = edge
    row[k.VECTOR_ENTRY] = -1
    trace_row(work[4], chip, c, entry[k.E_PC], entry[k.E_START], finish)
    _counts(row, entry, edge)


@njit(cache=True)
def _product_result(c: int, time: int, own: Any, row: Any, work: Any, chip: Any, t: Any) -> None:
    """The oldest product that has its result at ``time`` writes it."""
    rob = own[0][c]
    at = row[k.HEAD]
    while rob[at, k.E_OP] != k.MVMUL or rob[at, k.E_PHASE] != time:
        at = (at + 1) % rob.shape[0]
    entry = rob[at]
    finish = _access(row, time, 0, accesses(entry[k.E_SIZE], t.local_width), t)
    edge = max(own_edge(finish, t.period), entry[k.E_EDGE] + 1)
    row[k.TIME_PRODUCT] += min(finish, t.end) - entry[k.E_START]
    row[k.PRODUCTS_RUNNING] -= 1
    trace_row(work[4], chip, c, entry[k.E_PC], entry[k.E_START], finish)
    own[3][entry[k.E_GROUP]] = edge
    if row[k.PLACE] >= 0 and rob[row[k.PLACE], k.E_GROUP] == entry[k.E_GROUP]:
        row[k.PLACE_START] = max(row[k.PLACED], edge) + 1
        _look_at(row, row[k.PLACE_START] - 1)
    # Products are committed one per cycle.
    row[k.COMMITTED] = max(edge, row[k.COMMITTED] + 1)
    _counts(row, entry, row[k.COMMITTED])


@njit(cache=True)
def _network_brings(
    c: int, time: int, net: Any, work: Any, own: Any, core: Any, chip: Any, t: Any
) -> None:
    """A grant, data of another core, or data of the host arrive at the transfer unit."""
    row = core[c]
    entry = own[0][c, row[k.TRANSFER_ENTRY]]
    start = entry[k.E_START]
    count = accesses(row[k.SIZE], t.local_width)
    if entry[k.E_OP] != k.SEND:
        finish = _access(row, time, 0, count, t)
        if entry[k.E_OP] == k.RECV:
            row[k.TIME_PEER_WAIT] += time - start
            row[k.TIME_PEER] += min(finish, t.end) - time
        else:
            row[k.TIME_HOST] += min(finish, t.end) - start
        _transfer_over(c, finish, own_edge(finish, t.period), work, own, row, chip)
        return
    finish = _access(row, time, count, 0, t)
    row[k.TIME_PEER_WAIT] += time - start
    row[k.TIME_PEER] += min(finish, t.end) - time
    receiver = core[row[k.PEER]]
    arrive = message(c, row[k.PEER], row[k.SIZE], finish, net, work[3], core, t)
    own[0][row[k.PEER], receiver[k.TRANSFER_ENTRY], k.E_PHASE] = arrive
    receiver[k.STATUS] = k.RUNNING
    _ready(row[k.PEER], work, own, chip)
    _transfer_over(c, finish, own_edge(finish, t.period), work, own, row, chip)


@njit(cache=True)
def _transfer_over(c: int, finish: int, edge: int, work: Any, own: Any, row: Any, chip: Any) -> None:
    """The transfer unit's execution ends at ``finish`` and counts at ``edge``."""
    entry = own[0][c, row[k.TRANSFER_ENTRY]]
    edge = max(edge, entry[k.E_EDGE] + 1)
    row[k.TRANSFER_FREE] = edge
    row[k.TRANSFER_ENTRY] = -1
    row[k.STATUS] = k.RUNNING
    trace_row(work[4], chip, c, entry[k.E_PC], entry[k.E_START], finish)
    _counts(row, entry, edge)


# ---- events of the chip ----------------------------------------------------------------------------------------------
@njit(cache=True)
def _host(time: int, c: int, work: Any, own: Any, core: Any, chip: Any, t: Any) -> None:
    """The request of core ``c`` reaches the host memory."""
    row = core[c]
    entry = own[0][c, row[k.TRANSFER_ENTRY]]
    count = accesses(row[k.SIZE], t.host_width)
    begin = max(time, chip[k.HOST_FREE])
    if entry[k.E_OP] == k.LD:
        row[k.HOST_READS] += count
        done = begin + memory_ps(count, t.host_read, t.host_period)
        entry[k.E_PHASE] = done
        row[k.STATUS] = k.RUNNING
    else:
        row[k.HOST_WRITES] += count
        done = begin + memory_ps(count, t.host_write, t.host_period)
        row[k.TIME_HOST] += min(done, t.end) - entry[k.E_START]
        _transfer_over(c, done, woken_edge(done, t.period), work, own, row, chip)
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
    row = core[c]
    tokens[c, register] += 1
    if row[k.STATUS] == k.WAITING and row[k.PEER] == register and tokens[c, register] >= row[k.SIZE]:
        _waited(c, time, work, own, core, chip, t)
        _ready(c, work, own, chip)


@njit(cache=True)
def _waited(c: int, time: int, work: Any, own: Any, core: Any, chip: Any, t: Any) -> None:
    """A wait has its tokens at ``time``."""
    row = core[c]
    start = own[0][c, row[k.TRANSFER_ENTRY], k.E_START]
    finish = max(time, start)
    work[2][c, row[k.PEER]] -= row[k.SIZE]
    row[k.TIME_TOKEN] += finish - start
    _transfer_over(c, finish, woken_edge(finish, t.period), work, own, row, chip)
