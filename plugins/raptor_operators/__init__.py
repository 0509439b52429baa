"""The ONNX operators of convolutional networks: one lowering per operator, and the operations they become."""
