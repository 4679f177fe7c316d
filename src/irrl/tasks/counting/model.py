"""The network of object counting: it sees views, remembers them, acts, and tells how many.

One trunk (encoder and recurrent core) is shared by three heads: policy, value and count. The count
head is the discriminator, q(count | views so far).
"""

import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from irrl.nn.heads import head_log_probs, mixture
from irrl.runs.seeding import stream
from irrl.tasks.counting.config import CountingConfig
from irrl.tasks.counting.resnet import CHANNELS, ResNet18, load_weights
from irrl.tasks.counting.scene import CLASSES, GOALS

ACTIONS = 3
CUBES_FROM_TO = 0.22, 0.78
"""Between these rows, as shares of a picture, all cubes on the table lie."""
PLACES = 16.0
"""By which the sum over all places of a picture is divided, for numbers of a size that learns."""
GOAL_STD = 0.3
"""Standard deviation of the first scales and shifts by which goals differ."""


class Outputs(NamedTuple):
    """Of the three heads: (..., 3), (...) and (..., 7)."""

    log_policy: Tensor
    value: Tensor
    log_count: Tensor


class Encoder(nn.Module):
    """From bytes (n, side, side, 3) to vectors (n, width), in two halves.

    ``frozen_features`` never learns, and need be done but once for a picture; ``encode`` is the
    rest, and may look for the goal. Its dropout is sampled from a generator; without one, there is
    none.
    """

    def frozen_features(self, pictures: Tensor) -> Tensor:
        raise NotImplementedError

    def encode(self, features: Tensor, goals: Tensor, generator: torch.Generator | None) -> Tensor:
        raise NotImplementedError


class SmallEncoder(Encoder):
    """A few convolutions, the sum over all places, and a linear map. All of it learns.

    Only the rows in which cubes can be are looked at. Convolutions are told where in the picture
    they are, since a small cube near by and a medium one far away show as many pixels; and what to
    look for: the goal scales and shifts each channel of the first.
    """

    def __init__(self, config: CountingConfig) -> None:
        super().__init__()
        channels = (3 + 2, *config.small_widths)
        self.dropout = config.dropout
        self.convolutions = nn.ModuleList(
            nn.Conv2d(a, b, 3, stride=2 if n < config.encoder_halvings else 1, padding=1)
            for n, (a, b) in enumerate(itertools.pairwise(channels))
        )
        self.scale = nn.Embedding(len(GOALS), channels[1])
        self.shift = nn.Embedding(len(GOALS), channels[1])
        self.project = nn.Linear(channels[-1], config.width)

    def frozen_features(self, pictures: Tensor) -> Tensor:
        first, last = (round(edge * pictures.shape[1]) for edge in CUBES_FROM_TO)
        return pictures[:, first:last]

    def encode(self, features: Tensor, goals: Tensor, generator: torch.Generator | None) -> Tensor:
        x = torch.cat([2.0 * as_floats(features) - 1.0, pixel_coordinates(features)], dim=1)
        first, *others = self.convolutions
        scale, shift = (table(goals)[..., None, None] for table in (self.scale, self.shift))
        x = functional.relu(first(x) * scale + shift)
        for convolution in others:
            x = functional.relu(convolution(x))
        pooled = x.sum(dim=(2, 3)) / PLACES
        return functional.relu(self.project(dropout(pooled, self.dropout, generator)))


class ResNetEncoder(Encoder):
    """The authors' encoder: a frozen ResNet-18 to its conv3, dropout, two convolutions, average."""

    def __init__(self, config: CountingConfig) -> None:
        super().__init__()
        self.dropout = config.dropout
        self.backbone = ResNet18()
        self.conv1 = nn.Conv2d(CHANNELS, config.width, 3, padding=1)
        self.conv2 = nn.Conv2d(config.width, config.width, 3, padding=1)

    def frozen_features(self, pictures: Tensor) -> Tensor:
        return self.backbone(as_floats(pictures))

    def encode(self, features: Tensor, goals: Tensor, generator: torch.Generator | None) -> Tensor:
        x = functional.elu(self.conv1(dropout(features, self.dropout, generator)))
        return functional.elu(self.conv2(x)).mean(dim=(2, 3))


class Model(nn.Module):
    def __init__(self, config: CountingConfig) -> None:
        super().__init__()
        self.config = config
        encoders = {"small": SmallEncoder, "resnet18": ResNetEncoder}
        cells = {"rnn": nn.RNNCell, "gru": nn.GRUCell}
        # The order of these layers is that in which `initial_model` samples their weights.
        self.encoder: Encoder = encoders[config.encoder](config)
        self.goal = nn.Embedding(len(GOALS), config.embedding)
        self.core = cells[config.core](config.width + config.embedding, config.width)
        if config.head_width:
            self.head_hidden = nn.Linear(config.width + CLASSES, config.head_width)
        self.policy = nn.Linear(config.head_width or config.width, ACTIONS)
        self.value = nn.Linear(config.head_width or config.width, 1)
        self.count = nn.Linear(config.width, config.heads * CLASSES)

    @property
    def device(self) -> torch.device:
        return self.count.weight.device

    def next_state(self, view: Tensor, goals: Tensor, state: Tensor | None) -> Tensor:
        """The hidden state after one more view, (n, width)."""
        return self.core(torch.cat([view, self.goal(goals)], dim=1), state)

    def states(self, views: Tensor, goals: Tensor) -> Tensor:
        """The hidden states after each of some views, (steps, n, width)."""
        states: list[Tensor] = []
        for view in views:
            states.append(self.next_state(view, goals, states[-1] if states else None))
        return torch.stack(states)

    def outputs(self, states: Tensor) -> Outputs:
        """What all heads make of hidden states (..., width)."""
        log_count = self.log_count(states)
        x = states
        if self.config.head_width:  # the policy can tell from the posterior when to stop
            posterior = log_count.detach().exp()
            x = torch.tanh(self.head_hidden(torch.cat([states, posterior], dim=-1)))
        log_policy = functional.log_softmax(self.policy(x), dim=-1)
        return Outputs(log_policy, self.value(x)[..., 0], log_count)

    def log_count(self, states: Tensor) -> Tensor:
        """log q(count | views so far), (..., 7), by all count heads together."""
        return mixture(self.head_log_counts(states))

    def head_log_counts(self, states: Tensor) -> Tensor:
        """The same by each of the heads, (heads, ..., 7)."""
        return head_log_probs(self.count, states, self.config.heads)


def as_floats(pictures: Tensor) -> Tensor:
    """Bytes (n, side, side, 3) as numbers in [0, 1] with channels first, (n, 3, side, side)."""
    return pictures.permute(0, 3, 1, 2).float() / 255.0


def pixel_coordinates(pictures: Tensor) -> Tensor:
    """Row and column of each pixel of (n, rows, columns, 3), -1 to 1: (n, 2, rows, columns)."""
    count, rows, columns, _ = pictures.shape
    places = torch.meshgrid(
        torch.linspace(-1.0, 1.0, rows, device=pictures.device),
        torch.linspace(-1.0, 1.0, columns, device=pictures.device),
        indexing="ij",
    )
    # channels last, as the pictures lie in memory: convolutions are faster so
    return torch.stack(places, dim=-1).permute(2, 0, 1).expand(count, -1, -1, -1)


def dropout(x: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Dropout with a generator of its own: what PyTorch's drops depends on who sampled before."""
    if generator is None or share == 0.0:
        return x
    kept = torch.rand(x.shape, generator=generator, device=x.device) >= share
    return x * kept / (1.0 - share)


# --- first weights ---


def initial_model(config: CountingConfig, device: torch.device) -> Model:
    """PyTorch's usual initialisation, from the streams of the run; that of He et al. for the small
    encoder's convolutions; the backbone from a file.
    """
    model = Model(config)
    if isinstance(model.encoder, ResNetEncoder):
        load_weights(model.encoder.backbone, config.backbone_weights)
    rng = stream(config.seed, "discriminator", 0)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        if name.startswith("goal."):
            values = rng.standard_normal(tuple(parameter.shape))
        elif name.startswith(("encoder.scale.", "encoder.shift.")):
            middle = 1.0 if "scale" in name else 0.0
            values = rng.normal(middle, GOAL_STD, tuple(parameter.shape))
        else:
            # A rectifier halves what passes; without making up for it, little comes out.
            gain = 6.0 if name.startswith("encoder.convolutions.") else 1.0
            bound = (gain / fan_in(model, name)) ** 0.5
            values = rng.uniform(-bound, bound, tuple(parameter.shape))
        parameter.data.copy_(torch.from_numpy(values))
    for parameter in model.policy.parameters():
        parameter.data.mul_(config.initial_policy)
    return model.to(device)


def fan_in(model: Model, name: str) -> int:
    """By which PyTorch scales the first weights of a layer, and its biases alike."""
    if name.startswith("core."):
        return model.config.width
    layer, _, _ = name.rpartition(".")
    weight = model.get_parameter(f"{layer}.weight")
    return weight[0].numel()
