"""A slow interpreter of instruction objects: one instruction of one core at a time, in plain Python.

It is written from the description of the machine and shares nothing with the simulator, so that agreement of the
two means something. Cores take turns, one instruction each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Instruction = dict[str, Any]
F32 = np.float32


class ProgramError(Exception):
    """An instruction that cannot be executed: core and pc."""

    def __init__(self, core: int, pc: int, why: str) -> None:
        super().__init__(f"core {core} pc {pc}: {why}")
        self.core, self.pc = core, pc


class DeadlockError(Exception):
    """No core can go on; ``blocked`` are the cores that wait."""

    def __init__(self, blocked: list[int]) -> None:
        super().__init__(f"blocked: {blocked}")
        self.blocked = blocked


class Core:
    """What belongs to one core."""

    def __init__(self, program: Sequence[Instruction], matrices: Sequence[np.ndarray]) -> None:
        self.program, self.matrices = list(program), list(matrices)
        self.registers = [0] * 32
        self.events = [0] * 32
        self.memory = bytearray(1 << 14)
        self.pc = self.iteration = 0
        self.widths = (32, 32)


class Chip:
    """A chip with programs as instruction objects, weights [core][group] and host memory."""

    def __init__(
        self,
        programs: Sequence[Sequence[Instruction]],
        *,
        host: bytes = b"",
        matrices: Sequence[Sequence[np.ndarray]] = (),
        samples: Sequence[Sequence[tuple[int, bytes]]] = (),
        iterations: int = 1,
        ranges: Sequence[tuple[int, int]] = (),
    ) -> None:
        groups = list(matrices) or [[] for _ in programs]
        self.cores = [Core(program, weights) for program, weights in zip(programs, groups, strict=True)]
        self.host = bytearray(host)
        self.samples, self.iterations, self.ranges = list(samples), iterations, list(ranges)
        self.stored = 0
        self.store_sample(0)
        self.outputs = [[bytearray(self.host[a : a + n]) for a, n in ranges] for _ in range(iterations)]

    def store_sample(self, number: int) -> None:
        if number >= self.stored:
            for address, data in self.samples[number] if number < len(self.samples) else ():
                self.host[address : address + len(data)] = data
            self.stored = number + 1

    def run(self) -> Chip:
        """Runs to the end; raises ProgramError or DeadlockError."""
        while True:
            active = [n for n, core in enumerate(self.cores) if core.program and core.iteration < self.iterations]
            if not active:
                return self
            moved = [self.step(number) for number in active if self.cores[number].iteration < self.iterations]
            if not any(moved):
                raise DeadlockError(active)

    def step(self, number: int) -> bool:
        """Executes one instruction of a core if it does not block; a rendezvous is executed by its receiver."""
        core = self.cores[number]
        if core.pc == 0:
            self.store_sample(core.iteration)
        instruction = core.program[core.pc]
        op = instruction["op"]
        if op == "send":
            return False
        if op == "recv":
            return self.receive(number, instruction)
        if op == "wait":
            register, value = instruction["event_register"], instruction["wait_value"]
            if core.events[register] < value:
                return False
            core.events[register] -= value
        elif op == "sync":
            self.cores[instruction["core"]].events[instruction["event_register"]] += 1
        else:
            try:
                getattr(self, f"do_{op}", self.vector)(core, instruction)
            except (ValueError, OverflowError) as cause:
                raise ProgramError(number, core.pc, str(cause)) from cause
        self.advance(core)
        return True

    def advance(self, core: Core) -> None:
        core.pc += 1
        if core.pc == len(core.program):
            core.pc, core.iteration, core.widths = 0, core.iteration + 1, (32, 32)

    def receive(self, number: int, instruction: Instruction) -> bool:
        core, peer = self.cores[number], self.cores[instruction["core"]]
        if not peer.program or peer.iteration >= self.iterations:
            return False
        other = peer.program[peer.pc]
        if other["op"] != "send" or other["core"] != number:
            return False
        if other["size"] != instruction["size"]:
            raise ProgramError(number, core.pc, "sizes differ")
        data = self.read(peer, self.byte_address(peer, other, "rd", 1), other["size"])
        self.write(core, self.byte_address(core, instruction, "rd", 1), data)
        self.advance(peer)
        self.advance(core)
        return True

    # Memory.

    def read(self, core: Core, address: int, size: int) -> bytes:
        self.touch(core, address, size)
        return bytes(core.memory[address : address + size]) if size else b""

    def write(self, core: Core, address: int, data: bytes) -> None:
        self.touch(core, address, len(data))
        if data:
            core.memory[address : address + len(data)] = data

    def touch(self, core: Core, address: int, size: int) -> None:
        if not size:
            return
        if address < 0 or address + size > 2**31:
            raise ValueError("outside local memory")
        if address + size > len(core.memory):
            core.memory.extend(bytes(address + size - len(core.memory)))

    def host_slice(self, address: int, size: int) -> slice:
        if size and (address < 0 or address + size > len(self.host)):
            raise ValueError("outside host memory")
        return slice(address, address + size)

    def byte_address(self, core: Core, instruction: Instruction, field: str, bit: int, host: bool = False) -> int:
        value = core.registers[instruction[field]]
        offset = instruction.get("offset", {"offset_select": 0, "offset_value": 0})
        return (value % 2**32 if host else value) + bool(offset["offset_select"] & bit) * offset["offset_value"]

    def elements(self, core: Core, address: int, count: int, width: int, stride: int = 1) -> list[F32]:
        """``count`` elements of ``width`` bits, ``stride`` apart."""
        step, kind = width // 8, {32: "<f4", 16: "<i2", 8: "<i1"}[width]
        if count and abs(stride * (count - 1)) > 2**31:
            raise ValueError("out of reach")
        places = [address + k * stride * step for k in range(count)]
        return [F32(np.frombuffer(self.read(core, place, step), kind)[0]) for place in places]

    def put(self, core: Core, address: int, values: Sequence[float], width: int) -> None:
        if width == 32:
            self.write(core, address, np.array(values, "<f4").tobytes())
            return
        limit = 2 ** (width - 1)
        rounded = [0 if math.isnan(v) else max(-limit, min(limit - 1, round_even(float(v)))) for v in values]
        self.write(core, address, np.array(rounded, {16: "<i2", 8: "<i1"}[width]).tobytes())

    # Scalars.

    def do_nop(self, core: Core, i: Instruction) -> None:
        pass

    def do_sldi(self, core: Core, i: Instruction) -> None:
        core.registers[i["rd"]] = wrap(i["imm"])

    def do_sld(self, core: Core, i: Instruction) -> None:
        place = self.host_slice(core.registers[i["rs1"]] % 2**32 + i["offset_value"], 4)
        core.registers[i["rd"]] = int.from_bytes(self.host[place], "little", signed=True)

    def do_sadd(self, core: Core, i: Instruction) -> None:
        core.registers[i["rd"]] = wrap(core.registers[i["rs1"]] + core.registers[i["rs2"]])

    def do_ssub(self, core: Core, i: Instruction) -> None:
        core.registers[i["rd"]] = wrap(core.registers[i["rs1"]] - core.registers[i["rs2"]])

    def do_smul(self, core: Core, i: Instruction) -> None:
        core.registers[i["rd"]] = wrap(core.registers[i["rs1"]] * core.registers[i["rs2"]])

    def do_saddi(self, core: Core, i: Instruction) -> None:
        core.registers[i["rd"]] = wrap(core.registers[i["rs1"]] + i["imm"])

    def do_smuli(self, core: Core, i: Instruction) -> None:
        core.registers[i["rd"]] = wrap(core.registers[i["rs1"]] * i["imm"])

    def do_setbw(self, core: Core, i: Instruction) -> None:
        core.widths = (i["ibiw"], i["obiw"])

    # Transfers.

    def do_ld(self, core: Core, i: Instruction) -> None:
        place = self.host_slice(self.byte_address(core, i, "rs1", 2, host=True), i["size"])
        self.write(core, self.byte_address(core, i, "rd", 1), bytes(self.host[place]))

    def do_st(self, core: Core, i: Instruction) -> None:
        begin = self.byte_address(core, i, "rd", 1, host=True)
        place = self.host_slice(begin, i["size"])
        data = self.read(core, self.byte_address(core, i, "rs1", 2), i["size"])
        if data:
            self.host[place] = data
        for (address, size), output in zip(self.ranges, self.outputs[core.iteration], strict=True):
            for k, byte in enumerate(data):
                if address <= begin + k < address + size:
                    output[begin + k - address] = byte

    def do_lmv(self, core: Core, i: Instruction) -> None:
        data = self.read(core, self.byte_address(core, i, "rs1", 2), i["len"])
        self.write(core, self.byte_address(core, i, "rd", 1), data)

    def do_lldi(self, core: Core, i: Instruction) -> None:
        self.write(core, self.byte_address(core, i, "rd", 1), bytes([i["imm"] % 256]) * i["len"])

    # Matrices and vectors.

    def do_mvmul(self, core: Core, i: Instruction) -> None:
        matrix, (wide_in, wide_out) = core.matrices[i["group"]], core.widths
        total = np.zeros(matrix.shape[1], F32)
        for row in range(matrix.shape[0]):
            if np.any(matrix[row] != 0):
                address = core.registers[i["rs1"]] + row * wide_in // 8
                (x,) = self.elements(core, address, 1, wide_in)
                with np.errstate(all="ignore"):
                    total = total + x * matrix[row]
        if i["relu"]:
            total = np.where(total <= 0, F32(0), total)
        self.put(core, core.registers[i["rd"]], list(total), wide_out)

    def vector(self, core: Core, i: Instruction) -> None:
        """All other vector instructions."""
        op, count, (wide_in, wide_out) = i["op"], i["len"], core.widths
        offset = i.get("offset", {"offset_select": 0, "offset_value": 0})
        select, value = offset["offset_select"], offset["offset_value"]
        d, a = core.registers[i["rd"]], core.registers[i["rs1"]]
        r2 = core.registers[i["rs2"]] if "rs2" in i else 0
        if op == "vmv":
            if r2 < 0:
                raise ValueError("negative stride")
            self.put_raw(core, d, [self.read(core, a + k * r2 * wide_in // 8, wide_in // 8) for k in range(count)])
            return
        if op == "vavg":
            values = self.elements(core, a + value * wide_in // 8, count, wide_in, r2)
            self.put(core, d, [F32(sum(float(v) for v in values) / count)], wide_out)
            return
        a += bool(select & 2) * value * wide_in // 8
        left = self.elements(core, a, count, wide_in)
        right: list[F32] = []
        if op in ("vvadd", "vvsub", "vvmul", "vvdmul", "vvmax", "vvsll", "vvsra"):
            right = self.elements(core, r2 + bool(select & 4) * value * wide_in // 8, count, wide_in)
        if op == "vvdmul":
            total = 0.0
            for x, y in zip(left, right, strict=True):
                total += float(x) * float(y)
            with np.errstate(all="ignore"):
                self.put(core, d, [F32(total)], wide_out)
            return
        same = op in ("vvadd", "vvsub", "vvmax", "vrelu")
        d += bool(select & 1) * value * (wide_in if same else wide_out) // 8
        with np.errstate(all="ignore"):
            result = softmax(left) if op == "vsoftmax" else self.each(op, left, right, r2)
        self.put(core, d, result, wide_in if same else wide_out)

    def put_raw(self, core: Core, address: int, parts: list[bytes]) -> None:
        self.write(core, address, b"".join(parts))

    def each(self, op: str, left: list[F32], right: list[F32], bound: int) -> list[F32]:
        rules = {
            "vvadd": lambda x, y: x + y,
            "vvsub": lambda x, y: x - y,
            "vvmul": lambda x, y: x * y,
            "vvmax": lambda x, y: x if np.isnan(x) or x >= y else y,
            "vvsll": lambda x, y: F32(wrap(whole(x) << shift(y))),
            "vvsra": lambda x, y: F32(whole(x) >> shift(y)),
            "vrelu": lambda x, y: x if np.isnan(x) or x > 0 else F32(0),
            "vtanh": lambda x, y: F32(math.tanh(x)),
            "vsigm": lambda x, y: F32(1 / (1 + exponential(-float(x)))),
            "vrsu": lambda x, y: F32(bound) if x > F32(bound) else x,
            "vrsl": lambda x, y: F32(bound) if x < F32(bound) else x,
        }
        return [rules[op](x, y) for x, y in zip(left, right or left, strict=True)]


def softmax(values: list[F32]) -> list[F32]:
    if not values:
        return []
    shifted = [math.exp(float(v) - float(max(values))) for v in values]
    return [F32(v / sum(shifted)) for v in shifted]


def exponential(value: float) -> float:
    return math.inf if value > 709 else math.exp(value)


def wrap(value: int) -> int:
    """A whole number cut to a signed 32-bit one."""
    return (value + 2**31) % 2**32 - 2**31


def whole(value: F32) -> int:
    number = math.trunc(float(value))
    if not -(2**31) <= number < 2**31:
        raise ValueError("no 32-bit integer")
    return number


def shift(value: F32) -> int:
    count = whole(value)
    if not 0 <= count <= 31:
        raise ValueError("bad shift count")
    return count


def round_even(value: float) -> int:
    return round(max(-1e9, min(1e9, value)))
