"""Modules in files, with their large arrays beside them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from raptor_core.diagnostics import ExitCode, RaptorError
from raptor_core.ir.equality import modules_equal
from raptor_core.ir.files import read_module, side_file, write_module
from raptor_core.ir.module import Module
from raptor_core.ir.types import TensorType
from text_ir import DIALECTS, Anything

LARGE = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)


def module(large: bool = True) -> Module:
    data = LARGE if large else LARGE[:1]
    return Module(
        name="t",
        inputs=("x",),
        outputs=("y",),
        types={"x": TensorType((2,)), "y": TensorType((2,)), "w": TensorType(data.shape)},
        constants={"w": data},
        operations=(
            Anything(name="n", operands=("x", "w"), results=("y",), value=data.astype(np.float64) if large else 1),
        ),
    )


def test_files_read_back_and_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_module(module(), tmp_path / folder / "t.rir")
    written = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert written == ["t.rir", "t.rir.npz"]
    for name in written:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert modules_equal(read_module(tmp_path / "a" / "t.rir", DIALECTS), module())
    with np.load(tmp_path / "a" / "t.rir.npz") as archive:
        assert len(archive.files) == 2


def test_a_module_without_large_arrays_leaves_no_side_file(tmp_path: Path) -> None:
    write_module(module(), tmp_path / "t.rir")
    write_module(module(large=False), tmp_path / "t.rir")
    assert [path.name for path in tmp_path.iterdir()] == ["t.rir"]
    assert modules_equal(read_module(tmp_path / "t.rir", DIALECTS), module(large=False))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t.rir"
    write_module(module(large=False), path)
    before = path.read_bytes()
    side_file(path).mkdir()
    with pytest.raises(RaptorError) as caught:
        write_module(module(), path)
    assert caught.value.code == "unwritable-ir"
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.rir", "t.rir.npz"]


def refusal(path: Path) -> RaptorError:
    with pytest.raises(RaptorError) as caught:
        read_module(path, DIALECTS)
    assert caught.value.exit_code is ExitCode.INPUT
    return caught.value


def test_missing_and_broken_texts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.rir"
    assert refusal(path).render() == (
        f"error[unreadable-ir]: cannot read the module\n  where    {path}\n  reason   No such file or directory"
    )
    path.write_bytes(b"\xff\xfe")
    assert refusal(path).code == "unreadable-ir"


def test_a_module_that_is_not_valid_is_the_files_fault(tmp_path: Path) -> None:
    path = tmp_path / "t.rir"
    path.write_text('raptor-ir 1\nmodule "t" stage "graph"\noutput %y\n')
    assert refusal(path).render() == (
        f"error[invalid-ir]: the module is not valid\n  where    {path}\n"
        "  reason   module 't' is not valid: the network output 'y' is not defined"
    )
    assert read_module(path, DIALECTS, verify=False).outputs == ("y",)


def npy(array: np.ndarray, **options: bool) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def repack(path: Path, content: bytes, compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name in names:
            archive.writestr(name, content)


def test_broken_side_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.rir"
    beside = side_file(path)

    def after(change: object) -> RaptorError:
        write_module(module(), path)
        assert callable(change)
        change()
        return refusal(path)

    error = after(beside.unlink)
    assert error.code == "invalid-ir-text"
    assert error.message.startswith("the side file has no array '@")
    assert error.hint == "the text and its side file (.npz) belong together; write both again"
    assert after(lambda: beside.write_bytes(b"not a zip")).code == "unreadable-ir"
    assert after(lambda: beside.write_bytes(beside.read_bytes()[:-30])).code == "unreadable-ir"
    assert after(lambda: repack(beside, b"no array")).code == "unreadable-ir"
    assert after(lambda: repack(beside, npy(np.array([{}]), allow_pickle=True))).code == "unreadable-ir"
    assert after(lambda: repack(beside, npy(LARGE), zipfile.ZIP_DEFLATED)).reason == (
        "its entries are compressed or larger than the file"
    )
    assert after(lambda: repack(beside, npy(np.zeros(3)))).message.endswith("of the side file is float64[3]")
    assert after(lambda: repack(beside, npy(np.asfortranarray(LARGE)))).code == "unreadable-ir"
    lying = npy(np.zeros(8, np.float32)).replace(b"(8,), }             ", b"(10000000000000,), }")
    assert len(lying) == len(npy(np.zeros(8, np.float32)))
    assert after(lambda: repack(beside, lying)).code == "unreadable-ir"
