"""Bad inputs through the real command line: one clear error, the right exit code, nothing written."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from command_line import DIGITS, check_one_error, refused
from raptor_core.cli.main import main
from tiny_models import tiny_network

SMALL = ("--core-count", "4", "--crossbar-count", "8", "--crossbar-size", "32")
CHIP = ("--target", "pim", *SMALL)
COMPILE = ("compile", "m.onnx", "-o", "out/p")
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder ``work`` with the model ``m.onnx``; its parent holds nothing else."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    onnx.save(tiny_network(), "m.onnx")
    return folder


def compile_words(model: object) -> tuple[object, ...]:
    return ("compile", model, "-o", "out/p", *CHIP, "--dump-ir", "ir")


# ---- models ----------------------------------------------------------------------------------------------------------


def test_missing_files_and_folders(work: Path, capsys: Capture) -> None:
    (work / "folder.onnx").mkdir()
    for name in ("none.onnx", "none/none.onnx", "folder.onnx", ".", "none.rir", "folder.onnx/", "m.onnx/x"):
        for command in ("compile", "run"):
            output = "out/p" if command == "compile" else "out.npz"
            refused((command, name, "-o", output, *CHIP), capsys, code=1, names=[name.rstrip("/")])


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x00" * 64, b"\xff" * 64, b"PK\x03\x04 a zip", b"\x89PNG\r\n", bytes(range(256)) * 40]
)
@pytest.mark.parametrize("name", ["text.onnx", "text.rir"])
def test_files_that_are_no_models(work: Path, content: bytes, name: str, capsys: Capture) -> None:
    (work / name).write_bytes(content)
    refused(compile_words(name), capsys, code=1, names=[name])


def test_truncated_models(work: Path, capsys: Capture) -> None:
    """Cut anywhere, at a boundary of fields or within one."""
    whole = (work / "m.onnx").read_bytes()
    lengths = sorted({*range(0, len(whole), 7), *range(len(whole) - 24, len(whole)), 1, 2, 3})
    for length in lengths:
        (work / "cut.onnx").write_bytes(whole[:length])
        refused(compile_words("cut.onnx"), capsys, code=1)


def test_truncated_texts_of_stages(work: Path, capsys: Capture) -> None:
    for stage in ("lower", "schedule", "verify"):
        assert main(["compile", "m.onnx", *CHIP, "--stop-after", stage, "-o", "s.rir", "--force"]) == 0
        capsys.readouterr()
        whole = (work / "s.rir").read_bytes()
        for length in np.linspace(0, len(whole) - 2, 15, dtype=int):
            (work / "s.rir").write_bytes(whole[:length])
            refused(compile_words("s.rir"), capsys, code=1)


@pytest.mark.parametrize("form", ["climbing", "absolute", "link", "missing", "folder", "short"])
def test_external_data(work: Path, form: str, capsys: Capture) -> None:
    (work.parent / "secret.bin").write_bytes(b"\1" * 4096)
    (work / "inside.bin").write_bytes(b"\1" * 16)
    (work / "link.bin").symlink_to(work.parent / "secret.bin")
    (work / "folder.bin").mkdir()
    location = {
        "climbing": "../secret.bin",
        "absolute": str(work.parent / "secret.bin"),
        "link": "link.bin",
        "missing": "gone.bin",
        "folder": "folder.bin",
        "short": "inside.bin",
    }[form]
    model = tiny_network()
    (weights,) = model.graph.initializer
    weights.raw_data = b"\0" * (3 * 2 * 3 * 3 * 4)
    del weights.float_data[:]
    set_external_data(weights, location, offset=0)
    weights.ClearField("raw_data")
    (work / "external.onnx").write_bytes(model.SerializeToString())
    refused(compile_words("external.onnx"), capsys, code=1, names=["error[external-data]", "'w'", Path(location).name])


def network(nodes: list[onnx.NodeProto], shape: tuple[int | str, ...], **constants: np.ndarray) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def test_all_unsupported_operators_are_listed(work: Path, capsys: Capture) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["1"], name="fine"),
        helper.make_node("Einsum", ["1", "1"], ["2"], name="layer1/einsum", equation="nchw,nchw->nchw"),
        helper.make_node("Erf", ["2"], ["3"], name="layer2/erf"),
        helper.make_node("Fold", ["3"], ["4"], name="layer3/fold", domain="acme"),
        helper.make_node("Erf", ["4"], ["5"], name="layer4/erf again"),
        helper.make_node("Relu", ["5"], ["6"], name="fine too"),
        helper.make_node("Det", ["6"], ["y"], name="layer5/det"),
    ]
    onnx.save(network(nodes, (1, 2, 4, 4)), "odd.onnx")
    bad = {"layer1/einsum": "Einsum", "layer2/erf": "Erf", "layer3/fold": "Fold", "layer4/erf again": "Erf"}
    bad["layer5/det"] = "Det"
    message = refused(compile_words("odd.onnx"), capsys, code=1, names=[*bad, *bad.values()])
    assert "fine" not in message
    assert len(re.findall(r"^  - ", message, re.MULTILINE)) >= 4


def test_symbolic_shapes_are_given_by_the_shape_option(work: Path, capsys: Capture) -> None:
    onnx.save(tiny_network(("batch", 2, "h", 4)), "open.onnx")
    message = refused(compile_words("open.onnx"), capsys, code=1, names=["input 'x'", "'batch'", "'h'"])
    assert re.search(r"give --shape '?x=\S+x2x\S+x4", message), message
    refused((*compile_words("open.onnx"), "--shape", "x=1x3x4x4"), capsys, code=1, names=["--shape"])
    refused((*compile_words("open.onnx"), "--shape", "z=1x2x4x4"), capsys, code=2, names=["z"])
    assert main(["compile", "open.onnx", "-o", "p", *CHIP, "--shape", "x=2x2x6x4"]) == 0
    capsys.readouterr()
    np.savez("in.npz", x=np.ones((2, 2, 6, 4), np.float32))
    assert main(["simulate", "p", "--input", "in.npz", "-o", "out.npz"]) == 0
    assert np.load("out.npz")["y"].shape == (2, 3, 6, 4)


@pytest.mark.parametrize(
    ("shape", "attributes", "reason"),
    [
        ((2**62, 2**62), None, "input 'x'"),
        ((2**33, 2**33), None, "input 'x'"),
        ((1, 1, 3, 3), {"dilations": [10**9] * 2, "pads": [10**9] * 4}, "with its padding"),
        ((1, 1, 3, 3), {"pads": [10**5] * 4}, "its result 'y'"),
    ],
)
def test_huge_values_are_refused_at_once(
    work: Path, shape: tuple[int, ...], attributes: dict[str, list[int]] | None, reason: str, capsys: Capture
) -> None:
    weights = np.ones((1, 1, 3, 3), np.float32)
    window = helper.make_node("Conv", ["x", "w"], ["y"], name="first", **(attributes or {}))
    node = helper.make_node("Relu", ["x"], ["y"], name="first") if attributes is None else window
    onnx.save(network([node], shape, w=weights), "huge.onnx")
    refused(
        ("compile", "huge.onnx", "-o", "p", *CHIP),
        capsys,
        code=1,
        names=["where", reason, "2147483648", "help", "first"],
    )


def test_a_network_too_large_says_how_much_is_needed(work: Path, capsys: Capture) -> None:
    """The crossbars that it says are needed are enough; one less is not."""
    digits = DIGITS / "digits_cnn.onnx"

    def words(crossbars: int) -> tuple[object, ...]:
        chip = ("--core-count", 1, "--crossbar-count", crossbars, "--crossbar-size", 32)
        return ("compile", digits, "-o", "p", "--target", "pim", *chip)

    message = refused(words(2), capsys, code=1, names=["error[network-too-large]"])
    match = re.search(r"(\d+) crossbars are needed, (\d+) are available", message)
    assert match, message
    needed, available = map(int, match.groups())
    assert available == 2
    refused(words(needed - 1), capsys, code=1, names=[f"{needed} crossbars are needed, {needed - 1} are available"])
    assert main([str(word) for word in words(needed)]) == 0


# ---- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "unknown", "near"),
    [
        ("compile m.onnx -o p --target pim-arch-aa", "pim-arch-aa", "pim-arch-a"),
        ("compile m.onnx -o p --target PIM", "PIM", ""),
        ("compile m.onnx -o p --target pim-arch-a --conv-strategy streamed-path", "streamed-path", "streamed-patch"),
        ("compile m.onnx -o p --target pim-arch-a --scheduler petf", "petf", "peft"),
        ("run m.onnx --target pim-arch-a --simulator functionel", "functionel", "functional"),
        ("compile m.onnx -o p --target pim-arch-a --stop-after schedul", "schedul", "schedule"),
        ("compile m.onnx -o p --target pim-arch-a --pass nothing", "nothing", ""),
        ("compile m.onnx -o p --target pim-arch-a --hook nothing", "nothing", ""),
        ("compile m.onnx -o p --target pim-arch-a --disable-plugin depthwize", "depthwize", "depthwise"),
        ("compile m.onnx -o p --target pim-arch-a --crossbar-cout 3", "--crossbar-cout", "--crossbar-count"),
        ("compile m.onnx -o p --target pim-arch-a --emit-jsn", "--emit-jsn", "--emit-json"),
        ("simulate p --schedule-polcy greedy", "--schedule-polcy", "--schedule-policy"),
        ("simulate p --simulator preformance", "preformance", "performance"),
        ("inspect p --cores 1", "--cores", "--core"),
        ("plugins info streamed-patc", "streamed-patc", "streamed-patch"),
        ("plugins lis", "lis", "list"),
        ("simulat p", "simulat", "simulate"),
        ("complie m.onnx", "complie", "compile"),
    ],
)
def test_unknown_names_are_shown_with_near_ones(
    work: Path, words: str, unknown: str, near: str, capsys: Capture
) -> None:
    message = refused(words.split(), capsys, code=2, names=[f"'{unknown}'" if " lis" not in words else unknown])
    if near:
        assert re.search(rf"did you mean '[\w ]*{re.escape(near)}'", message), message


# ---- chips -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "given", "stated"),
    [
        ("--core-count", "5", "168"),
        ("--crossbar-count", "97", "96"),
        ("--crossbar-size", "64", "128x128"),
        ("--crossbar-size", "128x64", "128x128"),
    ],
)
@pytest.mark.parametrize("by", ["name", "file"])
def test_options_against_a_profile(work: Path, option: str, given: str, stated: str, by: str, capsys: Capture) -> None:
    if by == "name":
        chip = ["--target", "pim-arch-a"]
    else:
        assert main(["compile", "m.onnx", "-o", "p", "--target", "pim-arch-a"]) == 0
        capsys.readouterr()
        chip = ["--target", "pim", "--profile-file", "p/chip/chip.json"]
    message = refused((*COMPILE, *chip, option, given), capsys, code=2, names=["error[profile-conflict]", option])
    shown = given if "x" in given or option != "--crossbar-size" else f"{given}x{given}"
    assert shown in message
    assert stated in message
    assert main(["compile", "m.onnx", "-o", "again", *chip, option, stated]) == 0, "repeating it is no conflict"


def test_all_conflicts_are_shown_at_once(work: Path, capsys: Capture) -> None:
    names = ["is 4", "168", "is 8", "96", "is 32x32", "128x128"]
    refused((*COMPILE, "--target", "pim-arch-a", *SMALL), capsys, code=2, names=names)


@pytest.mark.parametrize("left_out", [0, 2, 4])
def test_every_option_of_the_bare_target_is_needed(work: Path, left_out: int, capsys: Capture) -> None:
    words = (*COMPILE, "--target", "pim", *SMALL[:left_out], *SMALL[left_out + 2 :])
    message = refused(words, capsys, code=2, names=["error[missing-option]", SMALL[left_out]])
    assert message.splitlines()[0].count("--") == 1, "only what is missing is asked for"


def test_bad_profile_files(work: Path, capsys: Capture) -> None:
    (work / "folder.json").mkdir()
    contents = {"empty": "", "text": "hello", "list": "[]", "nothing": "{}", "nan": '{"chip_config": NaN}'}
    for name, text in contents.items():
        (work / f"{name}.json").write_text(text)
    for name in ("none", "folder", *contents):
        words = (*COMPILE, "--target", "pim", "--profile-file", f"{name}.json")
        refused(words, capsys, code=1, names=[f"{name}.json"])
    refused(
        (*COMPILE, "--target", "pim-arch-a", "--profile-file", "list.json"), capsys, code=2, names=["--profile-file"]
    )


def numbers_in(section: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all numbers in nested dictionaries."""
    for name, value in section.items():
        if isinstance(value, dict):
            yield from numbers_in(value, (*above, name))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield *above, name


def test_numbers_out_of_range_in_profile_files(work: Path, capsys: Capture) -> None:
    """Every number of a chip configuration: used, or refused as an input; never a fault of Raptor."""
    assert main(["compile", "m.onnx", "-o", "p", *CHIP]) == 0
    capsys.readouterr()
    sound = json.loads(Path("p/chip/chip.json").read_text())
    shutil.copy("p/chip/network.json", "network.json")
    paths = list(numbers_in(sound))
    assert len(paths) > 40
    refusals = 0
    for path in paths:
        for value in (-1, 1e300, 1e-300, 10**30, "1"):
            changed = json.loads(json.dumps(sound))
            section = changed
            for name in path[:-1]:
                section = section[name]
            section[path[-1]] = value
            Path("chip.json").write_text(json.dumps(changed))
            got = main(["simulate", "p", "--simulator", "performance", "--config", "chip.json"])
            captured = capsys.readouterr()
            assert got in (0, 1, 2), f"{path} {value}: {captured.err}"
            assert value != "1" or got == 1, f"{path} takes a text"
            if got:
                check_one_error(captured.err)
                refusals += 1
    assert refusals > 2 * len(paths)


def test_chips_too_large_to_address(work: Path, capsys: Capture) -> None:
    for chip in (("4", "70000", "1000"), ("4096", "2147483647", "1"), ("1", "1", "46341")):
        flags = [word for pair in zip(SMALL[::2], chip, strict=True) for word in pair]
        refused((*COMPILE, "--target", "pim", *flags), capsys, code=2, names=["error[chip-too-large]"])


# ---- artifacts -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small program with all kinds of files."""
    folder = tmp_path_factory.mktemp("artifact")
    onnx.save(tiny_network(), folder / "m.onnx")
    chip = ("--target", "pim", "--core-count", "2", "--crossbar-count", "8", "--crossbar-size", "32")
    assert main(["compile", str(folder / "m.onnx"), "-o", str(folder / "p"), *chip, "--emit-json"]) == 0
    return folder / "p"


def flip(at: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        content[min(int(at * len(content)), len(content) - 1)] ^= 0x10
        path.write_bytes(content)

    return damage


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a byte short": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "half of it": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a byte long": lambda path: path.write_bytes(path.read_bytes() + b"\n"),
    "emptied": lambda path: path.write_bytes(b""),
    "first byte": flip(0),
    "middle byte": flip(0.5),
    "last byte": flip(1),
    "removed": Path.unlink,
    "a folder": replace_by_folder,
}


def files(program: Path) -> list[str]:
    return sorted(str(path.relative_to(program)) for path in program.rglob("*") if path.is_file())


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_artifacts(program: Path, work: Path, damage: str, capsys: Capture) -> None:
    """Every file of the folder in turn; the manifest vouches for all others, and nothing for the manifest itself."""
    np.savez("x.npz", x=np.ones((1, 2, 4, 4), np.float32))
    assert {"core_0.pim", "core_1.json", "memory.bin", "config.json", "weights/crossbar_0.bin"} <= set(files(program))
    simulate = ("simulate", "p", "--input", "x.npz", "-o", "y.npz")
    shutil.copytree(program, "p")
    assert main([*simulate]) == 0
    capsys.readouterr()
    sound = np.load("y.npz")["y"]
    Path("y.npz").unlink()
    for name in files(program):
        shutil.rmtree("p")
        shutil.copytree(program, "p")
        if not Path("p", name).stat().st_size:
            continue
        DAMAGES[damage](Path("p", name))
        if name == "manifest.json" and vouches_no_more(program):
            # What is left is a folder as a person may write one, or a manifest whose sums are still right.
            assert main([*simulate]) == 0
            capsys.readouterr()
            np.testing.assert_array_equal(np.load("y.npz")["y"], sound)
            Path("y.npz").unlink()
            continue
        refused(simulate, capsys, code=1, names=[Path(name).name])
        refused(("simulate", "p", "--simulator", "performance"), capsys, code=1, names=[Path(name).name])


def vouches_no_more(program: Path) -> bool:
    """Whether the damaged copy ``p`` has no manifest, or one that says the same of the files as that of ``program``."""
    damaged = Path("p/manifest.json")
    if not damaged.exists():
        return True
    if not damaged.is_file():
        return False
    try:
        found = json.loads(damaged.read_bytes())
    except ValueError:
        return False
    sound = json.loads((program / "manifest.json").read_bytes())
    return isinstance(found, dict) and all(found.get(key) == sound[key] for key in ("files", "schema"))


def test_added_files_and_links(program: Path, work: Path, capsys: Capture) -> None:
    np.savez("x.npz", x=np.ones((1, 2, 4, 4), np.float32))
    shutil.copytree(program, "p")
    shutil.move("p/memory.bin", "memory.bin")
    Path("p/memory.bin").symlink_to(work / "memory.bin")
    refused(("simulate", "p", "--input", "x.npz", "-o", "y.npz"), capsys, code=1, names=["memory.bin"])
