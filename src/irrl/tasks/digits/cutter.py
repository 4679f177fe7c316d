"""Cuts glimpses out of canvases: compiled, without PyTorch."""

import numpy as np
from numba import njit

from irrl.tasks.digits.data import MEAN, STD

LEVELS = ((np.arange(256) / 255.0 - MEAN) / STD).astype(np.float32)
"""What a model reads for each byte of a canvas."""


@njit(cache=True, nogil=True)
def cut_out(images, location, out, levels, radius, size, scales):
    """Write the glimpses of all scales at a place of each canvas to the rows of ``out``.

    Pixels outside the canvas read zero; ``radius`` is half the side of a canvas. Locations
    are (column, row), images (row, column).
    """
    height, width = images.shape[1:]
    for n in range(len(images)):
        column, row = _pixel(location[n, 0], radius), _pixel(location[n, 1], radius)
        out[n] = 0.0
        for k in range(scales):
            side, share = size << k, np.float32(0.25**k)
            top, left, first = row - side // 2, column - side // 2, k * size * size
            for y in range(max(top, 0), min(top + side, height)):
                line = first + ((y - top) >> k) * size
                for x in range(max(left, 0), min(left + side, width)):
                    out[n, line + ((x - left) >> k)] += share * levels[images[n, y, x]]


@njit(cache=True, nogil=True)
def _pixel(place, radius):
    there = radius * (place + np.float32(1.0))
    return int(there) if there >= 0.0 else 0
