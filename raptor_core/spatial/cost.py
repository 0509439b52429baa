"""What computing one box costs, estimated from the kernel that would be emitted for it."""

from __future__ import annotations

import math

from raptor_core.ir.operation import Types
from raptor_core.spatial.boxes import Box
from raptor_core.spatial.compute import ComputeOp, lane_kernel
from raptor_core.spatial.kernel import Kernel, View
from raptor_core.targets.machine import Machine


def nominal_views(op: ComputeOp, out_box: Box, types: Types) -> tuple[View, tuple[View | None, ...]]:
    """The views of a lane whose operands and result each fill their storage exactly: the result's, the operands'.

    Views are packed in the order of their value's layout. Operand k is slot k and the result slot ``len(operands)``;
    an operand that is absent or not needed has None.
    """
    result = View.packed(len(op.operands), out_box.extents, types[op.results[0]].order)
    operands: list[View | None] = []
    for k, operand in enumerate(op.operands):
        region = op.region(k, out_box, types) if operand else None
        if region is None or region.is_empty:
            operands.append(None)
        else:
            operands.append(View.packed(k, region.extents, types[operand].order))
    return result, tuple(operands)


def box_kernel(op: ComputeOp, out_box: Box, types: Types, machine: Machine) -> Kernel:
    """The kernel of ``out_box``, epilogue included, on nominal views."""
    result, operands = nominal_views(op, out_box, types)
    return lane_kernel(op, out_box, result, operands, types, machine.crossbar_rows)


def weight_axes(op: ComputeOp, types: Types) -> tuple[int, ...]:
    """The axes of the result along which intervals of one size need different weights."""
    shape, axes = types[op.results[0]].shape, []
    whole = Box.whole(shape)
    for axis, granularity in enumerate(op.cut_granularity(types)):
        units = math.ceil(shape[axis] / granularity)
        if units < 2:
            continue
        second = math.ceil(units / 2) * granularity
        head = whole.replace(axis, 0, shape[axis] - second)
        tail = whole.replace(axis, second, shape[axis])
        if op.weights_key(head, types) != op.weights_key(tail, types):
            axes.append(axis)
    return tuple(axes)


def box_cost(op: ComputeOp, out_box: Box, types: Types, machine: Machine) -> float:
    """Nanoseconds one core needs for ``out_box``, epilogue included, with operands at hand."""
    return machine.kernel_ns(box_kernel(op, out_box, types, machine))
