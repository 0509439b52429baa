"""Text that cannot be read: each refusal names the place and shows it."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raptor_core.diagnostics import ExitCode, PluginError, RaptorError, UsageError
from raptor_core.ir.operation import Dialect
from raptor_core.ir.parser import parse_module
from text_ir import DIALECTS, module_from

HEAD = 'module "t" stage "graph"\ninput %x : f32[2]\n'


def error_of(text: str) -> RaptorError:
    with pytest.raises(RaptorError) as caught:
        module_from(HEAD + text)
    assert caught.value.exit_code is ExitCode.INPUT
    return caught.value


def test_an_unknown_operation_is_shown_with_the_nearest_one() -> None:
    error = error_of('%y = spatial.pointwize(%x) : f32[2] loc("n")\n')
    assert error.render() == (
        "error[invalid-ir-text]: unknown operation 'spatial.pointwize'\n"
        "  where    test.rir:4:6\n"
        '  - %y = spatial.pointwize(%x) : f32[2] loc("n")\n'
        "  -      ^\n"
        "  help     did you mean 'spatial.pointwise'? known: spatial.clear, spatial.conv, spatial.convert_layout, "
        "spatial.copy, spatial.load, spatial.mirror, spatial.pointwise, spatial.storage, spatial.store, "
        "spatial.transfer"
    )


def test_a_wrong_field_is_shown_with_the_nearest_one() -> None:
    error = error_of('%y = test.any(%x) {\n  value = 1,\n  cuonts = [1]\n} : f32[2] loc("n")\n')
    assert error.render() == (
        "error[invalid-ir-text]: operation test.any has no field 'cuonts'\n"
        "  where    test.rir:6:3\n"
        "  -   cuonts = [1]\n"
        "  -   ^\n"
        "  help     did you mean 'counts'? known: counts, label, private, ratio, steps, table, value"
    )


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ('%y = tset.any() loc("n")', "unknown dialect 'tset' of operation 'tset.any'", "4:6"),
        ('test.any() {value = #test.pont<x = 1>} loc("n")', "unknown attribute '#test.pont'", "4:21"),
        ('test.any() {value = #test.point} loc("n")', "#test.point lacks the field 'x'", "4:21"),
        ('test.any() {value = #test.point<x = 1, x = 2>} loc("n")', "#test.point is given the field 'x' twice", "4:40"),
        ('test.any() {value = #layout<name = "a", order = [1]>} loc("n")', "#layout is not well formed", "4:21"),
        ('test.any() {counts = 1} loc("n")', "the field 'counts' of operation test.any must be a sequence", "4:22"),
        ('test.any() {ratio = "1"} loc("n")', "the field 'ratio' of operation test.any must be a number", "4:21"),
        ('test.any() {label = 1} loc("n")', "the field 'label' of operation test.any must be a string", "4:21"),
        (
            'test.any() {private = 1} loc("n")',
            "the field 'private' of operation test.any must be true or false",
            "4:23",
        ),
        ('test.any() {table = 1} loc("n")', "the field 'table' of operation test.any must be a mapping", "4:21"),
        (
            'test.any() {counts = [1, true]} loc("n")',
            "the field 'counts' of operation test.any must be a sequence whose items are each an integer",
            "4:22",
        ),
        (
            'test.any() {steps = array<f32[1], [1.0]>} loc("n")',
            "the field 'steps' of operation test.any must be an array of int64 or none",
            "4:21",
        ),
        ('test.any() loc("n"', "expected ')', found the end of the text", "4:19"),
        ('test.any(%x %x) loc("n")', "expected ',', found '%x'", "4:13"),
        ('test.any(x) loc("n")', "expected a value name such as %x, found 'x'", "4:10"),
        ('test.any() {value = maybe} loc("n")', "expected a value, found 'maybe'", "4:21"),
        ('test.any() {value = {a: 1, a: 2}} loc("n")', "the key 'a' is given twice", "4:28"),
        ('%y = test.any() loc("n")', "expected ':', found 'loc'", "4:17"),
        ("output 3", "expected a value name such as %x, found '3'", "4:8"),
        ("value %v : f31[2]", "unknown element type 'f31'", "4:12"),
        ("value %v : f32[-2]", "expected an extent, found '-2'", "4:16"),
        ("value %v : f32[99999999999999999999]", "expected an extent, found '99999999999999999999'", "4:16"),
        ("value %v : f32[2] layout a(1)", "this is not an order of axes", "4:27"),
        ("value %x : f32[3]", "the value '%x' has two types: f32[2] and f32[3]", "4:7"),
        ("property a = 1 property a = 2", "the property 'a' is given twice", "4:25"),
        ("property a = " + "1" * 1200, "an integer of more than 1000 digits", "4:14"),
        ("property a = " + "[" * 100 + "]" * 100, "values are nested deeper than 64 levels", "4:79"),
        ('property a = "\\q"', "a string with a bad escape or control character", "4:14"),
        ('property a = "abc', "a string without its end: '\"'", "4:14"),
        ("property a = $", "a character that fits nowhere: '$'", "4:14"),
        ("constant %c : f32[2] = array<f32[2], [1.0]>", "1 elements for an array of 2", "4:38"),
        (
            "constant %c : f32[2] = array<f32[9000000000,9000000000], []>",
            "0 elements for an array of 81000000000000000000",
            "4:58",
        ),
        ("constant %c : f32[2] = array<f33[2], [1.0]>", "unknown element type 'f33'", "4:30"),
        ("constant %c : i8[1] = array<i8[1], [300]>", "this is not an element of an array of int8", "4:37"),
        ("constant %c : i8[1] = array<i8[1], [1.0]>", "this is not an element of an array of int8", "4:37"),
        ("constant %c : f32[1] = array<f32[1], [1e39]>", "this is not an element of an array of float32", "4:39"),
        ("constant %c : f32[1] = array<f32[1], [true]>", "this is not an element of an array of float32", "4:39"),
        ("constant %c : bool[1] = array<bool[1], [1]>", "this is not an element of an array of bool", "4:41"),
        (
            "constant %c : f32[1] = array<f32[1], [" + "array<f32[1], [" * 3000,
            "expected an array element, found 'array'",
            "4:39",
        ),
        ("constant %c : f32[1] = array<f32[1], @abc>", "the side file has no array '@abc'", "4:38"),
    ],
)
def test_bad_text_is_refused_at_its_place(text: str, message: str, place: str) -> None:
    error = error_of(text)
    assert (error.message, error.where) == (message, f"test.rir:{place}")
    line, caret = error.details
    assert caret.strip() == "^"
    assert len(line) <= 100


def test_other_versions_are_refused() -> None:
    with pytest.raises(RaptorError) as caught:
        parse_module('raptor-ir 2\nmodule "t" stage "graph"', {}, DIALECTS)
    assert caught.value.render() == (
        "error[invalid-ir-text]: format version 2 is not known\n"
        "  where    <text>:1:11\n"
        "  reason   this Raptor reads 1\n"
        "  - raptor-ir 2\n"
        "  -           ^"
    )


def test_the_caret_stands_right_in_a_long_line() -> None:
    error = error_of("property a = [" + "1, " * 500 + "$, " + "1, " * 500 + "]")
    line, caret = error.details
    assert line[caret.index("^")] == "$"


def test_a_function_of_dialects_is_asked_by_name_only() -> None:
    asked = []

    def find(name: str) -> Dialect:
        asked.append(name)
        if name not in DIALECTS:
            raise UsageError("unknown-dialect", f"unknown dialect '{name}'")
        return DIALECTS[name]

    text = 'raptor-ir 1 module "t" stage "s" %y = spatial.pointwise(%x) {function = #test.apply} : ? loc("n")'
    assert len(parse_module(text, {}, find).operations) == 1
    assert asked == ["spatial", "test"]
    with pytest.raises(RaptorError, match="unknown dialect 'nowhere'"):
        parse_module('raptor-ir 1 module "t" stage "s" nowhere.op() loc("n")', {}, find)


def test_a_broken_dialect_stops_only_texts_that_name_it() -> None:
    def find(name: str) -> Dialect:
        if name == "broken":
            raise PluginError("broken", "plugin broken")
        return DIALECTS[name]

    text = 'raptor-ir 1 module "t" stage "s" test.any() {{value = #{}<lo = [0], hi = [1]>}} loc("n")'

    class Lazy(dict[str, Dialect]):
        def __getitem__(self, name: str) -> Dialect:
            return find(name)

    dialects = Lazy({"broken": DIALECTS["test"], **DIALECTS})
    assert len(parse_module(text.format("box"), {}, dialects).operations) == 1
    with pytest.raises(PluginError):
        parse_module(text.format("broken.box"), {}, dialects)
    with pytest.raises(PluginError):
        parse_module('raptor-ir 1 module "t" stage "s" broken.op() loc("n")', {}, dialects)


WORDS = (
    'raptor-ir 1 module "t" stage input output property constant value %x %y : f32 [ ] ( ) { } < > , = ? @k _ loc'
    " test.any #test.point #box value counts x 1 -2 0.5 inf nan none true array layout spatial.conv"
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(WORDS.split()), max_size=40).map(" ".join)))
def test_no_text_makes_another_error(text: str) -> None:
    with contextlib.suppress(RaptorError):
        parse_module('raptor-ir 1 module "t" stage "s"\n' + text, {}, DIALECTS)
