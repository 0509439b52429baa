"""``config.json``: from JSON to :class:`ArtifactConfig` and back, with every check that needs no other file."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from raptor_pim.artifacts.json_fields import INT32_MAXIMUM, UINT32_MAXIMUM, Fields, bad_file, parse_json, shown
from raptor_pim.artifacts.model import CONFIG_FILE, ELEMENT_BYTES, ArtifactConfig, TensorInfo, core_key, weights_file

_WEIGHTS_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_NUMBERED = re.compile(r"crossbar_(0|[1-9][0-9]{0,8})\.bin")
_CORE_KEY = re.compile(r"core(0|[1-9][0-9]{0,8})")
_DTYPES = ("float32",)
_LARGEST_CROSSBAR = 1 << 20
_DIMENSION_LIMIT = 1 << 40


def encode_config(config: ArtifactConfig) -> dict[str, Any]:
    """The JSON object of a configuration. Fields that are not known are left out."""
    content: dict[str, Any] = {
        "core_cnt": config.core_cnt,
        "array_group_map": {core_key(core): list(groups) for core, groups in enumerate(config.array_group_map)},
        "inputs_addresses": list(config.inputs_addresses),
        "inputs_sizes": list(config.inputs_sizes),
        "outputs_addresses": list(config.outputs_addresses),
        "inputs": [_tensor(info) for info in config.inputs],
        "outputs": [_tensor(info) for info in config.outputs],
        "element_bytes": config.element_bytes,
    }
    if config.xbar_size is not None:
        content["xbar_size"] = list(config.xbar_size)
    if config.outputs_sizes is not None:
        content["outputs_sizes"] = list(config.outputs_sizes)
    if config.weights:
        content["weights"] = {
            core_key(core): [weights_file(matrix) for matrix in matrices]
            for core, matrices in enumerate(config.weights)
        }
    for name, value in (("xbar_array_count", config.xbar_array_count), ("pipeline_stages", config.pipeline_stages)):
        if value is not None:
            content[name] = value
    return content


def decode_config(data: bytes, *, where: str = CONFIG_FILE) -> tuple[ArtifactConfig, tuple[str, ...]]:
    """The configuration, and the weights file of each distinct matrix it speaks of.

    Fields of no interest are not looked at. Raises RaptorError for a missing or wrong field.
    """
    fields = Fields.of(parse_json(data, where=where), where, "the configuration")
    core_count = fields.whole("core_cnt", 1, INT32_MAXIMUM)
    element_bytes = fields.optional_whole("element_bytes", 1, 8) or ELEMENT_BYTES
    if element_bytes != ELEMENT_BYTES:
        raise fields.wrong("element_bytes", f"{ELEMENT_BYTES}")
    array_count = fields.optional_whole("xbar_array_count", 1, INT32_MAXIMUM)
    groups = _group_map(fields, core_count, array_count)
    weights, names = _weights(fields, groups, core_count)
    inputs_addresses, inputs_sizes, inputs = _regions(fields, "inputs")
    outputs_addresses, outputs_sizes, outputs = _regions(fields, "outputs")
    config = ArtifactConfig(
        core_cnt=core_count,
        xbar_size=_crossbar_size(fields, bool(weights)),
        array_group_map=groups,
        weights=weights,
        inputs_addresses=inputs_addresses,
        inputs_sizes=inputs_sizes or (),
        outputs_addresses=outputs_addresses,
        outputs_sizes=outputs_sizes,
        inputs=inputs,
        outputs=outputs,
        xbar_array_count=array_count,
        pipeline_stages=fields.optional_whole("pipeline_stages", 1, INT32_MAXIMUM),
    )
    if inputs_sizes is None:
        raise fields.wrong("inputs_sizes", "a list of sizes in bytes, one for each input address")
    return config, names


def _tensor(info: TensorInfo) -> dict[str, Any]:
    return {"name": info.name, "shape": list(info.shape), "dtype": info.dtype}


def _crossbar_size(fields: Fields, needed: bool) -> tuple[int, int] | None:
    if not fields.has("xbar_size") and not needed:
        return None
    size = fields.whole_list("xbar_size", 1, _LARGEST_CROSSBAR)
    if len(size) != 2:
        raise fields.wrong("xbar_size", "two numbers, rows and columns")
    return size[0], size[1]


def _by_core(fields: Fields, name: str, core_count: int) -> dict[int, Any]:
    """The members of a map from ``coreN`` to something, by core number."""
    content = Fields.of(fields.values.get(name), fields.where, f"field '{name}'").values
    result = {}
    for key, value in content.items():
        match = _CORE_KEY.fullmatch(key)
        if match is None or int(match.group(1)) >= core_count:
            raise bad_file(
                fields.where, f"field '{name}' names {shown(key)}", f"cores are core0 to core{core_count - 1}"
            )
        result[int(match.group(1))] = value
    return result


def _group_map(fields: Fields, core_count: int, array_count: int | None) -> tuple[tuple[int, ...], ...]:
    given = _by_core(fields, "array_group_map", core_count)
    members = Fields({core_key(core): value for core, value in given.items()}, fields.where)
    groups = {core: members.whole_list(core_key(core), 1, INT32_MAXIMUM) for core in given}
    for core, sizes in groups.items():
        if array_count is not None and sum(sizes) > array_count:
            raise bad_file(
                fields.where,
                f"core {core} has more crossbars in its groups than in all",
                f"its groups hold {sum(sizes)}, and xbar_array_count is {array_count}",
            )
    return _per_core(groups, core_count)


def _per_core(values: dict[int, tuple[int, ...]], core_count: int) -> tuple[tuple[int, ...], ...]:
    """One entry per core up to the last that is named: the file alone decides how much is kept."""
    last = max((core for core, items in values.items() if items), default=-1)
    return tuple(values.get(core, ()) for core in range(min(core_count, last + 1)))


def _weights(
    fields: Fields, groups: tuple[tuple[int, ...], ...], core_count: int
) -> tuple[tuple[tuple[int, ...], ...], tuple[str, ...]]:
    if not fields.has("weights"):
        return (), ()
    given = _by_core(fields, "weights", core_count)
    for core, names in given.items():
        if not isinstance(names, list) or not all(isinstance(n, str) and _WEIGHTS_NAME.fullmatch(n) for n in names):
            raise bad_file(
                fields.where,
                f"the weights of core {core} are wrong",
                f"they are {shown(names)}; must be a list of plain file names",
            )
    for core in sorted({*given, *range(len(groups))}):
        wanted = len(groups[core]) if core < len(groups) else 0
        if wanted != len(given.get(core, ())):
            raise bad_file(
                fields.where,
                f"core {core} has {wanted} crossbar groups and {len(given.get(core, ()))} weights files",
                "every group needs one matrix",
            )
    ordered = _ordered({name for names in given.values() for name in names})
    numbers = {name: number for number, name in enumerate(ordered)}
    weights = tuple(tuple(numbers[name] for name in given.get(core, ())) for core in range(len(groups)))
    return weights, ordered


def _ordered(names: set[str]) -> tuple[str, ...]:
    def rank(name: str) -> tuple[int, str]:
        match = _NUMBERED.fullmatch(name)
        return (int(match.group(1)) if match else INT32_MAXIMUM, name)

    return tuple(sorted(names, key=rank))


def _regions(fields: Fields, kind: str) -> tuple[tuple[int, ...], tuple[int, ...] | None, tuple[TensorInfo, ...]]:
    """Addresses, sizes (None when absent) and tensors of the host regions ``kind`` (inputs or outputs)."""
    addresses_name, sizes_name = f"{kind}_addresses", f"{kind}_sizes"
    addresses = fields.whole_list(addresses_name, 0, UINT32_MAXIMUM) if fields.has(addresses_name) else ()
    sizes = fields.whole_list(sizes_name, 0, UINT32_MAXIMUM) if fields.has(sizes_name) else None
    tensors = _tensors(fields, kind) if fields.has(kind) else ()
    if sizes is None and tensors:
        sizes = tuple(tensor.byte_size for tensor in tensors)
    if sizes is None:
        return addresses, () if not addresses else None, ()
    if len(addresses) != len(sizes):
        raise bad_file(
            fields.where, f"the {kind} disagree", f"{len(addresses)} addresses were given, and {len(sizes)} sizes"
        )
    if tensors and len(tensors) != len(sizes):
        raise bad_file(fields.where, f"the {kind} disagree", f"{len(tensors)} tensors, and {len(sizes)} regions")
    for tensor, size in zip(tensors, sizes, strict=bool(tensors)):
        if tensor.byte_size != size:
            raise bad_file(
                fields.where,
                f"tensor {shown(tensor.name)} does not fit its region",
                f"shape {shown(tensor.shape)} takes {tensor.byte_size} bytes; the region has {size}",
            )
    return addresses, sizes, tensors


def _tensors(fields: Fields, kind: str) -> tuple[TensorInfo, ...]:
    result = []
    for position, value in enumerate(fields.list(kind)):
        tensor = Fields.of(value, fields.where, f"entry {position} of '{kind}'")
        name, shape = tensor.text("name"), tensor.whole_list("shape", 0, _DIMENSION_LIMIT)
        if math.prod(shape) > UINT32_MAXIMUM:
            raise tensor.wrong("shape", "a shape that fits the host memory")
        if tensor.text("dtype") not in _DTYPES:
            raise tensor.wrong("dtype", f"one of {', '.join(_DTYPES)}")
        result.append(TensorInfo(name, shape))
    _refuse_repeated(fields, kind, [tensor.name for tensor in result])
    return tuple(result)


def _refuse_repeated(fields: Fields, kind: str, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise bad_file(fields.where, f"two {kind} have one name", f"the name is {shown(repeated)}")
