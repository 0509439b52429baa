"""The crossbar product."""

from __future__ import annotations

import numpy as np

from raptor_functional.kernels.elements import load_elements, reserve, store_elements
from raptor_functional.kernels.jit import floats_at, kernel
from raptor_functional.kernels.state import OK, State


@kernel
def product(state: State, core: int, d: int, a: int, relu: int, group: int) -> int:
    """y[j] = sum over i of x[i] * W[i][j], in float32, i ascending, for the rows that are not all zero.

    The input is at local address ``a``, the result goes to ``d``.
    """
    width_in = state.widths[core, 0]
    width_out = state.widths[core, 1]
    matrix = state.group_matrix[state.group_first[core] + group]
    columns = state.columns[matrix]
    begin = state.rows_first[matrix]
    count = state.rows_first[matrix + 1] - begin
    needed = state.rows[begin + count - 1] + 1 if count > 0 else 0
    code = reserve(state, core, a, needed * width_in)
    if code == OK:
        code = reserve(state, core, d, columns * width_out)
    if code != OK:
        return code
    base = state.local[core]
    if width_in == 4 and a & 3 == 0:
        x = floats_at(base + a, needed)
    else:
        x = np.empty(needed, np.float32)
        load_elements(base + a, width_in, x)
    rows = state.rows[begin : begin + count]
    sums = state.sums[:columns]
    sums[:] = np.float32(0.0)
    first = state.matrix_first[matrix]
    weights = state.weights
    done = 0
    while done + 4 <= count:
        x0 = x[rows[done]]
        x1 = x[rows[done + 1]]
        x2 = x[rows[done + 2]]
        x3 = x[rows[done + 3]]
        at0 = first + rows[done] * columns
        at1 = first + rows[done + 1] * columns
        at2 = first + rows[done + 2] * columns
        at3 = first + rows[done + 3] * columns
        w0 = weights[at0 : at0 + columns]
        w1 = weights[at1 : at1 + columns]
        w2 = weights[at2 : at2 + columns]
        w3 = weights[at3 : at3 + columns]
        for j in range(columns):
            sums[j] = (((sums[j] + x0 * w0[j]) + x1 * w1[j]) + x2 * w2[j]) + x3 * w3[j]
        done += 4
    while done < count:
        x0 = x[rows[done]]
        at0 = first + rows[done] * columns
        w0 = weights[at0 : at0 + columns]
        for j in range(columns):
            sums[j] += x0 * w0[j]
        done += 1
    if relu == 1:
        zero = np.float32(0.0)
        for j in range(columns):
            sums[j] = zero if sums[j] <= zero else sums[j]
    if width_out == 4 and d & 3 == 0:
        y = floats_at(base + d, columns)
        for j in range(columns):
            y[j] = sums[j]
    else:
        store_elements(sums, base + d, width_out)
    return OK
