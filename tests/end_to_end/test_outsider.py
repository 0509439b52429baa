"""A stranger's package, built and installed into a fresh environment, replaces a part; bad packages hurt nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"


class Environment:
    """A fresh virtual environment that holds built wheels of Raptor and of the example package.

    Their dependencies are lent from the environment that runs the tests; nothing of Raptor comes from there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder / "env", symlinks=True)
        wheels = folder / "wheels"
        for source in (ROOT, ROOT / "examples" / "raptor-kernel-split"):
            self._pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(source))
        self.python = folder / "env" / "bin" / "python"
        self._pip("--python", str(self.python), "install", "--no-deps", *map(str, sorted(wheels.glob("*.whl"))))
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = folder / "env" / "lib" / version / "site-packages"
        (self.site / "zz_dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    def _pip(self, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", *words], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr

    def run(self, *words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run ``raptor`` there and check its exit code."""
        environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        command = [str(self.folder / "env" / "bin" / "raptor"), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=self.folder)
        assert done.returncode == code, done.stderr
        return done

    def plugins(self, command: str) -> dict[tuple[str, str], dict[str, Any]]:
        """The listing by name and distribution."""
        listing = json.loads(self.run("plugins", command, "--json").stdout)
        records = listing["plugins"] if isinstance(listing, dict) else listing
        return {(record["name"], record["distribution"]): record for record in records}

    def add_distribution(self, name: str, module: str, code: str, entry_points: str) -> None:
        """A distribution as pip would leave it."""
        info = self.site / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        (self.site / f"{module}.py").write_text(code)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("outsider"))


def logits(fresh: Environment, program: str) -> np.ndarray:
    images = np.load(DIGITS / "digits_32.npz")["images"][:4]
    np.savez(fresh.folder / "in.npz", image=images[:, None])
    fresh.run("simulate", program, "--input", "in.npz", "-o", f"{program}.npz", "--force")
    return np.load(fresh.folder / f"{program}.npz")["logits"].reshape(4, 10)


def test_raptor_comes_from_the_fresh_environment(fresh: Environment) -> None:
    done = subprocess.run(
        [str(fresh.python), "-c", "import raptor_core, raptor_pim; print(raptor_core.__file__, raptor_pim.__file__)"],
        capture_output=True,
        text=True,
        cwd=fresh.folder,
        check=True,
    )
    assert all(str(fresh.site) in path for path in done.stdout.split())


def test_the_examples_strategy_is_used_by_name_and_right(fresh: Environment) -> None:
    assert ("kernel-split", "raptor-kernel-split") in fresh.plugins("list")
    fresh.run("compile", DIGITS / "digits_cnn.onnx", "--target", "pim-arch-a", "-o", "split",
              "--conv-strategy", "kernel-split", "--dump-ir", "ir")  # fmt: skip
    manifest = json.loads((fresh.folder / "split" / "manifest.json").read_text())
    assert any(plugin["distribution"] == "raptor-kernel-split" for plugin in manifest["plugins"])
    expected = np.load(DIGITS / "digits_32.npz")["logits"][:4]
    np.testing.assert_allclose(logits(fresh, "split"), expected, atol=1e-3)
    # Its operations stand in the text IR, which reads back and gives the same program.
    stage = next(path for path in sorted((fresh.folder / "ir").glob("*realise.rir")))
    assert "kernel_split" in stage.read_text()
    fresh.run("compile", stage, "--target", "pim-arch-a", "-o", "resumed", "--conv-strategy", "kernel-split")
    for program in sorted((fresh.folder / "split").glob("core_*.pim")):
        assert program.read_bytes() == (fresh.folder / "resumed" / program.name).read_bytes()


def test_bad_packages_are_listed_and_hurt_nobody(fresh: Environment) -> None:
    fresh.add_distribution(
        "acme-broken",
        "acme_broken",
        "raise RuntimeError('out of order')\n",
        "[raptor.conv_strategies]\nbroken = acme_broken:PLUGIN\n",
    )
    fresh.add_distribution(
        "acme-twin",
        "acme_twin",
        "from raptor_conv.streamed_patch import STREAMED_PATCH as PLUGIN\n",
        "[raptor.conv_strategies]\nkernel-split = acme_twin:PLUGIN\n",
    )
    listed = json.loads(fresh.run("plugins", "check", "--json", code=3).stdout)
    records = listed["plugins"] if isinstance(listed, dict) else listed
    status = {(record["name"], record["distribution"]): record["status"] for record in records}
    assert status["broken", "acme-broken"] == "broken"
    assert status["kernel-split", "acme-twin"] == status["kernel-split", "raptor-kernel-split"] == "duplicate"

    model = DIGITS / "digits_cnn.onnx"
    fresh.run("compile", model, "--target", "pim-arch-a", "-o", "unhurt", "--conv-strategy", "streamed-patch")
    words = ("compile", model, "--target", "pim-arch-a", "-o", "twins", "--conv-strategy", "kernel-split")
    refused = fresh.run(*words, code=3).stderr
    assert "acme-twin 1.0" in refused
    assert "raptor-kernel-split" in refused
    assert "--disable-plugin" in refused
    assert not (fresh.folder / "twins").exists()
    fresh.run(*words, "--disable-plugin", "acme-twin")
    named = fresh.run("compile", model, "--target", "pim-arch-a", "-o", "b", "--conv-strategy", "broken", code=3)
    assert "out of order" in named.stderr
