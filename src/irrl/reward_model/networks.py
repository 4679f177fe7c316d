"""The default discriminators: each maps observations (T, B, ...) to logits (T, B, K).

One that judges trajectories reads them step by step as well: ``initial_state(n)`` and
``step(observations, state)`` give logits and the next state, so that a running episode is judged
without being read again. A module of one's own may offer these two; it needs only `forward`.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from irrl.reward_model.normalise import Features, has_channels_first
from irrl.reward_model.spaces import Part

CORES = ("set", "gru")
SHORT = 64  # steps
SEEN = 128  # numbers that convolutions make of an image

Observations = Mapping[str, Tensor]


class Encoder(nn.Module):
    """Observations to vectors: two layers, with convolutions before them for large images."""

    def __init__(self, features: Features, width: int) -> None:
        super().__init__()
        self.shared = (features,)  # in a tuple: the model's own, not a part of each member
        self.convolutions = nn.ModuleList(map(_convolutions, features.images.values()))
        size = features.size + SEEN * len(self.convolutions)
        self.layers = nn.Sequential(
            nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )

    def forward(self, observations: Observations) -> Tensor:
        (features,) = self.shared
        vectors, images = features(observations)
        found = [vectors]
        for (name, image), convolutions in zip(images.items(), self.convolutions, strict=True):
            channels_first = _channels_first(features.parts[name], image)
            seen = convolutions(channels_first.flatten(0, -4))
            found.append(seen.reshape(*vectors.shape[:-1], -1))
        return self.layers(torch.cat(found, dim=-1))


def _convolutions(part: Part) -> nn.Sequential:
    channels = 1
    if len(part.shape) == 3:
        channels = part.shape[0] if has_channels_first(part) else part.shape[2]
    return nn.Sequential(
        nn.Conv2d(channels, 16, 5, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, SEEN),
    )  # fmt: skip


def _channels_first(part: Part, images: Tensor) -> Tensor:
    """Images as (..., C, H, W)."""
    if len(part.shape) == 2:
        return images.unsqueeze(-3)
    return images if has_channels_first(part) else images.movedim(-1, -3)


class StateJudge(nn.Module):
    """Reads each observation by itself."""

    def __init__(self, features: Features, labels: int, width: int) -> None:
        super().__init__()
        self.encoder = Encoder(features, width)
        self.head = nn.Linear(width, labels)

    def forward(self, observations: Observations) -> Tensor:
        return self.head(self.encoder(observations))


class SetJudge(nn.Module):
    """Adds up what each observation says; the order in which they came does not count."""

    def __init__(self, features: Features, labels: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.encoder = Encoder(features, width)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, labels))

    def initial_state(self, n: int) -> Tensor:
        return next(self.head.parameters()).new_zeros(n, self.width)

    def step(self, observations: Observations, state: Tensor) -> tuple[Tensor, Tensor]:
        state = state + self.encoder(observations)
        return self.head(state), state

    def forward(self, observations: Observations) -> Tensor:
        return self.head(_running_sum(self.encoder(observations)))


def _running_sum(seen: Tensor) -> Tensor:
    """Over the first axis; as a product, forward and back, several times as fast where short."""
    steps = len(seen)
    if steps > SHORT:
        return seen.cumsum(dim=0)
    return (seen.new_ones(steps, steps).tril() @ seen.flatten(1)).view_as(seen)


class RecurrentJudge(nn.Module):
    """Remembers with a gated recurrent unit; the order counts."""

    def __init__(self, features: Features, labels: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.encoder = Encoder(features, width)
        self.core = nn.GRU(width, width)
        self.head = nn.Linear(width, labels)

    def initial_state(self, n: int) -> Tensor:
        return self.head.weight.new_zeros(n, self.width)

    def step(self, observations: Observations, state: Tensor) -> tuple[Tensor, Tensor]:
        _, after = self.core(self.encoder(observations)[None], state[None])
        return self.head(after[0]), after[0]

    def forward(self, observations: Observations) -> Tensor:
        return self.head(self.core(self.encoder(observations))[0])


def default_discriminator(
    features: Features, labels: int, judge: str, core: str, width: int
) -> nn.Module:
    """A discriminator for what is judged."""
    if judge != "trajectory":
        return StateJudge(features, labels, width)
    return (SetJudge if core == "set" else RecurrentJudge)(features, labels, width)
