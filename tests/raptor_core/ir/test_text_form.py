"""What the text looks like, and that everything printed reads back the same."""

from __future__ import annotations

import math
import time
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from raptor_core.diagnostics import InternalError
from raptor_core.ir.attribute_text import ARRAY_DTYPES
from raptor_core.ir.equality import modules_equal, values_equal
from raptor_core.ir.module import Module
from raptor_core.ir.parser import parse_module
from raptor_core.ir.printer import print_module
from raptor_core.ir.types import ELEMENT_BYTES, Layout, TensorType
from raptor_core.ir.wrapping import LINE_WIDTH
from text_ir import DIALECTS, Anything, Point, module_from, text_of

CANONICAL = """\
module "tiny \\"net\\"" stage "lower"
input %x : f32[1,3,8,8]
input %"odd name" : i64[]
output %y
property test.steps = 3
property "not a word" = {a: [1, 2.5], "b c": none}
constant %w : f32[4,3,1,1] = array<f32[4,3,1,1], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.90000004, 1.0, -0.0]>

%layer1/conv, _ = test.any(%x, _, %"odd name") {
  value = [true, #test.point<x = 1, inner = #test.point<x = -2, y = inf>>, "a\\nb", array<i64[2,0], []>],
  counts = [1, 2],
  private = true
} : f32[1,3,8,8] layout rows(0,2,3,1), ? loc("layer1/conv")
%y = spatial.pointwise(%layer1/conv) {function = #test.apply} : f32[1,3,8,8] loc("relu")
test.any() loc("no results")
"""


def test_the_canonical_text_reads_back_and_prints_the_same() -> None:
    module = module_from(CANONICAL)
    assert text_of(module) == CANONICAL
    op = module.operations[0]
    assert isinstance(op, Anything)
    assert op.operands == ("x", "", "odd name")
    assert op.results == ("layer1/conv", "")
    assert op.value[:3] == (True, Point(1, inner=Point(-2, math.inf)), "a\nb")
    assert op._private is True
    assert module.types["layer1/conv"].layout == Layout("rows", (0, 2, 3, 1))
    assert module.constants["w"].dtype == np.float32
    assert module.constants["w"][0, 1, 0, 0] == np.float32(0.1)


def test_comments_and_line_breaks_do_not_matter() -> None:
    module = module_from("""
        module "t" // a name
        stage "graph"  input %x : f32[2] // %y
        %y
          = test.any
          (%x) {} : f32[2]
          loc("n")
        output %y
    """)
    assert text_of(module) == (
        'module "t" stage "graph"\ninput %x : f32[2]\noutput %y\n\n%y = test.any(%x) : f32[2] loc("n")\n'
    )


def test_long_lines_are_broken() -> None:
    op = Anything(name="n", value=tuple(range(200)), table={"k" * 30: ("v" * 40,) * 5}, results=("y",))
    text = text_of(Module(name="t", operations=(op,), types={"y": TensorType((1,))}))
    assert max(map(len, text.splitlines())) <= LINE_WIDTH
    assert len(text.splitlines()) < 25


# ---- properties ------------------------------------------------------------------------------------------------
names = st.one_of(st.from_regex(r"[a-z][a-z0-9_./]{0,8}", fullmatch=True), st.text(min_size=1, max_size=8))
arrays = st.sampled_from(list(ARRAY_DTYPES.values())).flatmap(
    lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6))
)
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), arrays, st.just(np.float32(0.1))
)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.text(max_size=6), inner, max_size=3),
        st.builds(Point, x=st.integers(), y=st.floats(), inner=inner),
    ),
    max_leaves=12,
)


@st.composite
def types(draw: st.DrawFn) -> TensorType:
    shape = tuple(draw(st.lists(st.integers(0, 2**40), max_size=4)))
    order = tuple(draw(st.permutations(range(len(shape)))))
    layout = draw(st.none() | st.builds(Layout, names, st.just(order)))
    return TensorType(shape, draw(st.sampled_from(sorted(ELEMENT_BYTES))), layout)


@st.composite
def modules(draw: st.DrawFn) -> Module:
    """Modules of any content, valid or not."""
    known = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    some = st.lists(st.sampled_from(known), max_size=3).map(tuple)
    operations = st.builds(
        Anything,
        name=st.text(max_size=8),
        operands=st.lists(st.sampled_from([*known, ""]), max_size=3).map(tuple),
        results=some,
        value=values,
        counts=st.lists(st.integers(), max_size=40).map(tuple),
        ratio=st.floats(),
        label=st.text(max_size=200),
        table=st.dictionaries(st.text(max_size=6), values, max_size=2),
        steps=st.none() | npst.arrays(np.int64, st.integers(0, 200)),
        private=st.booleans(),
    )
    return Module(
        name=draw(st.text(max_size=8)),
        stage=draw(names),
        inputs=draw(some),
        outputs=draw(some),
        types=draw(st.dictionaries(st.sampled_from(known), types(), max_size=8)),
        constants=draw(st.dictionaries(st.sampled_from(known), arrays, max_size=3)),
        operations=tuple(draw(st.lists(operations, max_size=4))),
        properties=draw(st.dictionaries(st.text(max_size=8), values, max_size=2)),
    )


@settings(max_examples=150, deadline=None)
@given(modules())
def test_any_module_reads_back_the_same(module: Module) -> None:
    text, large = print_module(module)
    again = parse_module(text, large, DIALECTS)
    assert modules_equal(module, again)
    assert print_module(again)[0] == text
    if not any('"' in line for line in text.splitlines()):
        assert max(map(len, text.splitlines())) <= 2 * LINE_WIDTH


@settings(max_examples=200, deadline=None)
@given(values, values)
def test_equality_of_values_is_equality_of_text(a: Any, b: Any) -> None:
    def text(value: Any) -> str:
        return text_of(Module(name="", properties={"v": value}))

    assert values_equal(a, a)
    if "{" not in text(a):  # the order of keys shows in the text only
        assert values_equal(a, b) == (text(a) == text(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1.0),
        (1, True),
        (0.0, -0.0),
        ((1,), (1, 2)),
        ({"a": 1}, {"a": 2}),
        ("1", 1),
        (np.zeros(2), np.zeros(2, np.float32)),
        (np.zeros(2), -np.zeros(2)),
        (np.zeros((2, 1)), np.zeros((1, 2))),
        (Point(1), Point(2)),
        (None, False),
    ],
)
def test_what_differs_is_not_equal(a: Any, b: Any) -> None:
    assert not values_equal(a, b)
    assert not values_equal(b, a)


def test_large_arrays_are_quick_and_stand_beside_the_text() -> None:
    ops = tuple(Anything(name=f"n{k}", value=np.arange(100_000) + k, steps=np.arange(100_000)) for k in range(20))
    module = Module(name="big", operations=ops)
    begin = time.perf_counter()
    text, large = print_module(module)
    again = parse_module(text, large, DIALECTS)
    assert time.perf_counter() - begin < 2.0
    assert len(text) < 5000
    assert len(large) == 20, "equal arrays are kept once"
    assert modules_equal(module, again)


def test_values_without_text_form_are_refused() -> None:
    @attrs.frozen
    class Plain:
        x: int = 0

    def refusal(value: Any) -> str:
        with pytest.raises(InternalError) as caught:
            print_module(Module(name="t", properties={"v": value}))
        return caught.value.message

    nested: Any = 1
    for _ in range(70):
        nested = (nested,)
    assert refusal(Plain()).startswith("a value of class ")
    assert refusal(b"bytes").startswith("a value of class builtins.bytes has no text form")
    assert refusal({1: 2}) == "a mapping with the key 1 has no text form: keys are strings"
    assert refusal(np.array(["a"])) == "an array of element type <U1 has no text form"
    assert refusal(np.array([None])) == "an array of element type object has no text form"
    assert refusal(10**1200) == "an integer of more than 1000 digits has no text form"
    assert refusal(nested) == "a value is nested deeper than 64 levels"


def test_the_largest_numbers_read_back() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        largest = np.array([np.finfo(dtype).max, -np.finfo(dtype).max], dtype=dtype)
        module = Module(name="m", properties={"test.largest": largest})
        text, arrays = print_module(module)
        assert np.array_equal(parse_module(text, arrays, {}).properties["test.largest"], largest)


def test_nan_keeps_its_sign() -> None:
    module = Module(
        name="m",
        properties={"test.one": [math.nan, -math.nan], "test.many": np.array([np.nan, -np.nan, 1], dtype=np.float32)},
    )
    text, arrays = print_module(module)
    assert "[nan, -nan]" in text
    again = parse_module(text, arrays, {})
    assert modules_equal(again, module)
    assert list(np.signbit(again.properties["test.one"])) == [False, True]
    assert again.properties["test.many"].tobytes() == module.properties["test.many"].tobytes()
    other = Module(name="m", properties={**module.properties, "test.one": [math.nan, math.nan]})
    assert not modules_equal(other, module)
