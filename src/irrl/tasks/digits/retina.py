"""Cuts glimpses out of canvases."""

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn
from torch.nn import functional

from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import DEVIATION, MEAN


class Retina(nn.Module):
    """Cuts glimpses out of canvases: squares of doubling size, each pooled to the first.

    Pixels are normalised by mean and deviation of MNIST; outside the canvas they read zero. A place
    that is not a number reads as the corner: training notices it by its posteriors.

    On a processor this is compiled: the many small operations it would take are those at which
    threads wait for each other. An accelerator gathers from canvases with a margin.
    """

    dark: Tensor
    strides: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.size, self.scales = config.glimpse_size, config.scales
        self.radius = 0.5 * config.canvas_size
        self.levels = ((np.arange(256) / 255.0 - MEAN) / DEVIATION).astype(np.float32)
        self.margin = (self.size * 2 ** (self.scales - 1) + 1) // 2
        stride = config.canvas_size + 2 * self.margin
        for k in range(self.scales):
            side = self.size * 2**k
            span = torch.arange(side) + self.margin - side // 2
            offsets = (span[:, None] * stride + span).flatten()
            self.register_buffer(f"offsets{k}", offsets, persistent=False)
        self.register_buffer("strides", torch.tensor([1, stride]), persistent=False)
        inside = torch.full((config.canvas_size, config.canvas_size), -MEAN / DEVIATION)
        dark = functional.pad(inside, (self.margin,) * 4)
        self.register_buffer("dark", dark, persistent=False)  # what no light reads, at each pixel

    def prepare(self, images: Tensor) -> Tensor:
        """What `look` is given of images of bytes."""
        return images if images.is_cpu else self.with_margin(images)

    def look(self, canvas: Tensor, location: Tensor, out: Tensor) -> Tensor:
        """The glimpses at a place, one row for each canvas."""
        if not canvas.is_cpu:
            return torch.cat(self.gather(canvas, location), dim=1, out=out)
        arrays = (canvas.numpy(), location.numpy(), out.numpy())
        cut_out(*arrays, self.levels, np.float32(self.radius), self.size, self.scales)
        return out

    # --- on an accelerator ---

    def with_margin(self, images: Tensor) -> Tensor:
        """Normalised, with a margin, one flat row for each image."""
        light = functional.pad(images, (self.margin,) * 4)
        return torch.add(self.dark, light, alpha=1.0 / (255.0 * DEVIATION)).flatten(1)

    def gather(self, canvas: Tensor, location: Tensor) -> list[Tensor]:
        """The glimpses of each scale."""
        pixel = (self.radius * (location + 1.0)).nan_to_num_(0.0).long()
        start = (pixel * self.strides).sum(dim=1, keepdim=True)
        glimpses = []
        for k in range(self.scales):
            glimpse = canvas.gather(1, start + getattr(self, f"offsets{k}"))
            if k > 0:
                square = glimpse.view(-1, 1, self.size * 2**k, self.size * 2**k)
                glimpse = functional.avg_pool2d(square, 2**k).flatten(1)
            glimpses.append(glimpse)
        return glimpses


# --- on a processor ---


@njit(cache=True, nogil=True)
def cut_out(images, location, out, levels, radius, size, scales):
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
