"""From a checked PIMCOMP program and the model it was made of to an artifact."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np

from raptor_core.frontend.load import load_graph
from raptor_core.ir.module import Module
from raptor_pim.artifacts import Artifact, ArtifactConfig, TensorInfo
from raptor_pim.artifacts.chip import ChipConfiguration
from raptor_pimcomp.host import HostImage
from raptor_pimcomp.stream import Stream, bad_stream
from raptor_pimcomp.translate import Translator
from raptor_pimcomp.weights import Array as Matrix
from raptor_pimcomp.weights import LayerWeights, group_matrix, layer_weights

_WITHOUT_INSTRUCTIONS = frozenset(
    ("OP_LRN", "OP_SOFTMAX", "OP_TRANSPOSE", "OP_MATMUL", "OP_BN", "OP_CLIP", "OP_SHUFFLE", "OP_PAD")
)
"""Layers that PIMCOMP lets data pass unchanged, although they would change it."""


@attrs.frozen(eq=False)
class _Groups:
    """Array groups by core: crossbars and matrix of each, and the number on its core of (core, array group)."""

    sizes: tuple[tuple[int, ...], ...]
    matrices: tuple[tuple[int, ...], ...]
    numbers: Mapping[tuple[int, int], int]
    distinct: tuple[Matrix, ...]


def import_stream(stream: Stream, model: str, configuration: ChipConfiguration | None = None) -> Artifact:
    """The artifact that does what ``stream`` says, with the weights of the ONNX model at ``model``.

    The artifact's inputs and output are the model's. Crossbars are those of ``configuration``; without one, as high
    and wide as the largest array group's. Raises RaptorError when program and model do not belong together, when the
    program is of batch mode, or when it does not do what the network says.
    """
    module = load_graph(model)
    _check_whole(stream, module)
    weights = layer_weights(module, stream)
    shape = configuration.crossbar_shape if configuration is not None else _crossbar_shape(stream)
    groups = _place_groups(stream, weights, shape)
    if configuration is not None:
        _check_room(stream, groups, configuration)
    image = HostImage()
    source = image.tensor(TensorInfo(module.inputs[0], module.types[module.inputs[0]].shape))
    result = image.tensor(TensorInfo(module.outputs[0], module.types[module.outputs[0]].shape))
    translator = Translator(
        groups.numbers,
        _biases(stream, weights, image),
        frozenset(number for number, node in enumerate(stream.nodes) if node.providers == (0,)),
        image,
        source,
        result,
        len(stream.cores),
        stream.where,
    )
    programs = tuple(translator.program(core, instructions) for core, instructions in enumerate(stream.cores))
    config = ArtifactConfig(
        core_cnt=len(stream.cores),
        xbar_size=shape,
        array_group_map=groups.sizes,
        weights=groups.matrices,
        inputs_addresses=(source.address,),
        inputs_sizes=(source.info.byte_size,),
        outputs_addresses=(result.address,),
        outputs_sizes=(result.info.byte_size,),
        inputs=(source.info,),
        outputs=(result.info,),
        xbar_array_count=configuration.crossbars_per_core if configuration is not None else None,
        pipeline_stages=1,
    )
    return Artifact(config, programs, groups.distinct, image.bytes())


def _check_whole(stream: Stream, module: Module) -> None:
    """What makes a program one that can be run from the network's input to its output."""
    if len(module.inputs) != 1 or len(module.outputs) != 1:
        raise bad_stream(stream.where, "only networks of one input and one output can be imported")
    for node in stream.nodes:
        if node.folded or node.operation in _WITHOUT_INSTRUCTIONS:
            what = node.folded[0] if node.folded else node.operation
            raise bad_stream(stream.where, f"layer '{node.name}' has {what}, for which PIMCOMP makes no instructions")
    stores = [fields for core in stream.cores for fields in core if fields.get("operation") == "ST"]
    if not stores:
        raise bad_stream(stream.where, "the program stores no output")
    targets = {fields.get("destination_address") for fields in stores}
    (target,) = targets if len(targets) == 1 else (None,)
    if not isinstance(target, int) or not 0 < -target < len(stream.nodes):
        raise bad_stream(stream.where, "it stores several layers' results: only programs of element mode can be run")


def _check_room(stream: Stream, groups: _Groups, configuration: ChipConfiguration) -> None:
    most = max(map(sum, groups.sizes), default=0)
    if most > configuration.crossbars_per_core or len(stream.cores) > configuration.core_count:
        raise bad_stream(
            stream.where,
            f"it takes {len(stream.cores)} cores of up to {most} crossbars; the chip has {configuration.core_count} "
            f"of {configuration.crossbars_per_core}",
        )


def _crossbar_shape(stream: Stream) -> tuple[int, int]:
    if not stream.array_groups:
        raise bad_stream(f"{stream.where}: AG_info", "it lists no array group")
    return (
        max(group.height[1] - group.height[0] for group in stream.array_groups),
        max(group.columns[1] - group.columns[0] for group in stream.array_groups),
    )


def _place_groups(stream: Stream, weights: Mapping[str, LayerWeights], shape: tuple[int, int]) -> _Groups:
    """Every array group on the core whose products use it, in order of array groups; equal matrices once."""
    used: list[set[int]] = [
        {number for fields in core if isinstance(number := fields.get("source"), int)} for core in stream.cores
    ]
    numbers: dict[tuple[int, int], int] = {}
    sizes, matrices = [], []
    distinct: dict[object, int] = {}
    arrays: list[Matrix] = []
    for core, groups in enumerate(used):
        on_core: list[tuple[int, int]] = []
        for number in sorted(groups):
            if not 0 <= number < len(stream.array_groups):
                continue  # refused where the product is translated
            group = stream.array_groups[number]
            if group not in distinct:
                distinct[group] = len(arrays)
                arrays.append(group_matrix(group, weights, shape[0], stream.where))
            numbers[core, number] = len(on_core)
            on_core.append((-(-(group.columns[1] - group.columns[0]) // shape[1]), distinct[group]))
        sizes.append(tuple(size for size, _ in on_core))
        matrices.append(tuple(matrix for _, matrix in on_core))
    return _Groups(tuple(sizes), tuple(matrices), numbers, tuple(arrays))


def _biases(stream: Stream, weights: Mapping[str, LayerWeights], image: HostImage) -> dict[int, int]:
    addresses = {}
    for number, node in enumerate(stream.nodes):
        layer = weights.get(node.name)
        if layer is not None and layer.bias is not None:
            addresses[number] = image.constant(np.ascontiguousarray(layer.bias, dtype=np.float32))
    return addresses
