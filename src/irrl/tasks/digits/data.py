"""Cluttered MNIST: a digit and pieces of other digits on an empty canvas.

Deterministic: the same generator state, digits and layout give the same bytes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from irrl.runs.seeding import stream
from irrl.tasks.digits.config import DIGIT, RamConfig
from irrl.tasks.digits.mnist import Digits, read_mnist

CLASSES = 10
MEAN, STD = 0.1307, 0.3081
"""Of the pixels of MNIST: what canvases are normalised with."""

TRAIN_AND_VALIDATION, TEST, FRESH = range(3)  # which part of the data stream


@dataclass(frozen=True)
class Layout:
    """What a canvas looks like.

    ``placement`` says where the digit goes: ``uniform`` over all places in which it fits, or as
    the authors' generator has it (``paper``): the column never reaches the last place, and the row
    is sampled from the whole canvas, then limited, so that near half the digits touch the bottom.
    """

    canvas_size: int = 60
    clutter: int = 4
    clutter_size: int = 8
    placement: str = "paper"


class Canvases(NamedTuple):
    """Images (n, size, size) of bytes, labels (n), and (row, column) of each digit's corner."""

    images: np.ndarray
    labels: np.ndarray
    corners: np.ndarray

    def part(self, first: int, last: int) -> "Canvases":
        return Canvases(*(array[first:last] for array in self))


def sample_canvases(
    digits: Digits, count: int, layout: Layout, rng: np.random.Generator
) -> Canvases:
    """Canvases of digits sampled with replacement; clutter comes from digits of the same set."""
    size, pieces = layout.canvas_size, (count, layout.clutter)
    chosen = rng.integers(len(digits.labels), size=count)
    corners = np.stack(_sample_corners(count, layout, rng), axis=1)
    source = rng.integers(len(digits.labels), size=pieces)
    crop = rng.integers(max(DIGIT - layout.clutter_size, 1), size=(*pieces, 2))
    place = rng.integers(max(size - layout.clutter_size, 1), size=(*pieces, 2))
    images = np.zeros((count, size, size), np.uint8)
    _compose(images, digits.images, chosen, corners, source, crop, place, layout.clutter_size)
    return Canvases(images, digits.labels[chosen].astype(np.int64), corners)


def _sample_corners(
    count: int, layout: Layout, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    room = layout.canvas_size - DIGIT
    if layout.placement == "uniform":
        return rng.integers(room + 1, size=count), rng.integers(room + 1, size=count)
    rows = np.minimum(rng.integers(layout.canvas_size, size=count), room)
    return rows, rng.integers(max(room, 1), size=count)


@njit(cache=True, nogil=True)
def _compose(images, digits, chosen, corners, source, crop, place, clutter_size):
    for n in range(len(images)):
        canvas = images[n]
        for k in range(source.shape[1]):
            piece, (top, left), (row, column) = digits[source[n, k]], crop[n, k], place[n, k]
            for i in range(clutter_size):
                for j in range(clutter_size):
                    canvas[row + i, column + j] = piece[top + i, left + j]
        digit, (row, column) = digits[chosen[n]], corners[n]
        for i in range(DIGIT):
            for j in range(DIGIT):
                total = np.int32(canvas[row + i, column + j]) + np.int32(digit[i, j])
                canvas[row + i, column + j] = np.uint8(total if total < 255 else 255)


# --- the sets of a run ---


def layout_of(config: RamConfig) -> Layout:
    return Layout(config.canvas_size, config.clutter, config.clutter_size, config.placement)


def train_and_validation(
    digits: Digits, seed: int, layout: Layout, train_images: int, validation_images: int
) -> tuple[Canvases, Canvases]:
    """As the authors: one set sampled from the training digits, its end held out for validation."""
    count = train_images + validation_images
    rng = stream(seed, "data", TRAIN_AND_VALIDATION)
    canvases = sample_canvases(digits, count, layout, rng)
    return canvases.part(0, train_images), canvases.part(train_images, count)


def fresh_training_set(
    digits: Digits, seed: int, epoch: int, layout: Layout, count: int
) -> Canvases:
    """New canvases for an epoch, from the same training digits."""
    return sample_canvases(digits, count, layout, stream(seed, "data", FRESH, epoch))


def canvases_with_test_digits(seed: int, layout: Layout, count: int) -> Canvases:
    return sample_canvases(read_mnist("t10k"), count, layout, stream(seed, "data", TEST))
