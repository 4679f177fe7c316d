"""Cuts glimpses out of canvases, for models: on a processor or on an accelerator."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.tasks.digits.config import RamConfig
from irrl.tasks.digits.cutter import LEVELS, cut_out
from irrl.tasks.digits.data import MEAN, STD


class Retina(nn.Module):
    """Cuts glimpses out of canvases: squares of doubling size, each pooled to the first.

    Pixels are normalised by mean and standard deviation of MNIST; outside the canvas they read
    zero. A place that is not a number reads as the corner: training notices it by its posteriors.

    On a processor this is compiled: the many small operations it would take are those at which
    threads wait for each other. An accelerator gathers from canvases with a margin.
    """

    dark: Tensor
    strides: Tensor

    def __init__(self, config: RamConfig) -> None:
        super().__init__()
        self.size, self.scales = config.glimpse_size, config.scales
        self.radius = 0.5 * config.canvas_size
        self.margin = (self.size * 2 ** (self.scales - 1) + 1) // 2
        stride = config.canvas_size + 2 * self.margin
        for k in range(self.scales):
            side = self.size * 2**k
            span = torch.arange(side) + self.margin - side // 2
            offsets = (span[:, None] * stride + span).flatten()
            self.register_buffer(f"offsets{k}", offsets, persistent=False)
        self.register_buffer("strides", torch.tensor([1, stride]), persistent=False)
        inside = torch.full((config.canvas_size, config.canvas_size), -MEAN / STD)
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
        cut_out(*arrays, LEVELS, np.float32(self.radius), self.size, self.scales)
        return out

    # --- on an accelerator ---

    def with_margin(self, images: Tensor) -> Tensor:
        """Normalised, with a margin, one flat row for each image."""
        light = functional.pad(images, (self.margin,) * 4)
        return torch.add(self.dark, light, alpha=1.0 / (255.0 * STD)).flatten(1)

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
