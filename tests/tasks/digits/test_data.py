import numpy as np
import pytest

from irrl.tasks.digits.data import (
    Layout,
    canvases_with_test_digits,
    sample_canvases,
    train_and_validation,
)
from irrl.tasks.digits.mnist import Digits, read_mnist


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


@pytest.fixture(scope="module")
def digits(mnist_cache):
    return read_mnist("train")


def slow_twin(digits, count, layout, rng):
    """The authors' procedure in floats, image by image, with the random numbers of the fast one."""
    size, piece = layout.canvas_size, layout.clutter_size
    chosen = rng.integers(len(digits.labels), size=count)
    if layout.placement == "paper":
        rows = np.minimum(rng.integers(size, size=count), size - 28)
        columns = rng.integers(size - 28, size=count)
    else:
        rows, columns = (rng.integers(size - 28 + 1, size=count) for _ in range(2))
    source = rng.integers(len(digits.labels), size=(count, layout.clutter))
    crop = rng.integers(28 - piece, size=(count, layout.clutter, 2))
    place = rng.integers(size - piece, size=(count, layout.clutter, 2))
    canvases = np.zeros((count, size, size))
    for n in range(count):
        for k in range(layout.clutter):
            (top, left), (row, column) = crop[n, k], place[n, k]
            patch = digits.images[source[n, k], top : top + piece, left : left + piece] / 255
            canvases[n, row : row + piece, column : column + piece] = patch
        where = np.s_[n, rows[n] : rows[n] + 28, columns[n] : columns[n] + 28]
        canvases[where] = np.minimum(canvases[where] + digits.images[chosen[n]] / 255, 1.0)
    return canvases, digits.labels[chosen]


@pytest.mark.parametrize("placement", ["paper", "uniform"])
def test_canvases_equal_those_of_the_slow_twin(digits, placement):
    layout = Layout(placement=placement)
    fast = sample_canvases(digits, 50, layout, generator(1))
    slow, labels = slow_twin(digits, 50, layout, generator(1))
    np.testing.assert_allclose(fast.images / 255, slow, atol=1e-12)
    np.testing.assert_array_equal(fast.labels, labels)


def test_the_same_seed_gives_the_same_canvases(digits):
    first, _ = train_and_validation(digits, 3, Layout(), 40, 10)
    again, held_out = train_and_validation(digits, 3, Layout(), 40, 10)
    other, _ = train_and_validation(digits, 4, Layout(), 40, 10)
    np.testing.assert_array_equal(first.images, again.images)
    assert (first.images != other.images).any()
    assert held_out.images.shape == (10, 60, 60)
    assert (canvases_with_test_digits(3, Layout(), 10).images != held_out.images).any()


def test_placements(digits):
    count = 20_000
    paper = sample_canvases(digits, count, Layout(clutter=0), generator()).corners
    uniform = sample_canvases(digits, count, Layout(clutter=0, placement="uniform"), generator())
    assert np.mean(paper[:, 0] == 32) == pytest.approx(28 / 60, abs=0.015)  # they touch the bottom
    assert paper[:, 1].max() == 31 and paper.min() == 0
    assert uniform.corners.max(axis=0).tolist() == [32, 32]
    for offsets in uniform.corners.T:
        counts = np.bincount(offsets, minlength=33)
        chi2 = np.sum((counts - count / 33) ** 2) / (count / 33)
        assert chi2 < 62.5  # the 99.9th percentile for 32 degrees of freedom


def test_sizes_are_free(digits):
    for layout in (
        Layout(canvas_size=28, clutter=0),
        Layout(canvas_size=28, clutter=2, clutter_size=28),
        Layout(canvas_size=100, clutter=8, clutter_size=5),
    ):
        canvases = sample_canvases(digits, 5, layout, generator())
        assert canvases.images.shape == (5, layout.canvas_size, layout.canvas_size)
    plain = sample_canvases(digits, 5, Layout(canvas_size=28, clutter=0), generator())
    assert all(any((image == d).all() for d in digits.images) for image in plain.images)


def test_bright_pixels_saturate():
    white = Digits(np.full((1, 28, 28), 200, np.uint8), np.array([7], np.uint8))
    layout = Layout(canvas_size=28, clutter=1, clutter_size=28)
    canvases = sample_canvases(white, 1, layout, generator())
    assert canvases.images.max() == canvases.images.min() == 255
