"""ONNX nodes become plan operations, or one error names all that cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import attrs
import numpy as np
import pytest

from raptor_core.diagnostics import ExitCode, PluginError, RaptorError
from raptor_core.frontend.node import OnnxNode
from raptor_core.ir.module import Module, Rewriter
from raptor_core.ir.types import TensorType
from raptor_core.passes.base import PassContext
from raptor_core.spatial.compute import Pointwise
from raptor_core.spatial.passes.lower import LOWER
from text_ir import Anything, Apply, Sum, module_from, operations_of, text_of

Lower = Callable[[OnnxNode, Rewriter], None]


@attrs.frozen
class Lowering:
    """A lowering made of two functions."""

    name: ClassVar[str] = "test"
    api_version: ClassVar[int] = 1
    summary: ClassVar[str] = ""

    lower: Lower
    check: Callable[[OnnxNode, Module], Any] = lambda node, module: None


class Plugins:
    """Stands for the plugin manager."""

    def __init__(self, lowerings: Mapping[str, Lowering]) -> None:
        self.lowerings = lowerings

    def has(self, group: str, name: str) -> bool:
        assert group == "raptor.operator_lowerings"
        return name in self.lowerings

    def get(self, group: str, name: str) -> Lowering:
        return self.lowerings[name]


def context(**lowerings: Lowering) -> PassContext:
    return PassContext(machine=cast(Any, None), plugins=cast(Any, Plugins(lowerings)))


def relu(node: OnnxNode, rewriter: Rewriter) -> None:
    rewriter.append(Pointwise(name=node.name, operands=node.operands, results=node.results[:1], function=Apply()))


def add_one_and_relu(node: OnnxNode, rewriter: Rewriter) -> None:
    type_ = rewriter.types[node.operands[0]]
    one = rewriter.new_constant(f"{node.name}/one", np.ones(type_.shape))
    total = rewriter.new_value(f"{node.name}/sum", type_)
    rewriter.append(Sum(name=node.name, operands=(node.operands[0], one), results=(total,)))
    rewriter.append(Pointwise(name=node.name, operands=(total,), results=node.results[:1], function=Apply()))


NETWORK = """
    module "net" stage "graph"
    input %x : f32[2]
    output %z
    constant %unused : f32[1] = array<f32[1], [1]>
    %y, %mask = onnx.node(%x) {op_type = "Relu", index = 0} : f32[2], bool[2] loc("first")
    %z = onnx.node(%y) {op_type = "Shift", index = 1} : f32[2] loc("second")
"""


def test_every_node_becomes_its_operations() -> None:
    result = LOWER.run(module_from(NETWORK), context(Relu=Lowering(relu), Shift=Lowering(add_one_and_relu)))
    assert text_of(result.module) == (
        'module "net" stage "lower"\n'
        "input %x : f32[2]\n"
        "output %z\n"
        "constant %second/one : f32[2] = array<f32[2], [1.0, 1.0]>\n"
        "\n"
        '%y = spatial.pointwise(%x) {function = #test.apply} : f32[2] loc("first")\n'
        '%second/sum = test.sum(%y, %second/one) : f32[2] loc("second")\n'
        '%z = spatial.pointwise(%second/sum) {function = #test.apply} : f32[2] loc("second")\n'
    )
    assert result.notes == {"nodes": 2, "operations": 3}


def test_operations_that_are_lowered_already_stay() -> None:
    text = NETWORK.replace('onnx.node(%y) {op_type = "Shift", index = 1}', "test.sum(%y, %y)")
    result = LOWER.run(module_from(text), context(Relu=Lowering(relu)))
    assert operations_of(result.module)[1] == '%z = test.sum(%y, %y) : f32[2] loc("second")'


def test_a_constant_without_type_gets_one() -> None:
    def lower(node: OnnxNode, rewriter: Rewriter) -> None:
        rewriter.constants["c"] = np.ones(2, np.float32)
        rewriter.append(Sum(name=node.name, operands=(node.operands[0], "c"), results=node.results))

    result = LOWER.run(module_from(NETWORK), context(Relu=Lowering(relu), Shift=Lowering(lower)))
    assert result.module.types["c"] == TensorType((2,))


def test_all_nodes_that_cannot_be_lowered_are_named_at_once() -> None:
    refusing = Lowering(relu, lambda node, module: "axis 7 does not exist" if node.name == "third" else None)
    text = NETWORK + (
        '    %a = onnx.node(%z) {op_type = "Relu", index = 2} : f32[2] loc("third")\n'
        '    %b = onnx.node(%z) {op_type = "Swish", domain = "com.acme", index = 3} : f32[2] loc("")\n'
    )
    with pytest.raises(RaptorError) as caught:
        LOWER.run(module_from(text), context(Relu=refusing))
    assert caught.value.exit_code is ExitCode.INPUT
    assert caught.value.render() == (
        "error[unsupported-operators]: 3 of 4 nodes cannot be compiled\n"
        "  where    network 'net'\n"
        "  - Shift node 'second' (node 1, 'z' f32[2]): no installed plugin lowers this operator\n"
        "  - Relu node 'third' (node 2, 'a' f32[2]): axis 7 does not exist\n"
        "  - com.acme::Swish node '' (node 3, 'b' f32[2]): no installed plugin lowers this operator\n"
        "  help     'raptor plugins list --kind operator-lowering' shows the operators that can be compiled; "
        "a plugin may add others"
    )


def test_refusals_of_lowerings_alone_do_not_speak_of_plugins() -> None:
    refusing = Lowering(relu, lambda node, module: "axis 7 does not exist")
    with pytest.raises(RaptorError) as caught:
        LOWER.run(module_from(NETWORK), context(Relu=refusing, Shift=Lowering(relu)))
    assert caught.value.hint == "change these nodes in the model, or export it in another way"


def test_values_that_are_too_large_are_refused_before_anything_is_lowered() -> None:
    text = NETWORK.replace("%x : f32[2]", "%x : f32[4611686018427387904,2]").replace(
        ': f32[2] loc("second")', ': f32[2147483649] loc("second")'
    )
    with pytest.raises(RaptorError) as caught:
        LOWER.run(module_from(text), context(Relu=Lowering(stop), Shift=Lowering(stop)))
    assert caught.value.exit_code is ExitCode.INPUT
    assert caught.value.render() == (
        "error[value-too-large]: the network has values that are too large\n"
        "  where    network 'net'\n"
        "  reason   no value may have more than 2147483648 elements\n"
        "  - input 'x' f32[4611686018427387904,2] has 9223372036854775808 elements\n"
        "  - Shift node 'second': its result 'z' f32[2147483649] has 2147483649 elements\n"
        "  help     use a smaller batch or smaller images, or split the network"
    )


def nothing(node: OnnxNode, rewriter: Rewriter) -> None:
    pass


def stop(*arguments: object) -> None:
    raise KeyError("axis")


def other_type(node: OnnxNode, rewriter: Rewriter) -> None:
    relu(node, rewriter)
    rewriter.types[node.results[0]] = TensorType((3,))


def other_dialect(node: OnnxNode, rewriter: Rewriter) -> None:
    rewriter.append(Anything(name=node.name, results=node.results))


@pytest.mark.parametrize(
    ("lowering", "reason"),
    [
        (Lowering(nothing), "it does not define the node's result 'z'"),
        (Lowering(stop), "it stopped with KeyError: 'axis'"),
        (Lowering(other_type), "it made 'z' f32[3], the network says f32[2]"),
        (Lowering(other_dialect), "it made an operation of kind test.any, which is not a plan operation"),
        (Lowering(relu, stop), "its check stopped with KeyError: 'axis'"),
        (Lowering(relu, lambda node, module: True), "its check gave bool, neither a reason nor None"),
    ],
)
def test_a_broken_lowering_is_named(lowering: Lowering, reason: str) -> None:
    with pytest.raises(PluginError) as caught:
        LOWER.run(module_from(NETWORK), context(Relu=Lowering(relu), Shift=lowering))
    assert caught.value.render() == (
        "error[broken-lowering]: operator lowering 'test' failed on Shift node 'second'\n"
        f"  where    {__name__}.Lowering, node 1\n"
        f"  reason   {reason}\n"
        f"  help     this is a bug in the package {__name__.partition('.')[0]}; report it there"
    )


def test_a_lowerings_own_refusal_passes_as_it_is() -> None:
    def refuse(node: OnnxNode, rewriter: Rewriter) -> None:
        raise RaptorError("too-large", "it does not fit")

    with pytest.raises(RaptorError) as caught:
        LOWER.run(module_from(NETWORK), context(Relu=Lowering(refuse), Shift=Lowering(relu)))
    assert caught.value.code == "too-large"
