"""What a discriminator is shown: observations in units of what was seen so far.

Statistics are the reward model's own, and change only when it learns: between two updates the same
observation always looks the same.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from irrl.reward_model.spaces import Part, Parts

LIMIT = 10.0  # in standard deviations
SMALLEST = 1e-6
PIXELS = ("contrast", "standardised", "raw")
FEW = 8  # numbers in a part that gets Fourier features
LARGE = 24  # pixels on both sides: an image for convolutions


class Moments(nn.Module):
    """Mean and standard deviation of all that was seen."""

    count: Tensor
    mean: Tensor
    squares: Tensor
    shift: Tensor
    scale: Tensor

    def __init__(self, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("squares", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("shift", torch.zeros(shape))
        self.register_buffer("scale", torch.ones(shape))

    def add(self, values: np.ndarray) -> None:
        """Take in values, shape ``(n, ...)`` (Chan's parallel update)."""
        new = torch.from_numpy(np.asarray(values, np.float64)).to(self.mean.device)
        n, mean = len(new), new.mean(dim=0)
        total, apart = self.count + n, mean - self.mean
        self.squares += (new - mean).square().sum(dim=0) + apart.square() * self.count * n / total
        self.mean += apart * n / total
        self.count += n

    def settle(self) -> None:
        """From here on, go by all that was taken in."""
        if not self.count:
            return
        std = (self.squares / self.count).sqrt()
        self.shift.copy_(self.mean)
        self.scale.copy_(1.0 / torch.where(std > SMALLEST, std, 1.0))

    def forward(self, values: Tensor) -> Tensor:
        """Values in standard deviations from the mean, within limits."""
        return ((values - self.shift) * self.scale).clamp(-LIMIT, LIMIT)


class Normaliser(nn.Module):
    """Running statistics of every part that holds numbers.

    With ``pixels="contrast"`` an image is told as its deviations from its own mean, and that mean
    apart: faint contrast beside strong lightness becomes as large as any other signal, and nothing
    is lost. With ``"standardised"`` each pixel has statistics of its own, ``"raw"`` leaves them.
    """

    def __init__(self, parts: Mapping[str, Part], pixels: str) -> None:
        super().__init__()
        self.values, self.lightness, self.contrast = (nn.ModuleDict() for _ in range(3))
        for name, part in parts.items():
            if part.is_image and pixels == "contrast":
                self.lightness[_key(name)], self.contrast[_key(name)] = Moments(()), Moments(())
            elif not part.sizes and not (part.is_image and pixels == "raw"):
                self.values[_key(name)] = Moments(part.shape)

    def add(self, seen: Parts) -> None:
        """Take in observations, shape ``(n, ...)`` each."""
        for name, array in seen.items():
            key = _key(name)
            if key in self.values:
                _moments(self.values, key).add(array)
            elif key in self.contrast:
                flat = array.reshape(len(array), -1).astype(float)
                means = flat.mean(axis=1)
                _moments(self.lightness, key).add(means)
                _moments(self.contrast, key).add((flat - means[:, None]).ravel())

    def settle(self) -> None:
        """From here on, go by all that was taken in."""
        for module in self.modules():
            if isinstance(module, Moments):
                module.settle()

    def forward(self, name: str, part: Part, values: Tensor) -> tuple[Tensor, Tensor | None]:
        """A part of numbers, normalised, of the same shape; beside it an image's mean, if told."""
        key = _key(name)
        if key in self.values:
            found: Tensor = self.values[key](values)
            return found, None
        if key not in self.contrast:
            return values, None
        mean = values.flatten(-len(part.shape)).mean(dim=-1)
        apart = values - _spread(mean, part)
        return self.contrast[key](apart), self.lightness[key](mean)

    def standardised(
        self, parts: Mapping[str, Part], seen: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """All parts in their own shapes: what a discriminator of one's own is shown.

        There the mean of an image is added to its contrast: it has no place of its own.
        """
        shown = {}
        for name, part in parts.items():
            shown[name], mean = seen[name], None
            if not part.sizes:
                shown[name], mean = self(name, part, seen[name].float())
            if mean is not None:
                shown[name] = shown[name] + _spread(mean, part)
        return shown


class Features(nn.Module):
    """Observations as a vector each, and large images apart.

    Numbers of a small part come with sines and cosines of several frequencies, by which a network
    tells places apart that lie near each other.
    """

    octaves: Tensor

    def __init__(self, parts: Mapping[str, Part], pixels: str, frequencies: int) -> None:
        super().__init__()
        self.parts, self.frequencies = dict(parts), frequencies
        self.told_apart = pixels == "contrast"
        self.normaliser = Normaliser(parts, pixels)
        self.register_buffer("octaves", math.pi / 2.0 * 2.0 ** torch.arange(frequencies))
        for name, part in parts.items():
            if part.low is not None and part.high is not None:
                low, high = (torch.tensor(b).reshape(part.shape) for b in (part.low, part.high))
                self.register_buffer(f"low {_key(name)}", low)
                self.register_buffer(f"span {_key(name)}", (high - low).clamp(min=SMALLEST))
        self.size = sum(map(self._size, parts.values()))

    @property
    def images(self) -> dict[str, Part]:
        """Those that are large enough for convolutions."""
        return {name: part for name, part in self.parts.items() if is_large(part)}

    def _size(self, part: Part) -> int:
        if part.sizes:
            return sum(part.sizes)
        size = 0 if is_large(part) else math.prod(part.shape)
        if part.is_image:
            return size + self.told_apart
        return size * (1 + 2 * self.frequencies) if size <= FEW else size

    def forward(self, seen: Mapping[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Vectors, shape ``(..., size)``, and large images by name, normalised."""
        found, images = [], {}
        for name, part in self.parts.items():
            values = seen[name]
            lead = values.shape[: values.ndim - len(part.shape)]
            if part.sizes:
                found.append(_one_hot(values.reshape(*lead, -1), part.sizes))
                continue
            normal, lightness = self.normaliser(name, part, values.float())
            if is_large(part):
                images[name] = normal
            else:
                found.append(normal.reshape(*lead, -1))
            if lightness is not None:
                found.append(lightness[..., None])
            if not part.is_image and self.frequencies and math.prod(part.shape) <= FEW:
                found.append(self._fourier(name, values.float(), normal).reshape(*lead, -1))
        if not found:
            return next(iter(images.values())).new_zeros(*lead, 0), images
        return torch.cat(found, dim=-1), images

    def _fourier(self, name: str, values: Tensor, normal: Tensor) -> Tensor:
        """Sines and cosines of a place: within its bounds, else within two standard deviations."""
        low = getattr(self, f"low {_key(name)}", None)
        if low is None:
            place = normal / 2.0
        else:
            place = 2.0 * (values - low) / getattr(self, f"span {_key(name)}") - 1.0
        angles = place[..., None] * self.octaves
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


def is_large(part: Part) -> bool:
    """Whether a part is an image for convolutions: all sides but that of the channels are long."""
    sides = part.shape[1:] if has_channels_first(part) else part.shape[:2]
    return part.is_image and min(sides) >= LARGE


def has_channels_first(part: Part) -> bool:
    """Whether the channels of an image are its first axis: they are fewer than rows or columns."""
    return len(part.shape) == 3 and part.shape[0] < part.shape[2]


def _one_hot(values: Tensor, sizes: tuple[int, ...]) -> Tensor:
    each = [nn.functional.one_hot(values[..., i].long(), n) for i, n in enumerate(sizes)]
    return torch.cat(each, dim=-1).float()


def _spread(means: Tensor, part: Part) -> Tensor:
    """Means of images, with an axis for each of an image's."""
    return means.reshape(*means.shape, *(1 for _ in part.shape))


def _moments(among: nn.ModuleDict, key: str) -> Moments:
    found = among[key]
    assert isinstance(found, Moments)
    return found


def _key(name: str) -> str:
    """A name that a module may have: no dots, and none that modules have themselves."""
    return f"of {name.replace('.', '·')}"
