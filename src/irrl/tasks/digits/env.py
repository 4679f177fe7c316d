"""Cluttered MNIST as a Gymnasium environment, for agents other than those of this package."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from irrl.tasks.digits.config import DIGIT, RamConfig
from irrl.tasks.digits.cutter import LEVELS, cut_out
from irrl.tasks.digits.data import CLASSES, Layout, layout_of, sample_canvases
from irrl.tasks.digits.mnist import Digits, cache_folder, read_mnist

SPLITS = {"train": "train", "test": "t10k"}
ENLARGED = 4  # pixels of a picture for each of the canvas
_START, _PATH, _HERE = (255, 215, 0), (0, 200, 83), (255, 23, 68)

Observation = dict[str, np.ndarray]


class ClutteredDigits(gym.Env[Any, Any]):
    """Look at a cluttered canvas through small glimpses until you can tell the digit on it.

    ## Action Space
    `Box(-1, 1, (2,))`: where to look next, column and row; (-1, -1) is the upper left corner of the
    canvas. What lies beyond is moved to the border.

    ## Observation Space
    `Dict`: `glimpse`, float32 of shape (scales, glimpse_size, glimpse_size), the pixels around
    that place, normalised by mean and standard deviation of MNIST (-0.43 to 2.83), zero outside
    the canvas; each scale shows twice the side of the one before. `location`, float32 of shape
    (2,): the place.

    ## Rewards
    Always 0. The reward is internal: it is `irrl.reward(name)(log_probs, label)` on the last
    transition, with the log-probabilities that your discriminator gives the 10 digits after all
    observations of the episode.

    ## Starting State
    A new canvas: a digit of MNIST and pieces of others. The first glimpse, which `reset` shows, is
    taken at a place drawn uniformly.

    ## Episode End
    Terminated with the last glimpse, after `glimpses - 1` steps. The end is part of the task, so do
    not bootstrap from it.

    ## Information
    `glimpses` taken so far. In the last step, and only there, `label`: the digit, 0 to 9.
    Observations never tell.

    ## Arguments
    `glimpses` (18), `glimpse_size` (4 pixels) and `scales` (1): as RAM of the paper has them.
    `layout`: what canvases look like, an `irrl.tasks.digits.data.Layout` or some of its fields as
    a dictionary: `canvas_size` (60), `clutter` (4 pieces), `clutter_size` (8) and `placement`
    ("paper", with the authors' bias, or "uniform").
    `split`: digits for `train` or for `test`, from MNIST as `irrl data mnist` keeps it. It is read
    by the first `reset`.
    `digits`: images (n, 28, 28) of bytes and labels (n,) of one's own, in place of MNIST.

    Example:
        >>> images = np.full((10, 28, 28), 255, np.uint8)
        >>> env = ClutteredDigits(glimpses=2, digits=(images, np.arange(10)))
        >>> observation, info = env.reset(seed=0)
        >>> observation["glimpse"].shape, "label" in info
        ((1, 4, 4), False)
        >>> *_, terminated, truncated, info = env.step(np.zeros(2))
        >>> terminated, 0 <= info["label"] < 10
        (True, True)
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        glimpses: int = 18,
        glimpse_size: int = 4,
        scales: int = 1,
        layout: Layout | Mapping[str, Any] | None = None,
        split: str = "train",
        digits: tuple[np.ndarray, np.ndarray] | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"render_mode must be rgb_array, got {render_mode!r}")
        if split not in SPLITS:
            raise ValueError(f"split must be train or test, got {split!r}")
        self.config = _checked(glimpses, glimpse_size, scales, layout or {})
        self.render_mode = render_mode
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)
        shape = (scales, glimpse_size, glimpse_size)
        # A little wider than the levels are: averages of larger scales are rounded.
        low, high = LEVELS[0] - np.float32(1e-3), LEVELS[-1] + np.float32(1e-3)
        glimpse = spaces.Box(low, high, shape, np.float32)
        location = spaces.Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = spaces.Dict({"glimpse": glimpse, "location": location})
        self._split = split
        self._digits = None if digits is None else _accepted(*digits)
        self._image: np.ndarray | None = None
        self._label = 0
        self._locations: list[np.ndarray] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """A new canvas, and a first glimpse of it."""
        super().reset(seed=seed)
        if self._digits is None:
            self._digits = _from_mnist(SPLITS[self._split], cache_folder())
        canvas = sample_canvases(self._digits, 1, layout_of(self.config), self.np_random)
        self._image, self._label = canvas.images[0], int(canvas.labels[0])
        first = self.np_random.uniform(-1.0, 1.0, 2).astype(np.float32)
        self._locations = [first]
        return self._observation(), self._info()

    def step(self, action: np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Look somewhere else."""
        if self._image is None:
            raise gym.error.ResetNeeded("call reset before step")
        location = np.asarray(action, dtype=np.float32)
        if location.shape != (2,) or not np.isfinite(location).all():
            raise ValueError(f"action must be two finite numbers, column and row, got {action!r}")
        self._locations.append(location.clip(-1.0, 1.0))
        info = self._info()
        ended = len(self._locations) >= self.config.glimpses
        if ended:
            info["label"] = self._label
        return self._observation(), 0.0, ended, False, info

    def render(self) -> Any:
        """The canvas, a square for each glimpse: the first yellow, the last red."""
        if self.render_mode != "rgb_array" or self._image is None:
            return None
        picture = self._image[..., None].repeat(3, axis=2)
        picture = picture.repeat(ENLARGED, axis=0).repeat(ENLARGED, axis=1)
        last = len(self._locations) - 1
        for n, location in enumerate(self._locations):
            self._plot_square(picture, location, _HERE if n == last else _PATH if n else _START)
        return picture

    def _plot_square(
        self, picture: np.ndarray, location: np.ndarray, colour: tuple[int, int, int]
    ) -> None:
        side = self.config.glimpse_size * 2 ** (self.config.scales - 1)
        column, row = (0.5 * self.config.canvas_size * (location + 1.0)).astype(int)
        top, left = ENLARGED * (row - side // 2), ENLARGED * (column - side // 2)
        bottom, right = top + ENLARGED * side - 1, left + ENLARGED * side - 1
        size = len(picture)
        across = slice(max(left, 0), max(right + 1, 0))
        down = slice(max(top, 0), max(bottom + 1, 0))
        for line in (top, bottom):
            if 0 <= line < size:
                picture[line, across] = colour
        for line in (left, right):
            if 0 <= line < size:
                picture[down, line] = colour

    def _observation(self) -> Observation:
        assert self._image is not None
        location, config = self._locations[-1], self.config
        pixels = np.empty((1, config.pixels), np.float32)
        radius = np.float32(0.5 * config.canvas_size)
        where = (self._image[None], location[None], pixels)
        cut_out(*where, LEVELS, radius, config.glimpse_size, config.scales)
        shape = self.observation_space["glimpse"].shape  # type: ignore[index]
        return {"glimpse": pixels.reshape(shape), "location": location.copy()}

    def _info(self) -> dict[str, Any]:
        return {"glimpses": len(self._locations)}


def _checked(
    glimpses: int, glimpse_size: int, scales: int, layout: Layout | Mapping[str, Any]
) -> RamConfig:
    """The settings of an episode, if they can be."""
    if glimpses < 2:
        raise ValueError(f"glimpses must be at least 2, got {glimpses}: reset shows the first")
    fields = dataclasses.asdict(layout) if isinstance(layout, Layout) else dict(layout)
    unknown = set(fields) - {field.name for field in dataclasses.fields(Layout)}
    if unknown:
        raise ValueError(f"layout has no {', '.join(sorted(unknown))}")
    return RamConfig(glimpses=glimpses, glimpse_size=glimpse_size, scales=scales, **fields)


def _accepted(images: np.ndarray, labels: np.ndarray) -> Digits:
    """Digits of one's own, if they look like those of MNIST."""
    images, labels = np.asarray(images), np.asarray(labels)
    if images.dtype != np.uint8 or images.ndim != 3 or images.shape[1:] != (DIGIT, DIGIT):
        raise ValueError(
            f"digits must be images (n, {DIGIT}, {DIGIT}) of bytes, got {images.dtype} of shape "
            f"{images.shape}"
        )
    if labels.shape != images.shape[:1] or not len(labels):
        raise ValueError(f"digits need a label for each image, got labels of shape {labels.shape}")
    if not np.issubdtype(labels.dtype, np.integer) or not np.isin(labels, range(CLASSES)).all():
        raise ValueError(f"labels of digits must be integers in 0..{CLASSES - 1}")
    return Digits(images, labels)


@cache
def _from_mnist(part: str, folder: Path) -> Digits:
    """Read once for all environments of a process."""
    return read_mnist(part)
