"""Running with a trace of where every byte comes from."""

from __future__ import annotations

import json
from typing import Any, TextIO

import attrs

from raptor_core.diagnostics import UsageError
from raptor_functional.failures import runtime_error
from raptor_functional.kernels import core as kernels
from raptor_functional.kernels import state as codes
from raptor_functional.machine import Machine
from raptor_functional.provenance.effects import TRACED_LOCALLY, Operands, local_result, operands_of
from raptor_functional.provenance.host import HostHistory, Writer
from raptor_functional.provenance.tags import Tags
from raptor_functional.scheduling import Emit, Event, run_scheduled
from raptor_functional.settings import RunSettings
from raptor_pim.isa import Opcode

SCHEMA = 1
_MOVED_BETWEEN = frozenset((Opcode.SEND, Opcode.RECV))


def run_traced(machine: Machine, settings: RunSettings, emit: Emit) -> None:
    """Runs everything, writing one JSON object a line to ``settings.provenance_trace``.

    What the scheduler does is written and also given to ``emit``. Execution is step by step and slow. When the
    program fails, the trace ends at the failure. Raises RaptorError as the run without a trace, and UsageError when
    the file cannot be written.
    """
    path = settings.provenance_trace
    assert path is not None, "a traced run names its file"
    try:
        with path.open("w", encoding="utf-8") as file:
            tracer = Tracer(machine, file)
            tracer.begin(settings)

            def tell(event: Event) -> None:
                tracer.write(event)
                emit(event)

            run_scheduled(machine, settings, tell, tracer.execute)
    except OSError as cause:
        reason = cause.strerror or str(cause)
        raise UsageError("cannot-write-trace", "the trace cannot be written", where=str(path), reason=reason) from cause


@attrs.define(eq=False)
class Tracer:
    """Executes instructions one by one and keeps the tags of all memories beside the values.

    ``cycle`` counts the instructions that all cores have executed.
    """

    machine: Machine
    file: TextIO
    cycle: int = 0
    local: list[Tags] = attrs.field(factory=list)
    history: HostHistory = attrs.field(init=False)
    stored: int = 0

    def __attrs_post_init__(self) -> None:
        self.local = [Tags.none(0) for _ in range(self.machine.core_count)]
        self.history = HostHistory.of_size(self.machine.state.host.size)

    def begin(self, settings: RunSettings) -> None:
        """Writes the head of the trace and the store of sample 0."""
        self.write({"event": "trace_start", "schema": SCHEMA, "cores": self.machine.core_count})
        batch = int(self.machine.state.batch[codes.BATCH_SIZE])
        mode = "throughput" if settings.throughput else "latency"
        self.write({"event": "batch_start", "samples": batch, "mode": mode, "global_barrier": settings.global_barrier})
        self._input_store(0)

    def write(self, event: Event) -> None:
        """One line of the trace."""
        self.file.write(json.dumps({**event, "cycle": self.cycle}) + "\n")

    def execute(self, machine: Machine, core: int) -> int:
        """Runs one core until it blocks, finishes or meets a mark. Raises RaptorError for an error of the program."""
        while True:
            status = self._step(core)
            if status != codes.PAUSED:
                return status

    def _step(self, core: int) -> int:
        state = self.machine.state
        pc, iteration = int(state.pc[core]), int(state.iteration[core])
        if pc == 0 and iteration >= self.stored:
            self._input_store(iteration)
        operands = operands_of(state, core, pc)
        peer_place: Event = {}
        if operands.opcode in _MOVED_BETWEEN:
            peer_place = {"pc": int(state.pc[operands.peer]), "iteration": int(state.iteration[operands.peer])}
        before = int(state.executed[core])
        while True:
            status = int(kernels.run_core(state, core, 1))
            if status != codes.GROW:
                break
            self.machine.grow()
        if status < 0:
            raise runtime_error(self.machine, status)
        if int(state.executed[core]) > before:
            self.cycle += 1
            self._record(core, pc, iteration, operands, peer_place)
            if int(state.clock[codes.STORED_SAMPLES]) > self.stored:
                self._input_store(self.stored)
        return status

    def _record(self, core: int, pc: int, iteration: int, operands: Operands, peer_place: Event) -> None:
        opcode = operands.opcode
        place = {"core": core, "pc": pc, "iteration": iteration, "op": opcode.name.lower()}
        if opcode in TRACED_LOCALLY:
            self._local_operation(core, operands, place)
        elif opcode is Opcode.ST:
            self._host_store(operands, place, Writer(0, self.cycle, core, pc, iteration))
        elif opcode in (Opcode.LD, Opcode.SLD):
            self._host_load(operands, place)
        elif opcode in _MOVED_BETWEEN:
            self._transfer(core, operands, place, peer_place)

    def _local_operation(self, core: int, operands: Operands, place: Event) -> None:
        result = local_result(self.machine.state, core, operands, lambda begin, size: self._read(core, begin, size))
        self._write_local(core, operands.destination, result)
        span = {"begin": operands.destination, "bytes": result.size}
        self.write({"event": "local_operation", **place, **span, "tag": result.to_json()})
        if operands.opcode not in (Opcode.LMV, Opcode.VMV):
            for samples in result.mixtures():
                self.write({"event": "cross_sample_data_mix", **place, **span, "samples": samples})

    def _host_store(self, operands: Operands, place: Event, writer: Writer) -> None:
        if not operands.count:
            return
        tags = self._read(int(place["core"]), operands.first, operands.count)
        begin, size = operands.destination, operands.count
        overwritten = self.history.writers(begin, size)
        version = self.history.store(begin, tags, writer)
        span = {"begin": begin, "bytes": size, "version": version}
        self.write({"event": "host_store", **place, **span, "tag": tags.to_json(), "overwritten": overwritten})

    def _host_load(self, operands: Operands, place: Event) -> None:
        size = 4 if operands.opcode is Opcode.SLD else operands.count
        tags = self.history.tags.part(operands.first, size)
        if operands.opcode is Opcode.LD:
            self._write_local(int(place["core"]), operands.destination, tags)
        written_by = self.history.writers(operands.first, size)
        span = {"begin": operands.first, "bytes": size}
        self.write({"event": "host_load", **place, **span, "tag": tags.to_json(), "written_by": written_by})

    def _transfer(self, core: int, operands: Operands, place: Event, peer_place: Event) -> None:
        """The rendezvous that ``core`` completed; its peer stood at ``peer_place``."""
        peer = operands.peer
        other = operands_of(self.machine.state, peer, int(peer_place["pc"]))
        sending = operands.opcode is Opcode.SEND
        source, target = (core, peer) if sending else (peer, core)
        from_, to = (operands, other) if sending else (other, operands)
        tags = self._read(source, from_.destination, operands.count)
        self._write_local(target, to.destination, tags)
        self.cycle += 1
        ends = {"from": {"core": source, "begin": from_.destination}, "to": {"core": target, "begin": to.destination}}
        mine: dict[str, Any] = {"pc": place["pc"], "iteration": place["iteration"]}
        ends["from"] |= mine if sending else peer_place
        ends["to"] |= peer_place if sending else mine
        self.write({"event": "transfer", **ends, "bytes": operands.count, "tag": tags.to_json()})

    def _input_store(self, number: int) -> None:
        """The store of a sample's inputs, which the machine does when the first core begins the iteration."""
        state = self.machine.state
        self.stored = number + 1
        for region, (begin, size) in enumerate(
            zip(state.input_address.tolist(), state.input_size.tolist(), strict=True)
        ):
            overwritten = self.history.writers(begin, size)
            writer = Writer(0, self.cycle, None, None, number)
            version = self.history.store(begin, Tags.of_sample(number, size), writer)
            span = {"begin": begin, "bytes": size, "version": version, "overwritten": overwritten}
            self.write({"event": "input_store", "sample": number, "input": region, **span})

    def _read(self, core: int, begin: int, size: int) -> Tags:
        self._reach(core, begin + size)
        return self.local[core].part(begin, size) if size else Tags.none(0)

    def _write_local(self, core: int, begin: int, tags: Tags) -> None:
        if tags.size:
            self._reach(core, begin + tags.size)
            self.local[core].put(begin, tags)

    def _reach(self, core: int, end: int) -> None:
        if end > self.local[core].size:
            self.local[core] = self.local[core].grown(max(end, 2 * self.local[core].size, 4096))
