import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict
from torch import nn

from tests.reward_model.episodes import Plain, Stepwise, episode, fed, same, small_model, weights


class Dropped(Plain):
    """Uses chance while it learns."""

    def forward(self, observations):
        return self.head(nn.functional.dropout(self.core(observations)[0], 0.5, self.training))


class Noisy(Plain):
    """Uses chance always."""

    def forward(self, observations):
        return super().forward(observations + torch.rand(()))


class Frozen(Plain):
    def __init__(self):
        super().__init__()
        self.requires_grad_(False)


class Failing(Plain):
    def forward(self, observations):
        raise RuntimeError("no such thing\nat line 7")


class BatchSecond(Stepwise):
    def initial_state(self, n):
        return torch.zeros(1, n, 8)

    def step(self, observations, state):
        _, after = self.core(observations[None], state)
        return self.head(after[0]), after


class OddStep(Stepwise):
    def step(self, observations, state):
        logits, state = super().step(observations, state)
        return logits[:, :2], state


class FailingStep(Stepwise):
    def step(self, observations, state):
        raise KeyError("hidden")


ONE = Plain()


@pytest.mark.parametrize(
    ("made", "options", "said"),
    [
        (lambda: Plain(labels=4), {}, r"logits \(T, B, 3\): got \(2, 3, 4\)"),
        (lambda: nn.Flatten(0), {}, r"got \(12,\) where \(2, 3, 3\) was expected"),
        (lambda: nn.GRU(2, 3), {}, "got tuple where"),
        (Frozen, {}, "no parameter with a gradient"),
        (Failing, {}, r"cannot read observations .*: RuntimeError: no such thing$"),
        (lambda: Plain(size=5), {}, "cannot read observations"),
        (lambda: 3, {}, "must be a torch.nn.Module or make one, got int"),
        (ONE, {"ensemble": 2}, "must be a function that makes a module"),
        (ONE, {"reward": "disdain"}, "must be a function that makes a module"),
        (lambda: ONE, {"ensemble": 2}, "makes the same module again and again"),
        (BatchSecond, {}, "first axis is n"),
        (OddStep, {}, r"discriminator.step must give logits \(B, 3\)"),
        (FailingStep, {}, "cannot read step by step.*KeyError: 'hidden'"),
    ],
)
def test_a_module_that_cannot_judge_is_refused(made, options, said):
    with pytest.raises(ValueError, match=said) as caught:
        small_model(discriminator=made, **options)
    assert "\n" not in str(caught.value)


def test_a_module_of_ones_own_is_the_one_that_learns():
    own = Plain()
    model = fed(small_model(discriminator=own))
    before = [p.detach().clone() for p in own.parameters()]
    model.learn()
    assert not same([p.numpy() for p in before], [p.detach().numpy() for p in own.parameters()])


def test_what_is_frozen_of_a_module_stays_as_it_is():
    own = Plain()
    own.core.requires_grad_(False)
    model = fed(small_model(discriminator=own))
    core, head = own.core.weight_ih_l0.clone(), own.head.weight.detach().clone()
    model.learn()
    assert torch.equal(core, own.core.weight_ih_l0) and not torch.equal(head, own.head.weight)


class Looks(nn.Module):
    """Keeps what it was shown."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(1, 2)

    def forward(self, observations):
        self.shown = observations
        whole = observations if torch.is_tensor(observations) else observations["a"]
        return self.head(whole[..., :1].float())


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("named", [True, False])
def test_a_module_of_ones_own_sees_what_the_space_says(named, normalise):
    box = Box(-9.0, 9.0, (2,), np.float64)
    space = Dict({"a": box, "b": Box(0, 255, (), np.uint8)}) if named else box
    own = Looks()
    model = small_model(2, space, discriminator=own, normalise=normalise)
    for n in range(4):
        a = 5.0 + episode(n).astype(float)
        model.add({"a": a, "b": np.full(5, 7, np.uint8)} if named else a, n % 2)
    model.learn()
    a = np.full((3, 2), 5.0)
    model.log_probs({"a": a, "b": np.full(3, 7, np.uint8)} if named else a)
    assert set(own.shown) == {"a", "b"} if named else torch.is_tensor(own.shown)
    shown = own.shown["a"] if named else own.shown
    assert shown.dtype == torch.float32 and shown.shape == (3, 1, 2)
    assert bool((shown.abs() < 2).all()) == normalise


def test_chance_in_a_module_is_used_only_while_it_learns():
    model, seen = small_model(discriminator=Dropped), episode(0)
    first = model.log_probs(seen)
    np.testing.assert_array_equal(first, model.log_probs(seen))
    fed(model).learn()
    np.testing.assert_array_equal(model.log_probs(seen), model.log_probs(seen))


@pytest.mark.parametrize("own", [None, Dropped, Noisy])
def test_the_same_seed_gives_the_same_weights_whatever_chance_there_is_outside(own):
    made = []
    for outside in (1, 2):
        torch.manual_seed(outside)
        np.random.seed(outside)
        model = fed(small_model(discriminator=own, ensemble=2, seed=5))
        model.learn()
        model.learn()
        made.append(weights(model))
    assert same(*made)
    other = fed(small_model(discriminator=own, ensemble=2, seed=6))
    other.learn()
    assert not same(made[0], weights(other))
    one, two = ([p.detach().numpy() for p in m.parameters()] for m in model.discriminator.members)
    assert not same(one, two)


@pytest.mark.parametrize("own", [None, Dropped, Noisy])
def test_making_learning_and_looking_leave_chance_outside_alone(own):
    torch.manual_seed(3)
    np.random.seed(3)
    before = torch.get_rng_state(), np.random.get_state()[1].copy()
    model = fed(small_model(discriminator=own))
    model.learn()
    model.health()
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_it_can_be_made_where_no_gradients_are_kept():
    with torch.no_grad():
        model = small_model(discriminator=Plain)
    fed(model).learn()
    assert model.updates == 1
