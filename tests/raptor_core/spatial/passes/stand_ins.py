"""Plugins, a machine and operations for tests of the passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from raptor_core.diagnostics import PluginError
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.operation import Types
from raptor_core.ir.types import Layout, TensorType
from raptor_core.passes.base import PassContext
from raptor_core.spatial.boxes import Box, empty_box
from raptor_core.spatial.compute import ComputeOp, LayoutChoice, all_same_layout
from raptor_core.spatial.kernel import Kernel, KernelBuilder, View
from raptor_core.spatial.plans import ConvPlan


@attrs.frozen
class Plugins:
    """Plugins by group and name; an exception stands for one that cannot be loaded."""

    groups: Mapping[str, Mapping[str, Any]]

    def names(self, group: str) -> list[str]:
        return list(self.groups.get(group, {}))

    def has(self, group: str, name: str) -> bool:
        return name in self.groups.get(group, {})

    def get(self, group: str, name: str) -> Any:
        plugin = self.groups[group][name]
        if isinstance(plugin, Exception):
            raise plugin
        return plugin


@attrs.frozen
class Machine:
    """Every element that an instruction touches costs 1 ns, every message 10."""

    core_count: int = 4
    crossbars_per_core: int = 8
    crossbar_rows: int = 16
    crossbar_columns: int = 16

    def crossbars(self, shapes) -> int:
        return sum(-(-columns // 16) for _, columns in shapes)

    def kernel_energy_ns(self, kernel: Kernel) -> float:
        return 0.0

    def kernel_ns(self, kernel: Kernel) -> float:
        def total(body) -> float:
            return sum(
                item.extent * total(item.body) if hasattr(item, "extent") else float(np.sum(10 + item.count))
                for item in body
            )

        return total(kernel.body)

    def transfer_ns(self, elements: float, runs: float = 1) -> float:
        return 10 * runs + elements

    def host_ns(self, elements: float, runs: float = 1) -> float:
        return 10 * runs + elements


def context(
    strategies: Mapping[str, Any] | None = None, layouts: Mapping[str, Any] | None = None, **options: Any
) -> PassContext:
    groups = {"raptor.conv_strategies": strategies or {}, "raptor.layouts": layouts or {}}
    return PassContext(Machine(), Plugins(groups), options)  # type: ignore[arg-type]


@attrs.frozen
class Order:
    """A layout alternative with one order, for tensors of its rank."""

    name: str
    order: tuple[int, ...]
    api_version: int = 1
    summary: str = ""

    def layout(self, type_: TensorType) -> Layout | None:
        return Layout(self.name, self.order) if type_.rank == len(self.order) else None


@attrs.frozen(kw_only=True)
class Work(ComputeOp):
    """Computes nothing, for ``cost`` ns per element, but ``dear`` more where the result's layout has that name."""

    kind = "test.work"

    cost: int = 1
    dear: str = ""

    def region(self, operand: int, out: Box, types: Types) -> Box:
        if operand < len(self.operands) and types[self.operands[operand]].rank == len(out.lo):
            return out
        return empty_box(types[self.operands[operand]].rank)

    def layout_choices(self, types: Types, candidates: Sequence[Sequence[Layout]]) -> Iterable[LayoutChoice]:
        return all_same_layout(self, types, candidates)

    def build(
        self, k: KernelBuilder, out: Box, result: View, operands: Sequence[View | None], types: Types, rows: int
    ) -> None:
        layout = types[self.results[0]].layout
        factor = 1000 if layout is not None and layout.name == self.dear else 1
        with k.loop(self.cost * factor), k.runs(result) as ((dst,), count):
            k.fill(dst, 0.0, count)


@attrs.frozen
class Strategy:
    """Realises a plan as Work of a certain cost, unless its kernel is one of ``refused``."""

    name: str
    cost: int = 1
    refused: tuple[int, ...] = ()
    api_version: int = 1
    summary: str = ""
    options: tuple[Any, ...] = ()

    def applies(self, plan: ConvPlan, types: Types, machine: Any) -> str | None:
        kernel = plan.window_kernel[0]
        return f"it does not take kernels of {kernel}" if kernel in self.refused else None

    def realise(self, plan: ConvPlan, rewriter: Rewriter, machine: Any, options: Mapping[str, Any]) -> None:
        rewriter.append(
            Work(name=f"{plan.name} by {self.name}", operands=plan.operands[:1], results=plan.results, cost=self.cost)
        )


def broken(name: str) -> PluginError:
    return PluginError("broken-plugin", f"'{name}' cannot be loaded", reason="no module named acme")


def convolutions(*names: str) -> Module:
    """A chain of convolutions of [1, 4, 6, 6]: pointwise, with a 3x3 kernel where the name begins with "b"."""
    shape = (1, 4, 6, 6)
    types, constants, operations = {"x": TensorType(shape)}, {}, []
    value = "x"
    for name in names:
        kernel, pad = (3, 1) if name.startswith("b") else (1, 0)
        weights, result = f"{name}.w", f"{name}.y"
        constants[weights] = np.ones((4, 4, kernel, kernel), np.float32)
        types[weights], types[result] = TensorType((4, 4, kernel, kernel)), TensorType(shape)
        operations.append(
            ConvPlan(
                name=name,
                operands=(value, weights),
                results=(result,),
                window_kernel=(kernel, kernel),
                strides=(1, 1),
                dilations=(1, 1),
                pads_begin=(pad, pad),
                pads_end=(pad, pad),
            )
        )
        value = result
    return Module(
        name="chain",
        stage="plan-layouts",
        inputs=("x",),
        outputs=(value,),
        types=types,
        constants=constants,
        operations=tuple(operations),
    )
