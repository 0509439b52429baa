"""Real handwritten digits, read by a trained network running on a simulated processing-in-memory chip.

    python examples/digits/classify.py [--target pim-arch-a] [--out FOLDER]

Compiles ``digits_cnn.onnx`` for the chip, runs the program on the 32 images of ``digits_32.npz`` in the functional
simulator, and shows prediction and truth of each, and the largest difference from onnxruntime. Writes the program to
``FOLDER/program`` and a picture of the images with their predictions to ``FOLDER/digits.png``.

The images are test samples of the optical recognition of handwritten digits data set (UCI, CC BY 4.0).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import raptor_core

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-3


def main() -> int:
    """Run the example; 0 when every logit agrees with onnxruntime within TOLERANCE."""
    parser = argparse.ArgumentParser(description="classify handwritten digits on a simulated chip")
    parser.add_argument("--target", default="pim-arch-a", help="chip to compile for (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("digits-out"), help="output folder (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        return classify(arguments.target, arguments.out)
    except raptor_core.RaptorError as error:
        print(error.render(), file=sys.stderr)
        return int(error.exit_code)


def classify(target: str, out: Path) -> int:
    """Compile, simulate, compare, and draw."""
    data = np.load(HERE / "digits_32.npz")
    images, labels = data["images"], data["labels"]
    model = HERE / "digits_cnn.onnx"

    begin = time.perf_counter()
    raptor_core.compile(model, target=target, output=out / "program", overwrite=True)
    compiled = time.perf_counter()
    samples = [{"image": image[None]} for image in images]
    result = raptor_core.simulate(out / "program", samples)
    simulated = time.perf_counter()

    logits = np.concatenate([output["logits"] for output in result.outputs])
    expected = reference_logits(model, images)
    predictions = logits.argmax(axis=1)
    differences = np.abs(logits - expected).max(axis=1)

    print(
        f"digits_cnn on {target}: compiled in {compiled - begin:.1f} s, {len(images)} images simulated in "
        f"{simulated - compiled:.1f} s"
    )
    print(f"{'image':>5} {'prediction':>10} {'truth':>5} {'max difference from onnxruntime':>32}")
    for k, (prediction, label, difference) in enumerate(zip(predictions, labels, differences, strict=True)):
        mark = "" if prediction == label else "  <- wrong"
        print(f"{k:>5} {prediction:>10} {label:>5} {difference:>32.2e}{mark}")
    print(f"right: {(predictions == labels).sum()} of {len(labels)}; largest difference {differences.max():.2e}")

    picture = out / "digits.png"
    draw(images[:, 0], predictions, labels, picture)
    print(f"picture: {picture}")
    return 0 if differences.max() <= TOLERANCE else 1


def reference_logits(model: Path, images: np.ndarray) -> np.ndarray:
    """The logits that onnxruntime computes, [images, 10]."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"image": image[None]})[0] for image in images])


def draw(images: np.ndarray, predictions: np.ndarray, labels: np.ndarray, path: Path) -> None:
    """A grid of the images, each with its prediction; wrong ones in red with the truth."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 8, figsize=(10, 6.4), layout="constrained")
    for axis, image, prediction, label in zip(axes.ravel(), images, predictions, labels, strict=True):
        axis.imshow(image, cmap="gray_r", vmin=0, vmax=1)
        right = prediction == label
        title = str(prediction) if right else f"{prediction} (is {label})"
        axis.set_title(title, color="black" if right else "red", fontsize=11)
        axis.axis("off")
    figure.suptitle(f"{(predictions == labels).sum()} of {len(labels)} read right on the simulated chip")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
