"""The convolution strategy ``kernel-split``."""
