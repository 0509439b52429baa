"""Models from files: what is read, what is recorded of them, and every file that is refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from raptor_core.frontend.load import load_graph
from tests.raptor_core.frontend.onnx_models import check_same, floats, make_model, refusal

MODEL = make_model(
    [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], {"x": [2, 3]}, {"w": floats(0, 3, 4)}
)


def test_a_path_and_a_model_give_the_same_graph(tmp_path: Path) -> None:
    path = tmp_path / "small.onnx"
    onnx.save(MODEL, path)
    by_path, by_text, by_model = load_graph(path), load_graph(str(path)), load_graph(MODEL)
    assert by_path.name == by_text.name == "small"
    assert by_model.name == "test"
    assert by_path.types == by_model.types
    assert [op.name for op in by_path.operations] == [op.name for op in by_model.operations] == ["product"]


def test_properties_say_what_was_compiled(tmp_path: Path) -> None:
    path = tmp_path / "small.onnx"
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    model.producer_name, model.producer_version = "exporter", "1.2"
    onnx.save(model, path)
    assert load_graph(path).properties == {
        "onnx.file": "small.onnx",
        "onnx.ir_version": 8,
        "onnx.opset": {"ai.onnx": 17},
        "onnx.producer": "exporter 1.2",
        "onnx.sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }


def test_the_given_model_is_not_changed() -> None:
    before = MODEL.SerializeToString(deterministic=True)
    load_graph(MODEL)
    assert MODEL.SerializeToString(deterministic=True) == before


def test_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "none.onnx"
    assert refusal(path) == (
        "error[model-not-found]: there is no such model file\n"
        f"  where    {path}\n"
        "  help     give the path of a model in ONNX form (.onnx)"
    )


def test_folder(tmp_path: Path) -> None:
    text = refusal(tmp_path)
    assert text.startswith("error[not-a-model]: a folder is not a model\n")
    assert str(tmp_path) in text


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.onnx"
    path.touch()
    assert refusal(path).startswith(f"error[not-a-model]: the model file is empty\n  where    {path}\n")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.onnx"
    os.mkfifo(path)
    assert "the model is not a regular file" in refusal(path)


@pytest.mark.parametrize("content", [b"hello, this is text\n" * 9, b"\x89PNG\r\n\x1a\n" + bytes(range(200)), b"\x08"])
def test_not_onnx(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.onnx"
    path.write_bytes(content)
    text = refusal(path)
    assert text.startswith(f"error[not-a-model]: this is not a whole ONNX model\n  where    {path}\n")
    assert "export or download the model again" in text


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    content = MODEL.SerializeToString()
    for length in range(1, len(content)):
        path.write_bytes(content[:length])
        assert refusal(path).startswith("error[not-a-model]: this is not a whole ONNX model")


def test_names_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "bytes.onnx"
    path.write_bytes(MODEL.SerializeToString().replace(b"product", b"prod\xffct"))
    assert "names in it are not text" in refusal(path)


def test_newer_ir_version() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    model.ir_version = 999
    assert f"the model has IR version 999, and the installed onnx {onnx.__version__} reads" in refusal(model)


def test_no_outputs() -> None:
    model = make_model([helper.make_node("Relu", ["x"], ["y"])], {"x": [1]}, outputs=[])
    assert "the network has no outputs" in refusal(model)


def test_damaged_initializer() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    model.graph.initializer[0].dims[0] = 10**15
    text = refusal(model)
    assert text.startswith("error[bad-tensor]: the tensor 'w' is damaged\n  where    the given model 'test'\n")


def test_initializers_listed_as_inputs_are_constants() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    model.ir_version = 3
    model.graph.input.append(helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [3, 4]))
    module = check_same(model)
    assert module.inputs == ("x",)
    assert list(module.constants) == ["w"]


def test_the_package_imports_no_onnx() -> None:
    code = "import sys, raptor_core.frontend, raptor_core.frontend.node; print('onnx' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
