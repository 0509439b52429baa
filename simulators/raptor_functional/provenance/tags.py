"""Where bytes come from: a tag for every byte."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

SAMPLE_LIMIT = 64
"""Samples from this number on are not told apart."""


@attrs.frozen(eq=False)
class Tags:
    """Tags of some bytes. ``samples`` uint64: bit k for sample k; ``unknown`` bool: the tag is Unknown.

    A byte is Uninitialized when it has no sample and is not Unknown: it comes from no input. Unknown wins over
    whatever ``samples`` holds.
    """

    samples: npt.NDArray[np.uint64]
    unknown: npt.NDArray[np.bool_]

    @classmethod
    def none(cls, size: int) -> Tags:
        """Uninitialized bytes."""
        return cls(np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.bool_))

    @classmethod
    def of_sample(cls, number: int, size: int) -> Tags:
        """Bytes of an input of sample ``number``."""
        tags = cls.none(size)
        if number < SAMPLE_LIMIT:
            tags.samples[:] = np.uint64(1 << number)
        else:
            tags.unknown[:] = True
        return tags

    @property
    def size(self) -> int:
        """Bytes."""
        return self.samples.size

    def part(self, begin: int, size: int) -> Tags:
        """A copy of ``size`` bytes' tags from ``begin``."""
        end = begin + size
        return Tags(self.samples[begin:end].copy(), self.unknown[begin:end].copy())

    def put(self, begin: int, tags: Tags) -> None:
        """Replaces the tags from ``begin`` on."""
        end = begin + tags.size
        self.samples[begin:end] = tags.samples
        self.unknown[begin:end] = tags.unknown

    def grown(self, size: int) -> Tags:
        """These tags followed by Uninitialized bytes up to ``size``."""
        larger = Tags.none(size)
        larger.put(0, self)
        return larger

    def merged_with(self, other: Tags) -> Tags:
        """Byte by byte, both."""
        return Tags(self.samples | other.samples, self.unknown | other.unknown)

    def taken(self, places: npt.NDArray[np.int64]) -> Tags:
        """The bytes at ``places``."""
        return Tags(self.samples[places], self.unknown[places])

    def all_merged(self, size: int) -> Tags:
        """``size`` bytes, each with the tags of all of these."""
        samples = np.full(size, np.bitwise_or.reduce(self.samples, initial=np.uint64(0)), dtype=np.uint64)
        return Tags(samples, np.full(size, bool(self.unknown.any())))

    def by_element(self, width: int, new_width: int) -> Tags:
        """Every element of ``width`` bytes merged and spread over ``new_width`` bytes."""
        samples = np.bitwise_or.reduce(self.samples.reshape(-1, width), axis=1)
        unknown = self.unknown.reshape(-1, width).any(axis=1)
        return Tags(np.repeat(samples, new_width), np.repeat(unknown, new_width))

    def to_json(self) -> Any:
        """All bytes merged: ``uninitialized``, ``unknown``, or the list of sample numbers."""
        if self.unknown.any():
            return "unknown"
        return sample_numbers(np.bitwise_or.reduce(self.samples, initial=np.uint64(0))) or "uninitialized"

    def mixtures(self) -> list[list[int]]:
        """The distinct sets of more than one sample that single bytes hold."""
        sets = np.unique(self.samples[~self.unknown])
        numbers = [sample_numbers(word) for word in sets]
        return [found for found in numbers if len(found) > 1]


def sample_numbers(word: np.uint64) -> list[int]:
    """The numbers of the bits that are set."""
    bits = int(word)
    return [number for number in range(SAMPLE_LIMIT) if bits >> number & 1]
