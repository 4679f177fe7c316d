import pytest
import torch

from irrl.losses import (
    baseline_loss,
    entropy,
    gaussian_log_prob,
    mean_over_taken,
    ppo_loss,
    reinforce_loss,
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


def test_the_policy_gradient_points_the_right_way():
    """A Gaussian whose reward is its closeness to a target moves towards the target."""
    torch.manual_seed(0)
    mean = torch.zeros(2, requires_grad=True)
    target = torch.tensor([0.5, -0.3])
    sample = (mean + 0.2 * torch.randn(1, 5000, 2)).detach()
    paid = -(sample - target).square().sum(-1)
    log_prob = gaussian_log_prob(sample, mean, 0.2)
    reinforce_loss(log_prob, paid - paid.mean(), torch.ones(1, 5000, dtype=torch.bool)).backward()
    # The exact gradient of the expected reward is 2 (target - mean).
    torch.testing.assert_close(-mean.grad, 2 * target, atol=0.1, rtol=0.1)


def test_impossible_values_of_actions_not_taken_do_no_harm():
    log_prob = torch.tensor([[0.5, -torch.inf]], requires_grad=True)
    taken = torch.tensor([[True, False]])
    loss = reinforce_loss(log_prob, torch.ones(1, 2), taken)
    loss.backward()
    assert loss.item() == -0.25 and log_prob.grad.tolist() == [[-0.5, 0.0]]


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="one shape"):
        reinforce_loss(torch.ones(3, 4), torch.ones(4), torch.ones(3, 4, dtype=torch.bool))


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


def test_means_over_nothing_and_of_other_shapes():
    assert mean_over_taken(torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bool)) == 0
    with pytest.raises(ValueError, match="one shape"):
        mean_over_taken(torch.ones(2, 3), torch.ones(3, dtype=torch.bool))
