"""The artifact folder: written whole, read with suspicion."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from raptor_core.diagnostics import InternalError, RaptorError
from raptor_pim.artifacts import Artifact, ArtifactConfig, TensorInfo, read_artifact, write_artifact
from raptor_pim.artifacts.model import binary_program_file
from raptor_pim.isa import assemble, empty_program, to_json

PROGRAM = assemble(
    [
        {"op": "sldi", "rd": 1, "imm": 8},
        {"op": "ld", "rd": 0, "rs1": 1, "size": 8},
        {"op": "mvmul", "rd": 0, "rs1": 0, "group": 1},
    ]
)


def example() -> Artifact:
    rng = np.random.default_rng(5)
    return Artifact(
        ArtifactConfig(
            core_cnt=3,
            xbar_size=(4, 2),
            array_group_map=((1, 2), (), (2,)),
            weights=((0, 1), (), (1,)),
            inputs_addresses=(0,),
            inputs_sizes=(16,),
            outputs_addresses=(16, 28),
            outputs_sizes=(12, 4),
            inputs=(TensorInfo("x", (2, 2)),),
            outputs=(TensorInfo("y", (3,)), TensorInfo("z", ())),
            xbar_array_count=4,
            pipeline_stages=2,
        ),
        (PROGRAM, empty_program(), PROGRAM[:2]),
        tuple(rng.standard_normal((4, width)).astype(np.float32) for width in (2, 3)),
        rng.integers(0, 256, 40, dtype=np.uint8),
    )


def write(path: Path, **options: Any) -> Path:
    return write_artifact(path, example(), manifest_fields={"target": "pim", "profile": None}, **options)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def same(left: Artifact, right: Artifact) -> bool:
    return (
        left.config == right.config
        and all(np.array_equal(a, b) for a, b in zip(left.programs, right.programs, strict=True))
        and all(np.array_equal(a, b) for a, b in zip(left.matrices, right.matrices, strict=True))
        and np.array_equal(left.memory, right.memory)
    )


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "deep" / "out")
    back = read_artifact(folder)
    assert same(back, example())
    assert back.manifest is not None
    assert back.manifest["target"] == "pim"
    assert back.instruction_count == 5
    assert back.config.group_counts == (2, 0, 1)


def test_the_files(tmp_path: Path) -> None:
    content = files(write(tmp_path / "out", emit_json=True, extra_files={"reports/cost.txt": b"9"}))
    programs = {f"core_{n}.{kind}" for n in range(3) for kind in ("json", "pim")}
    weights = {"weights/crossbar_0.bin", "weights/crossbar_1.bin"}
    assert set(content) == programs | weights | {"config.json", "manifest.json", "memory.bin", "reports/cost.txt"}
    config = json.loads(content["config.json"])
    assert config["array_group_map"] == {"core0": [1, 2], "core1": [], "core2": [2]}
    assert config["weights"]["core0"] == ["crossbar_0.bin", "crossbar_1.bin"]
    assert config["outputs"][1] == {"name": "z", "shape": [], "dtype": "float32"}
    assert config["element_bytes"] == 4
    assert json.loads(content["core_0.json"]) == to_json(PROGRAM)
    assert json.loads(content["core_1.json"]) == []
    manifest = json.loads(content["manifest.json"])
    assert set(manifest["files"]) == set(content) - {"manifest.json"}
    for name, entry in manifest["files"].items():
        assert entry == {"bytes": len(content[name]), "sha256": hashlib.sha256(content[name]).hexdigest()}


def test_equal_artifacts_give_equal_bytes(tmp_path: Path) -> None:
    options = {"emit_json": True, "extra_files": {"a": b"1", "b": b"2"}}
    assert files(write(tmp_path / "one", **options)) == files(write(tmp_path / "two", **options))


# Writing: all or nothing.


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for failure in (OSError(28, "No space left on device"), KeyboardInterrupt()):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", raiser(failure))
            with pytest.raises((RaptorError, KeyboardInterrupt)):
                write(tmp_path / "out")
        assert list(tmp_path.iterdir()) == []


def raiser(failure: BaseException) -> Callable[..., Any]:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise failure

    return fail


def test_the_old_folder_survives_a_failed_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "out")
    before = files(folder)
    rename = Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(RaptorError, match="Input/output error"):
        write(folder, overwrite=True)
    assert files(folder) == before
    assert list(tmp_path.iterdir()) == [folder]


def test_overwriting(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    write(folder)
    with pytest.raises(RaptorError, match="holds an artifact already"):
        write(folder)
    (folder / "stray").write_text("")
    write(folder, overwrite=True)
    assert not (folder / "stray").exists()


def test_other_folders_and_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    for overwrite in (False, True):
        with pytest.raises(RaptorError, match="is not an artifact and is left alone"):
            write(tmp_path, overwrite=overwrite)
        with pytest.raises(RaptorError, match="taken by a file"):
            write(tmp_path / "mine.txt", overwrite=overwrite)
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RaptorError, match="cannot be written"):
        write(tmp_path / "file" / "out")


def test_leftovers_of_killed_processes_are_cleared(tmp_path: Path) -> None:
    from raptor_pim.artifacts.replace import _sibling

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    mine = _sibling(tmp_path / "out", "new")
    leftover = tmp_path / mine.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")
    for folder in (mine, leftover, tmp_path / f".other{leftover.name}"):
        folder.mkdir()
        (folder / "part").write_text("")
    write(tmp_path / "out")
    assert not leftover.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([mine.name, f".other{leftover.name}", "out"])


def test_a_folder_lost_between_two_renames_comes_back(tmp_path: Path) -> None:
    from raptor_pim.artifacts.replace import _sibling, clear_leftovers

    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    folder = write(tmp_path / "out")
    hidden = _sibling(folder, "old")
    folder.rename(hidden.with_name(hidden.name.replace(f"-{os.getpid()}-", f"-{dead.pid}-")))
    clear_leftovers(folder)
    assert same(read_artifact(folder), example())


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        ({"programs": (PROGRAM,)}, "one program per core"),
        ({"matrices": (np.zeros((3, 2), np.float32), np.zeros((4, 3), np.float32))}, "height of a crossbar"),
        ({"matrices": (np.zeros((4, 2)), np.zeros((4, 3)))}, "float32"),
        ({"matrices": ()}, "known matrices"),
        ({"memory": np.zeros(3)}, "host memory as bytes"),
    ],
)
def test_artifacts_that_contradict_themselves(tmp_path: Path, change: dict[str, Any], needed: str) -> None:
    with pytest.raises(InternalError, match=needed):
        write_artifact(tmp_path / "out", attrs.evolve(example(), **change), manifest_fields={})


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", ".hidden", "a/../b", "config.json", "manifest.json"])
def test_bad_extra_files(tmp_path: Path, name: str) -> None:
    with pytest.raises(InternalError):
        write(tmp_path / "out", extra_files={name: b""})
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_keeps_its_own_fields(tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="no manifest field of files, schema"):
        write_artifact(tmp_path / "out", example(), manifest_fields={"files": {}})


# Reading: every file cut off, altered or removed.

NAMES = (
    "config.json",
    "memory.bin",
    "core_0.pim",
    "core_1.pim",
    "core_2.pim",
    "weights/crossbar_0.bin",
    "weights/crossbar_1.bin",
    "extra.txt",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("damage", ["cut", "grown", "altered", "removed", "emptied", "folder"])
def test_damaged_files_are_noticed(tmp_path: Path, name: str, damage: str) -> None:
    folder = write(tmp_path / "out", extra_files={"extra.txt": b"note"})
    file = folder / name
    data = file.read_bytes()
    if damage in ("removed", "folder"):
        file.unlink()
        if damage == "folder":
            file.mkdir()
    else:
        flipped = bytes([data[-1] ^ 1])
        file.write_bytes(
            {"cut": data[:-1], "grown": data + b"x", "altered": data[:-1] + flipped, "emptied": b""}[damage]
        )
    with pytest.raises(RaptorError) as caught:
        read_artifact(folder)
    assert caught.value.where == name
    assert caught.value.reason
    assert caught.value.hint
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("name", [n for n in NAMES if n != "extra.txt"])
@pytest.mark.parametrize("damage", ["cut", "removed", "emptied"])
def test_damaged_files_without_a_manifest(tmp_path: Path, name: str, damage: str) -> None:
    folder = write(tmp_path / "out")
    (folder / "manifest.json").unlink()
    file = folder / name
    data = file.read_bytes()
    file.unlink()
    if damage != "removed":
        file.write_bytes(data[: len(data) // 2 - 1] if damage == "cut" else b"")
    with pytest.raises(RaptorError) as caught:
        read_artifact(folder)
    assert caught.value.where in (name, "config.json")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: b"{", "not a JSON document"),
        (lambda m: b"[" * 100_000, "nested too deeply"),
        (lambda m: b"\xff\xfe", "not a JSON document"),
        (lambda m: b"[]", "the manifest is not an object"),
        (lambda m: b"{}", "field 'files' is not an object"),
        (lambda m: m.replace(b'"core_0.pim"', b'"../core_0.pim"'), "bad file name"),
        (lambda m: m.replace(b'"core_0.pim"', b'"core_00.pim"'), "does not list a file that is needed"),
        (lambda m: m.replace(b'"bytes"', b'"size"'), "field 'bytes' is missing"),
        (lambda m: m.replace(b'"sha256": "', b'"sha256": "X'), "64 hexadecimal digits"),
    ],
)
def test_bad_manifests(tmp_path: Path, change: Callable[[bytes], bytes], words: str) -> None:
    folder = write(tmp_path / "out")
    manifest = folder / "manifest.json"
    manifest.write_bytes(change(manifest.read_bytes()))
    with pytest.raises(RaptorError, match=words):
        read_artifact(folder)


def test_hashes_can_be_left_unchecked(tmp_path: Path) -> None:
    folder = write(tmp_path / "out")
    (folder / "memory.bin").write_bytes(bytes(40))
    assert not read_artifact(folder, check_hashes=False).memory.any()


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RaptorError, match="it does not exist"):
        read_artifact(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with pytest.raises(RaptorError, match="it is not a folder"):
        read_artifact(tmp_path / "file")


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    folder = write(tmp_path / "out")
    (folder / "manifest.json").unlink()
    outside = tmp_path / "memory.bin"
    (folder / "memory.bin").rename(outside)
    (folder / "memory.bin").symlink_to(outside)
    with pytest.raises(RaptorError, match="leads out of its folder"):
        read_artifact(folder)


# Folders written by hand.


def by_hand(tmp_path: Path, config: dict[str, Any], **content: bytes) -> Path:
    folder = tmp_path / "hand"
    (folder / "weights").mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "memory.bin").write_bytes(bytes(32))
    for name, data in content.items():
        (folder / name.replace("__", "/").replace("_dot_", ".")).write_bytes(data)
    return folder


NOTHING = b"[]"
BARE: dict[str, Any] = {"core_cnt": 2, "array_group_map": {"core0": [1]}}


def test_the_least_folder(tmp_path: Path) -> None:
    artifact = read_artifact(by_hand(tmp_path, BARE, core_0_dot_json=b'[{"op":"nop"}]', core_1_dot_json=NOTHING))
    assert [records.size for records in artifact.programs] == [1, 0]
    assert artifact.config.array_group_map == ((1,), ())
    assert artifact.config.weights == ()
    assert artifact.config.xbar_size is None
    assert artifact.manifest is None


def test_binary_programs_win(tmp_path: Path) -> None:
    folder = by_hand(tmp_path, BARE, core_0_dot_json=b'[{"op":"nop"}]', core_1_dot_json=NOTHING)
    (folder / binary_program_file(0)).write_bytes(b"PIMB\x01\0\0\0\0\0\0\0")
    assert read_artifact(folder).programs[0].size == 0


def test_programs_without_memory_or_weights(tmp_path: Path) -> None:
    config = {**BARE, "xbar_size": [2, 2], "weights": {"core0": ["crossbar_0.bin"]}}
    halves = b'[{"op":"lldi","rd":0,"imm":0.5,"len":4}]'
    folder = by_hand(tmp_path, config, core_0_dot_json=halves, core_1_dot_json=NOTHING)
    (folder / "memory.bin").unlink()
    assert read_artifact(folder, programs_only=True).programs[0].size == 1
    with pytest.raises(RaptorError, match=r"must be a whole number, not 0\.5"):
        read_artifact(folder)
    (folder / "core_0.json").write_bytes(NOTHING)
    with pytest.raises(RaptorError, match=r"there is no 'weights/crossbar_0\.bin'"):
        read_artifact(folder)


def test_output_sizes_may_be_unknown(tmp_path: Path) -> None:
    config = {**BARE, "outputs_addresses": [8]}
    folder = by_hand(tmp_path, config, core_0_dot_json=NOTHING, core_1_dot_json=NOTHING)
    assert read_artifact(folder).config.outputs_sizes is None


def test_sizes_follow_from_tensors(tmp_path: Path) -> None:
    tensor = {"name": "y", "shape": [2, 3], "dtype": "float32"}
    config = {**BARE, "outputs_addresses": [8], "outputs": [tensor]}
    folder = by_hand(tmp_path, config, core_0_dot_json=NOTHING, core_1_dot_json=NOTHING)
    assert read_artifact(folder).config.outputs_sizes == (24,)


def test_weights_of_any_plain_name(tmp_path: Path) -> None:
    config = {**BARE, "xbar_size": [2, 2], "weights": {"core0": ["b"], "core1": []}}
    folder = by_hand(tmp_path, config, core_0_dot_json=NOTHING, core_1_dot_json=NOTHING, weights__b=bytes(16))
    assert read_artifact(folder).matrices[0].shape == (2, 2)


TENSOR = {"name": "x", "shape": [2], "dtype": "float32"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"core_cnt": None}, "field 'core_cnt' is wrong"),
        ({"core_cnt": 0}, "must be a whole number in 1.."),
        ({"core_cnt": True}, "it is True"),
        ({"core_cnt": 2.0}, "it is 2.0"),
        ({"core_cnt": 2**31 - 1}, "there is no 'core_2.pim'"),
        ({"array_group_map": None}, "field 'array_group_map' is not an object"),
        ({"array_group_map": {"core2": [1]}}, "names 'core2'"),
        ({"array_group_map": {"core00": [1]}}, "names 'core00'"),
        ({"array_group_map": {"core0": [0]}}, "a list of whole numbers in 1.."),
        ({"array_group_map": {"core0": 4}}, "a list of whole numbers in 1.."),
        ({"xbar_array_count": 1, "array_group_map": {"core0": [1, 1]}}, "its groups hold 2, and xbar_array_count is 1"),
        ({"xbar_size": [2]}, "two numbers, rows and columns"),
        ({"xbar_size": [2, 0]}, "field 'xbar_size' is wrong"),
        ({"element_bytes": 2}, "must be 4"),
        ({"inputs_addresses": [0]}, "field 'inputs_sizes' is missing"),
        ({"inputs_addresses": [0], "inputs_sizes": [4, 4]}, "1 addresses were given, and 2 sizes"),
        ({"inputs_addresses": [32], "inputs_sizes": [4]}, "takes bytes 32 to 36; memory.bin has 32"),
        ({"outputs_addresses": [0], "outputs_sizes": [-4]}, "field 'outputs_sizes' is wrong"),
        ({"outputs_addresses": [33]}, "lies outside the host memory"),
        ({"inputs_addresses": [0], "inputs_sizes": [4], "inputs": [TENSOR]}, "takes 8 bytes; the region has 4"),
        ({"inputs_addresses": [0], "inputs": [{**TENSOR, "dtype": "int8"}]}, "must be one of float32"),
        ({"inputs_addresses": [0], "inputs": [{**TENSOR, "shape": [2**20] * 4}]}, "fits the host memory"),
        ({"inputs_addresses": [0], "inputs": [{**TENSOR, "name": 1}]}, "must be a string"),
        ({"inputs_addresses": [0, 8], "inputs": [TENSOR, TENSOR]}, "two inputs have one name"),
        ({"inputs_addresses": [0], "inputs_sizes": [8], "inputs": [TENSOR, TENSOR]}, "two inputs|2 tensors"),
        ({"inputs": 3}, "field 'inputs' is wrong"),
        ({"weights": {"core0": ["a"]}}, "field 'xbar_size' is missing"),
        ({"xbar_size": [2, 2], "weights": {"core0": ["../a"]}}, "a list of plain file names"),
        ({"xbar_size": [2, 2], "weights": {"core0": ["..", "a"]}}, "a list of plain file names"),
        ({"xbar_size": [2, 2], "weights": {"core0": ["a", "b"]}}, "core 0 has 1 crossbar groups and 2 weights files"),
        ({"xbar_size": [2, 2], "weights": {"core0": ["b"], "core1": ["b"]}}, "core 1 has 0 crossbar groups"),
        ({"xbar_size": [3, 2], "weights": {"core0": ["b"]}}, "no whole number of columns of 3"),
        ({"xbar_size": [2, 1], "weights": {"core0": ["b"]}}, "it has 2 columns; group 0 of core 0 has room for 1"),
    ],
)
def test_bad_configurations(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    config = {**BARE, **change}
    folder = by_hand(tmp_path, config, core_0_dot_json=NOTHING, core_1_dot_json=NOTHING, weights__b=bytes(16))
    with pytest.raises(RaptorError, match=words) as caught:
        read_artifact(folder)
    assert caught.value.where
    assert caught.value.hint


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (b"{}", "a program is a list of instructions"),
        (b"[1]", "an instruction is a JSON object"),
        (b'[{"op":"mvmul","rd":0,"rs1":0,"group":1}]', "groups of core 0 are 0..0"),
        (b'[{"op":"send","rd":0,"core":0,"size":4}]', "cannot exchange data with itself"),
    ],
)
def test_bad_programs(tmp_path: Path, program: bytes, words: str) -> None:
    folder = by_hand(tmp_path, BARE, core_0_dot_json=program, core_1_dot_json=NOTHING)
    with pytest.raises(RaptorError, match=words):
        read_artifact(folder)
