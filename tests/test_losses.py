import pytest
import torch

from irrl.losses import baseline_loss, gaussian_log_prob, reinforce_loss


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
