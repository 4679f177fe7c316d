import pytest
import torch

from irrl.losses import (
    at_last_step,
    baseline_loss,
    discriminator_loss,
    entropy,
    gaussian_log_prob,
    label_nll,
    mean_over_taken,
    normalise_advantage,
    ppo_loss,
    reinforce_loss,
    steps_taken,
    value_loss,
)


def test_the_gaussian_is_that_of_pytorch():
    sample, mean = torch.randn(2, 4, 3, 2)
    wanted = torch.distributions.Normal(mean, 0.3).log_prob(sample).sum(-1)
    torch.testing.assert_close(gaussian_log_prob(sample, mean, 0.3), wanted)


def test_reinforce_sums_actions_and_averages_episodes():
    log_prob, advantage = torch.randn(2, 3, 4, dtype=torch.float64)
    taken = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)
    by_hand = sum(
        -log_prob[t, n] * advantage[t, n] for t in range(3) for n in range(4) if taken[t, n]
    )
    torch.testing.assert_close(reinforce_loss(log_prob, advantage, taken), by_hand / 4)


def test_no_gradient_through_advantages_or_actions_not_taken():
    log_prob = torch.randn(3, 4, requires_grad=True)
    advantage = torch.randn(3, 4, requires_grad=True)
    taken = torch.rand(3, 4) < 0.5
    reinforce_loss(log_prob, advantage, taken).backward()
    assert advantage.grad is None
    torch.testing.assert_close(log_prob.grad, torch.where(taken, -advantage.detach() / 4, 0.0))


def test_the_gradient_passes_through_advantages_that_are_not_detached():
    log_prob = torch.randn(3, 4, requires_grad=True)
    advantage = torch.randn(3, 4, requires_grad=True)
    taken = torch.rand(3, 4) < 0.5
    loss = reinforce_loss(log_prob, advantage, taken, detach=False)
    assert loss == reinforce_loss(log_prob, advantage, taken)
    loss.backward()
    torch.testing.assert_close(advantage.grad, torch.where(taken, -log_prob.detach() / 4, 0.0))
    torch.testing.assert_close(log_prob.grad, torch.where(taken, -advantage.detach() / 4, 0.0))


def test_the_policy_gradient_points_the_right_way():
    """A Gaussian whose reward is its closeness to a target moves towards the target."""
    torch.manual_seed(0)
    mean = torch.zeros(2, requires_grad=True)
    target = torch.tensor([0.5, -0.3])
    sample = (mean + 0.2 * torch.randn(1, 5000, 2)).detach()
    rewards = -(sample - target).square().sum(-1)
    log_prob = gaussian_log_prob(sample, mean, 0.2)
    taken = torch.ones(1, 5000, dtype=torch.bool)
    reinforce_loss(log_prob, rewards - rewards.mean(), taken).backward()
    # The exact gradient of the expected reward is 2 (target - mean).
    torch.testing.assert_close(-mean.grad, 2 * target, atol=0.1, rtol=0.1)


def test_impossible_values_of_actions_not_taken_do_no_harm():
    log_prob = torch.tensor([[0.5, -torch.inf]], requires_grad=True)
    taken = torch.tensor([[True, False]])
    loss = reinforce_loss(log_prob, torch.ones(1, 2), taken)
    loss.backward()
    assert loss.item() == -0.25 and log_prob.grad.tolist() == [[-0.5, 0.0]]


ONES, TAKEN = torch.ones(3, 4), torch.ones(3, 4, dtype=torch.bool)
ROW, LABELS = torch.ones(4), torch.zeros(4, dtype=torch.long)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reinforce_loss(ONES, ROW, TAKEN), r"one shape.*advantage_t \(4,\)"),
        (lambda: baseline_loss(ONES, ROW, TAKEN), r"one shape.*return_t \(4,\)"),
        (lambda: ppo_loss(ONES, ONES, ROW, TAKEN, 0.2), r"one shape.*advantage_t \(4,\)"),
        (lambda: value_loss(ONES, ROW, ONES, TAKEN, 0.2), r"one shape.*old_value_t \(4,\)"),
        (lambda: mean_over_taken(ONES, TAKEN[0]), r"one shape.*taken_t \(4,\)"),
        (lambda: normalise_advantage(ONES, TAKEN[0], "scale"), "one shape"),
        (lambda: normalise_advantage(ONES, TAKEN, "both"), "how must be one of none, scale"),
        (lambda: label_nll(ONES, LABELS), r"labels \(B,\), got \(3, 4\) and \(4,\)"),
        (lambda: label_nll(ROW, LABELS[0]), r"labels \(B,\), got"),
        (lambda: at_last_step(ONES, LABELS[:3]), r"lengths \(B,\), got \(3, 4\) and \(3,\)"),
        (lambda: discriminator_loss(ONES[..., None], LABELS, LABELS, "first"), "supervision must"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- the discriminator ---


def episodes(steps=5, batch=6, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(steps, batch, classes, generator=generator, dtype=torch.float64)
    labels = torch.randint(classes, (batch,), generator=generator)
    return (
        logits.log_softmax(-1),
        labels,
        torch.randint(1, steps + 1, (batch,), generator=generator),
    )


def test_the_label_nll_is_the_cross_entropy_of_pytorch():
    log_probs, labels, _ = episodes()
    for t in range(5):
        wanted = torch.nn.functional.nll_loss(log_probs[t], labels, reduction="none")
        torch.testing.assert_close(label_nll(log_probs, labels)[t], wanted)
        torch.testing.assert_close(label_nll(log_probs[t], labels), wanted)
    assert label_nll(log_probs[None], labels).shape == (1, 5, 6)


@pytest.mark.parametrize("supervision", ["last", "all"])
def test_the_discriminators_loss_against_a_loop(supervision):
    log_probs, labels, lengths = episodes()
    nll = -log_probs
    last = [nll[int(n) - 1, b, labels[b]] for b, n in enumerate(lengths)]
    every = [nll[t, b, labels[b]] for b, n in enumerate(lengths) for t in range(int(n))]
    found = discriminator_loss(
        log_probs, labels, lengths, supervision, episode_share=0.5, step_share=0.25
    )
    wanted = 0.5 * sum(last) / len(last)
    if supervision == "all":
        wanted = wanted + 0.25 * sum(every) / len(every)
    torch.testing.assert_close(found, wanted)


def test_the_last_step_alone_is_enough_where_only_it_is_supervised():
    log_probs, labels, lengths = episodes()
    only = at_last_step(log_probs, lengths)[None]
    whole = discriminator_loss(log_probs, labels, lengths)
    assert discriminator_loss(only, labels, lengths) == whole


def test_steps_taken_and_last_steps():
    lengths = torch.tensor([1, 3, 2])
    taken = steps_taken(3, lengths)
    assert taken.sum(dim=0).tolist() == lengths.tolist()
    assert taken.dtype == torch.bool
    number = torch.arange(3)[:, None].expand(3, 3)
    assert at_last_step(number, lengths).tolist() == [0, 2, 1]
    assert at_last_step(torch.ones(3, 3, 2, 5), lengths).shape == (3, 2, 5)


# --- advantages ---


def test_normalised_advantages_are_of_unit_size_over_the_actions_taken():
    advantage = 3.0 * torch.randn(4, 6, dtype=torch.float64) + 5.0
    taken = torch.rand(4, 6) < 0.7
    assert normalise_advantage(advantage, taken, "none") is advantage
    scaled = normalise_advantage(advantage, taken, "scale")
    assert scaled[taken].std(correction=0).item() == pytest.approx(1.0)
    torch.testing.assert_close(scaled * advantage[taken].std(correction=0), advantage)
    standard = normalise_advantage(advantage, taken, "standardise")
    assert standard[taken].mean().item() == pytest.approx(0.0, abs=1e-12)
    assert standard[taken].std(correction=0).item() == pytest.approx(1.0)


@pytest.mark.parametrize("how", ["scale", "standardise"])
def test_equal_advantages_and_no_actions_are_no_trouble(how):
    equal = normalise_advantage(torch.full((2, 3), 2.0), torch.ones(2, 3, dtype=torch.bool), how)
    assert equal.isfinite().all()
    empty = torch.zeros(0, 3)
    assert normalise_advantage(empty, empty.bool(), how).shape == (0, 3)


def test_baseline_loss_is_the_mean_over_actions_taken():
    expected, returns = torch.randn(2, 3, 4)
    taken = torch.rand(3, 4) < 0.5
    wanted = (expected - returns)[taken].square().mean()
    torch.testing.assert_close(baseline_loss(expected, returns, taken), wanted)
    assert baseline_loss(expected, returns, torch.zeros(3, 4, dtype=torch.bool)) == 0


# --- PPO ---


def ppo_case(seed=0):
    generator = torch.Generator().manual_seed(seed)
    new, old, advantage = torch.randn(3, 4, 6, generator=generator, dtype=torch.float64)
    return 0.3 * new - 1, 0.3 * old - 1, advantage, torch.rand(4, 6, generator=generator) < 0.7


def test_ppo_against_a_loop():
    new, old, advantage, taken = ppo_case()
    terms = []
    for t in range(4):
        for n in range(6):
            if taken[t, n]:
                ratio = torch.exp(new[t, n] - old[t, n]).item()
                near = min(max(ratio, 0.8), 1.2)
                terms.append(-min(ratio * advantage[t, n].item(), near * advantage[t, n].item()))
    found = ppo_loss(new, old, advantage, taken, 0.2).item()
    assert found == pytest.approx(sum(terms) / len(terms))


def test_ppo_begins_as_the_policy_gradient_and_stops_where_it_is_clipped():
    _, old, advantage, taken = ppo_case()
    new = old.clone().requires_grad_()
    ppo_loss(new, old, advantage, taken, 0.2).backward()
    torch.testing.assert_close(new.grad, torch.where(taken, -advantage, 0.0) / taken.sum())
    far = (old + advantage.sign() * 0.5).requires_grad_()  # already better than allowed
    ppo_loss(far, old, advantage, taken, 0.2).backward()
    assert (far.grad == 0).all()
    back = (old - advantage.sign() * 0.5).requires_grad_()  # worse: free to return
    ppo_loss(back, old, advantage, taken, 0.2).backward()
    assert (back.grad[taken] != 0).all()


def test_no_gradient_through_what_ppo_compares_with():
    new, old, advantage, taken = (x.requires_grad_(x.is_floating_point()) for x in ppo_case())
    ppo_loss(new, old, advantage, taken, 0.2).backward()
    assert old.grad is None and advantage.grad is None and (new.grad[~taken] == 0).all()
    value, before, returns = (torch.randn(4, 6, requires_grad=True) for _ in range(3))
    value_loss(value, before, returns, taken, 0.2).backward()
    assert before.grad is None and returns.grad is None and (value.grad[~taken] == 0).all()


def test_value_loss_against_a_loop():
    value, old, returns = torch.randn(3, 4, 6, dtype=torch.float64)
    taken = torch.rand(4, 6) < 0.7
    terms = []
    for t in range(4):
        for n in range(6):
            if taken[t, n]:
                v, o, r = value[t, n].item(), old[t, n].item(), returns[t, n].item()
                near = o + min(max(v - o, -0.2), 0.2)
                terms.append(max((v - r) ** 2, (near - r) ** 2))
    found = value_loss(value, old, returns, taken, 0.2).item()
    assert found == pytest.approx(sum(terms) / len(terms))


def test_impossible_actions_not_taken_do_ppo_no_harm():
    new = torch.tensor([[-1.0, -torch.inf]], requires_grad=True)
    taken = torch.tensor([[True, False]])
    ppo_loss(new, torch.full((1, 2), -1.0), torch.ones(1, 2), taken, 0.2).backward()
    assert new.grad.tolist() == [[-1.0, 0.0]]


def test_entropy_is_that_of_pytorch():
    logits = torch.randn(3, 4, 5)
    wanted = torch.distributions.Categorical(logits=logits).entropy()
    torch.testing.assert_close(entropy(logits.log_softmax(-1)), wanted)


def test_means_over_nothing():
    assert mean_over_taken(torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool)) == 0
