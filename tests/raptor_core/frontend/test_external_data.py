"""External data: read inside the model's folder, refused everywhere else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from raptor_core.frontend.load import load_graph
from tests.raptor_core.frontend.onnx_models import floats, make_model, refusal

WEIGHT = floats(1, 4, 5)


def _model(**entries: object) -> onnx.ModelProto:
    """A matrix product whose weight is external data as the entries say."""
    model = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [2, 4]}, {"w": WEIGHT})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return model


def _save(folder: Path, **entries: object) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "net.onnx"
    path.write_bytes(_model(**entries).SerializeToString())
    return path


@pytest.mark.parametrize(
    ("prefix", "entries"),
    [
        (b"", {"location": "w.bin"}),
        (b"", {"location": "./w.bin", "offset": 0}),
        (b"0123", {"location": "w.bin", "offset": 4, "length": 80}),
        (b"0123", {"location": "w.bin", "offset": 4}),
    ],
)
def test_ranges(tmp_path: Path, prefix: bytes, entries: dict[str, object]) -> None:
    path = _save(tmp_path, **entries)
    (tmp_path / "w.bin").write_bytes(prefix + WEIGHT.tobytes() + b"more")
    module = load_graph(path)
    np.testing.assert_array_equal(module.constants["w"], WEIGHT)


def test_the_hash_covers_the_data(tmp_path: Path) -> None:
    path, data = _save(tmp_path, location="sub/w.bin"), tmp_path / "sub" / "w.bin"
    data.parent.mkdir()
    data.write_bytes(WEIGHT.tobytes())
    first = load_graph(path).properties["onnx.sha256"]
    assert first == hashlib.sha256(path.read_bytes() + data.read_bytes()).hexdigest()
    data.write_bytes((WEIGHT + 1).tobytes())
    assert load_graph(path).properties["onnx.sha256"] != first


def test_saved_by_onnx(tmp_path: Path) -> None:
    model = make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [2, 4]}, {"w": WEIGHT})
    path = tmp_path / "net.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="net.data", size_threshold=0)
    np.testing.assert_array_equal(load_graph(path).constants["w"], WEIGHT)


def test_old_operator_sets_are_converted_with_their_data(tmp_path: Path) -> None:
    model = _model(location="w.bin")
    model.opset_import[0].version = 8
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    np.testing.assert_array_equal(load_graph(tmp_path / "net.onnx").constants["w"], WEIGHT)


def test_constant_nodes_may_have_external_data(tmp_path: Path) -> None:
    tensor = _model(location="w.bin").graph.initializer[0]
    nodes = [
        helper.make_node("Constant", [], ["w"], value=tensor),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    (tmp_path / "net.onnx").write_bytes(make_model(nodes, {"x": [2, 4]}).SerializeToString())
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    np.testing.assert_array_equal(load_graph(tmp_path / "net.onnx").constants["w"], WEIGHT)


OUTSIDE = ["/etc/passwd", "../w.bin", "sub/../../w.bin", "..\\w.bin", "C:\\w.bin", "C:w.bin", "\\\\host\\share\\w.bin"]


@pytest.mark.parametrize("location", OUTSIDE)
def test_outside_the_folder(tmp_path: Path, location: str) -> None:
    path = _save(tmp_path / "model", location=location)
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    assert refusal(path) == (
        "error[external-data]: the external data of tensor 'w' cannot be used\n"
        f"  where    {path}\n"
        f"  reason   the file '{location}' is outside the model's folder\n"
        "  help     a model may only read files of its own folder: copy the data file there and name it relatively"
    )


@pytest.mark.parametrize("of_folder", [False, True])
def test_symbolic_links_out_of_the_folder(tmp_path: Path, of_folder: bool) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "w.bin").write_bytes(WEIGHT.tobytes())
    path = _save(tmp_path / "model", location="link/w.bin" if of_folder else "link")
    (path.parent / "link").symlink_to(tmp_path / "other" if of_folder else tmp_path / "other" / "w.bin")
    assert "is outside the model's folder" in refusal(path)


def test_symbolic_links_inside_the_folder(tmp_path: Path) -> None:
    path = _save(tmp_path, location="link")
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    (tmp_path / "link").symlink_to("w.bin")
    np.testing.assert_array_equal(load_graph(path).constants["w"], WEIGHT)


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"location": "none.bin"}, "the file 'none.bin' does not exist"),
        ({"location": "folder"}, "the file 'folder' is a folder"),
        ({}, "the model names no file for its data"),
        ({"location": "w\0.bin"}, "the model names no file for its data"),
        ({"location": "w.bin", "offset": 4}, "bytes 4 to 84 are wanted of the file 'w.bin', which has 80"),
        ({"location": "w.bin", "offset": 900}, "bytes 900 to 980 are wanted of the file 'w.bin', which has 80"),
        ({"location": "w.bin", "offset": -4}, "its offset '-4' is not a number of bytes"),
        ({"location": "w.bin", "length": "all"}, "its length 'all' is not a number of bytes"),
        ({"location": "w.bin", "length": 76}, "its type needs 80 bytes, and the model says 76"),
        ({"location": "w.bin", "length": 10**15}, f"its type needs 80 bytes, and the model says {10**15}"),
    ],
)
def test_bad_entries(tmp_path: Path, entries: dict[str, object], reason: str) -> None:
    path = _save(tmp_path, **entries)
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    (tmp_path / "folder").mkdir()
    text = refusal(path)
    assert f"cannot be used\n  where    {path}\n  reason   {reason}" in text


def test_a_huge_shape_allocates_nothing(tmp_path: Path) -> None:
    model = _model(location="w.bin")
    model.graph.initializer[0].dims[:] = [2**40, 2**20]
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "w.bin").write_bytes(WEIGHT.tobytes())
    assert f"bytes 0 to {2**62} are wanted of the file 'w.bin', which has 80" in refusal(tmp_path / "net.onnx")


def test_a_model_without_a_file_has_no_folder() -> None:
    text = refusal(_model(location="w.bin"))
    assert "the data are in the file 'w.bin', and a model that is not read from a file has no folder" in text


def test_unused_tensors_are_checked_too(tmp_path: Path) -> None:
    model = _model(location="../w.bin")
    model.graph.node[0].input[1] = "x2"
    model.graph.input.append(helper.make_tensor_value_info("x2", TensorProto.FLOAT, [4, 5]))
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    assert "is outside the model's folder" in refusal(tmp_path / "net.onnx")
