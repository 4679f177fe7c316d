"""Cuts glimpses out of canvases."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.tasks.digits.config import DigitsConfig
from irrl.tasks.digits.data import DEVIATION, MEAN


class Retina(nn.Module):
    """Cuts glimpses out of canvases: squares of doubling size, each pooled to the first.

    Pixels are normalised by mean and deviation of MNIST; outside the canvas they read zero.
    """

    middle: Tensor
    dark: Tensor
    strides: Tensor

    def __init__(self, config: DigitsConfig) -> None:
        super().__init__()
        self.half, self.size = 0.5 * config.canvas_size, config.glimpse_size
        self.register_buffer("middle", torch.tensor(self.half), persistent=False)
        self.sides = [config.glimpse_size * 2**k for k in range(config.scales)]
        self.margin = (self.sides[-1] + 1) // 2
        stride = config.canvas_size + 2 * self.margin
        for k, side in enumerate(self.sides):
            span = torch.arange(side) + self.margin - side // 2
            offsets = (span[:, None] * stride + span).flatten()
            self.register_buffer(f"offsets{k}", offsets, persistent=False)
        self.register_buffer("strides", torch.tensor([1, stride]), persistent=False)
        inside = torch.full((config.canvas_size, config.canvas_size), -MEAN / DEVIATION)
        dark = functional.pad(inside, (self.margin,) * 4)
        self.register_buffer("dark", dark, persistent=False)  # what no light reads, at each pixel

    @property
    def offsets(self) -> list[Tensor]:
        return [getattr(self, f"offsets{k}") for k in range(len(self.sides))]

    def prepare(self, images: Tensor) -> Tensor:
        """Canvases of images of bytes: normalised, with a margin, one flat row for each."""
        light = functional.pad(images, (self.margin,) * 4)
        return torch.add(self.dark, light, alpha=1.0 / (255.0 * DEVIATION)).flatten(1)

    def look(self, canvas: Tensor, location: Tensor, out: Tensor) -> Tensor:
        """The glimpses at a place, one row for each canvas."""
        # What is not a number looks at the corner; training notices it by its posteriors.
        pixel = torch.add(self.middle, location, alpha=self.half).nan_to_num_(0.0).long()
        start = (pixel * self.strides).sum(dim=1, keepdim=True)
        if len(self.sides) == 1:
            return torch.gather(canvas, 1, start + self.offsets[0], out=out)
        glimpses = [canvas.gather(1, start + offsets) for offsets in self.offsets]
        for k, side in enumerate(self.sides[1:], start=1):
            square = glimpses[k].view(-1, 1, side, side)
            glimpses[k] = functional.avg_pool2d(square, 2**k).flatten(1)
        return torch.cat(glimpses, dim=1, out=out)
