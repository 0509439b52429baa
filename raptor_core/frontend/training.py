"""Nodes that behave differently in training; a network is compiled for inference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

from raptor_core.ir.module import Array


def training_mode(node: onnx.NodeProto, version: int, constants: Mapping[str, Array]) -> str | None:
    """Why the node cannot be run for inference, or None."""
    if node.domain:
        return None
    attributes = {attribute.name: attribute for attribute in node.attribute}
    if node.op_type == "Dropout" and len(node.input) > 2 and node.input[2]:
        training = constants.get(node.input[2])
        if training is None:
            return "whether it is in training mode is known only at run time"
        return "it is in training mode, and nothing random can be computed" if bool(np.any(training)) else None
    if node.op_type == "BatchNormalization":
        statistics = version < 14 and any(node.output[1:])
        if statistics or ("training_mode" in attributes and attributes["training_mode"].i):
            return "it is in training mode, and the statistics of a batch cannot be computed"
    return None
