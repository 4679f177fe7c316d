"""RAM and DT-RAM as in the paper's appendix, in plain PyTorch: the reference.

Training uses the same layers, but rolls out without autograd and takes gradients by a manual
backward pass (`discriminator`, `policy`, `manual_backward`). It must give what this module gives;
a test holds it to that. Locations are (column, row) in [-1, 1].
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from array_api_compat import array_namespace
from torch import Tensor, nn
from torch.nn import functional

from irrl.ensembles import disagreement
from irrl.nn.heads import head_log_probs, mixture
from irrl.tasks.digits.chance import RandomNumbers
from irrl.tasks.digits.config import RamConfig
from irrl.tasks.digits.data import CLASSES
from irrl.tasks.digits.stop import stop_probability


class GlimpseNetwork(nn.Module):
    """Two layers for what was seen and where; their outputs, mapped by one more each, are added.

    The sum of these two layers is one layer on both outputs side by side.
    """

    def __init__(self, config: RamConfig, place_features: int = 2) -> None:
        super().__init__()
        self.what = nn.Linear(config.pixels, config.glimpse_width)
        self.where = nn.Linear(place_features, config.glimpse_width)
        self.combine = nn.Linear(2 * config.glimpse_width, config.width)

    def forward(self, glimpse: Tensor, location: Tensor) -> Tensor:
        what, where = functional.relu(self.what(glimpse)), functional.relu(self.where(location))
        return functional.relu(self.combine(torch.cat([what, where], dim=-1)))


class CoreNetwork(nn.Module):
    """A rectified recurrent network. (One with gates has three times the units.)"""

    def __init__(self, width: int, gates: int = 1) -> None:
        super().__init__()
        self.from_glimpse = nn.Linear(width, gates * width)
        self.from_state = nn.Linear(width, gates * width)

    def forward(self, features: Tensor, state: Tensor) -> Tensor:
        return functional.relu(self.from_glimpse(features) + self.from_state(state))


class Locator(nn.Module):
    """The mean of the next location and, with DT-RAM, the probability of stopping instead."""

    def __init__(self, inputs: int, width: int, outputs: int = 2, stops: bool = False) -> None:
        super().__init__()
        self.stops = stops
        self.hidden = nn.Linear(inputs, width)
        self.out = nn.Linear(width, outputs + stops)

    def forward(self, state: Tensor) -> tuple[Tensor, Tensor | None]:
        return self.decide(self.out(functional.relu(self.hidden(state))))

    def decide(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        if not self.stops:
            return torch.tanh(logits), None
        return torch.tanh(logits[..., :-1]), stop_probability(logits[..., -1])


class RamDiscriminator(nn.Module):
    """q(y | glimpses so far): the glimpse network, the core and the classifier."""

    def __init__(self, config: RamConfig) -> None:
        super().__init__()
        self.glimpse_network = GlimpseNetwork(config)
        self.core = CoreNetwork(config.width)
        self.heads = config.heads
        self.classifier = nn.Linear(config.width, config.heads * CLASSES)

    def forward(self, glimpse: Tensor, location: Tensor, state: Tensor) -> Tensor:
        """The state of the core after a glimpse."""
        return self.core(self.glimpse_network(glimpse, location), state)

    def head_log_probs(self, states: Tensor) -> Tensor:
        return head_log_probs(self.classifier, states, self.heads)


class RamPolicy(nn.Module):
    """The locator and the baseline. They read the state; their gradient does not reach it."""

    def __init__(self, config: RamConfig) -> None:
        super().__init__()
        self.locator = Locator(config.width, config.locator_width, stops=config.stops)
        self.baseline = nn.Linear(config.width, 1)


class Episodes(NamedTuple):
    """A batch of episodes; the first axis is that of glimpses, or of actions: one fewer."""

    locations: Tensor  # (glimpses, batch, 2)
    states: Tensor  # (glimpses, batch, width)
    head_log_probs: Tensor  # (heads, glimpses, batch, classes)
    action_log_probs: Tensor  # (actions, batch)
    expected: Tensor  # (actions, batch): by the baseline
    taken: Tensor  # (actions, batch): whether the episode still ran
    lengths: Tensor  # (batch): glimpses until the episode ended

    @property
    def log_probs(self) -> Tensor:
        """(glimpses, batch, classes): of all heads together."""
        return mixture(self.head_log_probs)


def run_episodes(
    discriminator: RamDiscriminator,
    policy: RamPolicy,
    look: Callable[[Tensor], Tensor],
    numbers: RandomNumbers,
    std: float,
) -> Episodes:
    """Episodes with gradients. ``look`` gives the pixels of a glimpse at a location."""
    location, running = numbers.first, torch.ones(len(numbers.first), dtype=torch.bool)
    state = location.new_zeros(len(location), discriminator.classifier.in_features)
    locations, states, actions = [], [], []
    for t in range(len(numbers.noise) + 1):
        state = discriminator(look(location), location, state)
        locations.append(location)
        states.append(state)
        if t == len(numbers.noise):
            break
        mean, stop = policy.locator(state.detach())
        sample = (mean + std * numbers.noise[t]).detach()
        location = sample.clamp(-1.0, 1.0)
        log_prob = torch.distributions.Normal(mean, std).log_prob(sample).sum(dim=-1)
        taken = running
        if stop is not None:
            going_on = numbers.stop_uniform[t] >= stop
            log_prob = torch.where(going_on, log_prob + torch.log1p(-stop), torch.log(stop))
            running = running & going_on
        actions.append((log_prob, policy.baseline(state.detach())[:, 0], taken, running))
    all_states = torch.stack(states)
    log_prob, expected, taken, went_on = (torch.stack(x) for x in zip(*actions, strict=True))
    return Episodes(
        torch.stack(locations),
        all_states,
        discriminator.head_log_probs(all_states),
        log_prob,
        expected,
        taken,
        1 + went_on.sum(dim=0),
    )


def ram_loss(config: RamConfig, episodes: Episodes, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Losses of the policy (REINFORCE with a baseline) and of the discriminator (cross-entropy)."""
    everyone = torch.arange(len(labels))
    log_q = episodes.log_probs[:, everyone, labels]
    log_q_end = log_q[episodes.lengths - 1, everyone]

    reward = _reward(config, episodes.log_probs[episodes.lengths - 1, everyone], labels, log_q_end)
    if config.has_bonus:
        heads = episodes.head_log_probs[:, episodes.lengths - 1, everyone]
        reward = reward + config.bonus_weight * disagreement(heads, config.bonus_kind)
    if config.stops:
        reward = reward * config.step_discount**episodes.lengths
    count = episodes.taken.sum()
    advantage = reward - episodes.expected.detach()
    reinforce = -(episodes.action_log_probs * advantage)[episodes.taken].sum() / len(labels)
    baseline = (episodes.expected - reward).square()[episodes.taken].sum() / count
    policy_loss = baseline + config.policy_coef * reinforce

    of_heads = episodes.head_log_probs[:, :, everyone, labels]
    discriminator_loss = -of_heads[:, episodes.lengths - 1, everyone].mean()
    if config.supervision == "all":
        seen = torch.arange(len(log_q))[:, None] < episodes.lengths
        discriminator_loss = discriminator_loss - of_heads[:, seen].mean()
    return policy_loss, discriminator_loss


def _reward(config: RamConfig, log_probs: Tensor, labels: Tensor, log_q: Tensor) -> Tensor:
    """Without a gradient, unless it leaks as in the authors' code."""
    reward_fn = config.reward_fn()
    if not config.leak_reward_gradient:
        return reward_fn(log_probs, labels)
    log_p = torch.full_like(log_q, 1.0 / CLASSES).log()
    return reward_fn.of_log_posterior(array_namespace(log_q), log_q, log_p)
