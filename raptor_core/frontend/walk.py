"""The walk over a network's nodes, in order, that gives every value a type and takes out what needs no computing.

Coming to a node, the walk knows the types of its inputs and the values of those that are constant. It then
- takes the value of a Constant node, or of a Shape or Size node (shapes are static);
- puts the branch of an If node in its place when the condition is constant;
- lets the result of a node that changes nothing (Identity, Dropout, Cast to the same type, Reshape to the same shape)
  stand for its input;
- folds a node whose inputs are all constant (:mod:`raptor_core.frontend.folding`);
- and keeps any other node, with its results' types as onnx infers them.

One pass settles everything, chains such as Shape-Gather-Concat-Reshape included, because values flow only forwards.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import onnx

from raptor_core.frontend.control_flow import is_well_formed, taken_branch
from raptor_core.frontend.elements import array_type, static_shape, type_words
from raptor_core.frontend.folding import constant_value, fold, shape_value
from raptor_core.frontend.inference import InvalidNodeError, has_schema, infer_result_types
from raptor_core.frontend.problems import Problem
from raptor_core.frontend.structure import GraphNode, subgraphs
from raptor_core.frontend.tensors import TensorReader
from raptor_core.frontend.training import training_mode
from raptor_core.frontend.versions import normalised_domain
from raptor_core.frontend.windows import kernel_problem
from raptor_core.ir.module import Array

_SAME_SHAPE_SAME_VALUE = frozenset({"Cast", "CastLike", "Expand", "Flatten", "Reshape", "Squeeze", "Tile", "Unsqueeze"})
"""Operators that change nothing when their result has the type of their first input."""
_OF_ONE_INPUT = frozenset({"Concat", "Max", "Mean", "Min", "Sum"})
"""Operators that change nothing when they have a single input."""
_INVALID = "the model is not valid ONNX; export it again"


@attrs.define(eq=False)
class Walk:
    """State of the walk. After it, ``kept`` are the nodes left, in order; their inputs are constants, network inputs or
    results of kept nodes, never aliases. ``problems`` belong to kept nodes.

    ``aliases`` are the results that stand for other values, ``origins`` the nodes that aliases and constants came from.
    ``declared`` are the types that the model states, used only for operators that onnx does not know.
    """

    where: str
    reader: TensorReader
    versions: Mapping[str, int]
    declared: Mapping[str, onnx.TypeProto]
    names: set[str]
    types: dict[str, onnx.TypeProto] = attrs.field(factory=dict)
    constants: dict[str, Array] = attrs.field(factory=dict)
    aliases: dict[str, str] = attrs.field(factory=dict)
    origins: dict[str, GraphNode] = attrs.field(factory=dict)
    kept: list[GraphNode] = attrs.field(factory=list)
    problems: list[tuple[GraphNode, Problem]] = attrs.field(factory=list)

    def fresh(self, hint: str) -> str:
        """A value name not in use, made from ``hint``, and now in use."""
        name, k = hint, 1
        while name in self.names:
            name, k = f"{hint}.{k}", k + 1
        self.names.add(name)
        return name

    def resolved(self, name: str) -> str:
        """The value that a value stands for: itself unless it is an alias."""
        return self.aliases.get(name, name)

    def add_alias(self, name: str, value: str, origin: GraphNode) -> None:
        """Record that a node's result ``name`` stands for ``value``."""
        self.aliases[name] = self.resolved(value)
        self.origins[name] = origin

    def add_constant(self, name: str, array: Array, origin: GraphNode | None = None) -> None:
        """Record a value that is known, and the node it was folded from."""
        self.constants[name] = array
        self.types[name] = array_type(array)
        if origin is not None:
            self.origins[name] = origin

    def visit(self, node: GraphNode) -> None:
        """Deal with the next node. Raises RaptorError for tensors that cannot be read."""
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        proto.domain = normalised_domain(proto.domain)
        proto.input[:] = [self.resolved(name) for name in proto.input]
        node = attrs.evolve(node, proto=proto)
        if any(name and name not in self.types for name in proto.input):
            self.kept.append(node)  # an input has no type, and its producer's problem says why
        elif any(subgraphs(proto)):
            self._visit_subgraphs(node)
        elif proto.domain == "" and proto.op_type == "Constant" and any(proto.output[:1]):
            self._visit_constant(node)
        elif not self._takes_out(node):
            self._infer(node)

    def _keep(self, node: GraphNode, code: str, reason: str, hint: str) -> None:
        """Keep a node that is refused."""
        self.kept.append(node)
        self.problems.append((node, Problem(code, reason, hint)))

    def _visit_subgraphs(self, node: GraphNode) -> None:
        condition = self.constants.get(node.proto.input[0]) if node.proto.input else None
        if node.operator == "If" and not is_well_formed(node.proto):
            reason = "it needs a then_branch and an else_branch with as many outputs as it has"
            self._keep(node, "invalid-node", reason, _INVALID)
            return
        if node.operator != "If" or condition is None or condition.size != 1:
            reason = "it has a subgraph, and which of its nodes run is known only at run time"
            hint = "the chip has no branches or loops: export the network with its loops unrolled and choices made"
            self._keep(node, "control-flow", reason, hint)
            return
        branch = taken_branch(node, bool(condition.ravel()[0]), self.fresh, self.where)
        for name, tensor in branch.initializers.items():
            self.add_constant(name, self.reader.array(tensor))
        for inner in branch.nodes:
            self.visit(inner)
        for result, value in zip(node.proto.output, branch.outputs, strict=True):
            if result:
                self.add_alias(result, value, node)

    def _visit_constant(self, node: GraphNode) -> None:
        attributes = node.proto.attribute
        if len(attributes) == 1 and attributes[0].name == "value":
            self.add_constant(node.proto.output[0], self.reader.array(attributes[0].t), node)
            return
        value = constant_value(node.proto) if len(attributes) == 1 else None
        if value is None:
            hint = "give the value as a dense tensor of numbers"
            self._keep(node, "unsupported-constant", "its value is neither a dense tensor nor numbers", hint)
        else:
            self.add_constant(node.proto.output[0], value, node)

    def _takes_out(self, node: GraphNode) -> bool:
        """Deal with Shape, Size and Dropout, and with nodes in training mode; False for others."""
        proto = node.proto
        training = training_mode(proto, self.versions.get("", 1), self.constants)
        if training is not None:
            self._keep(node, "training-mode", training, "export the network for inference (evaluation mode)")
            return True
        shape = static_shape(self.types[proto.input[0]]) if any(proto.input[:1]) else None
        value = shape_value(proto, shape) if shape is not None and any(proto.output[:1]) else None
        if value is not None:
            self.add_constant(proto.output[0], value, node)
        return value is not None

    def _infer(self, node: GraphNode) -> None:
        proto = node.proto
        version = self.versions.get(proto.domain)
        if version is None:
            reason = f"the model imports no operator set of the domain '{proto.domain or 'ai.onnx'}'"
            self._keep(node, "invalid-node", reason, _INVALID)
            return
        if not has_schema(proto.op_type, proto.domain, version):
            self._infer_unknown(node)
            return
        try:
            inferred = infer_result_types(proto, self.types, self.constants, self.versions)
        except InvalidNodeError as error:
            self._keep(node, "invalid-node", str(error), _INVALID)
            return
        misfit = kernel_problem(proto, self.types, inferred.get(proto.output[0]))
        if misfit is not None:
            self._keep(node, "kernel-too-large", misfit, "use larger images, more padding or a smaller kernel")
            return
        inputs = {name: self.constants[name] for name in proto.input if name in self.constants}
        if len(inputs) == len(set(filter(None, proto.input))):
            values = fold(proto, inputs, inferred, self.versions)
            if values is not None:
                for name, array in values.items():
                    self.add_constant(name, array, node)
                return
        if self._changes_nothing(proto, inferred):
            self.add_alias(proto.output[0], proto.input[0], node)
            if any(proto.output[1:]):
                self._keep_mask(node)
            return
        self._accept(node, inferred)

    def _keep_mask(self, node: GraphNode) -> None:
        """Keep a Dropout node for its mask only, refused; when nothing uses the mask, it goes as a dead node."""
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        proto.output[0] = ""
        reason = f"its mask '{proto.output[1]}' is used, and masks are for training"
        hint = "export the network for inference (evaluation mode)"
        self._keep(attrs.evolve(node, proto=proto), "training-mode", reason, hint)

    def _infer_unknown(self, node: GraphNode) -> None:
        """Keep a node of an operator that onnx does not know, with the types that the model declares."""
        results = [name for name in node.proto.output if name]
        missing = [name for name in results if static_shape(self.declared.get(name, onnx.TypeProto())) is None]
        if missing:
            reason = (
                f"onnx does not know this operator, and the model does not state the type of its result '{missing[0]}'"
            )
            self._keep(node, "unknown-type", reason, "state the types of its results in the model (value_info)")
            return
        self._accept(node, self.declared)

    def _accept(self, node: GraphNode, types: Mapping[str, onnx.TypeProto]) -> None:
        """Keep a node whose results must have the static ``types``."""
        for name in filter(None, node.proto.output):
            type_ = types.get(name)
            if type_ is None or static_shape(type_) is None:
                reason = f"its result '{name}' ({type_words(type_)}) has no static shape"
                hint = "shapes must not depend on data; export the network with static shapes"
                self._keep(node, "unknown-type", reason, hint)
                return
        self.types.update({name: types[name] for name in node.proto.output if name})
        self.kept.append(node)

    def _changes_nothing(self, proto: onnx.NodeProto, inferred: Mapping[str, onnx.TypeProto]) -> bool:
        """Whether the first result equals the first input and no other result is computed."""
        if proto.domain or not any(proto.input[:1]) or not any(proto.output[:1]):
            return False
        if proto.op_type in ("Identity", "Dropout"):
            return True
        if proto.op_type in _OF_ONE_INPUT:
            return len(proto.input) == 1
        if proto.op_type not in _SAME_SHAPE_SAME_VALUE:
            return False
        before, after = self.types[proto.input[0]], inferred.get(proto.output[0])
        same_element = after is not None and before.tensor_type.elem_type == after.tensor_type.elem_type
        return same_element and static_shape(before) == static_shape(after or onnx.TypeProto())
