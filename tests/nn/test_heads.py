"""Several classifiers on one hidden state."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from irrl.ensembles import disagreement
from irrl.losses import discriminator_loss
from irrl.nn.heads import head_log_probs, heads_loss, mean_disagreement, mixture

STATES = torch.randn(4, 5, 7, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([0, 2, 1, 0, 2])
LENGTHS = torch.tensor([1, 4, 2, 3, 4])


def layer_of(heads):
    torch.manual_seed(heads)
    return nn.Linear(7, 3 * heads)


def test_heads_are_rows_of_one_layer():
    layer = layer_of(2)
    found = head_log_probs(layer, STATES, 2)
    assert found.shape == (2, 4, 5, 3)
    for n, (weight, bias) in enumerate(
        zip(layer.weight.split(3), layer.bias.split(3), strict=True)
    ):
        expected = functional.log_softmax(STATES @ weight.t() + bias, dim=-1)
        torch.testing.assert_close(found[n], expected)


def test_one_head_says_what_a_classifier_says_bit_for_bit():
    layer = layer_of(1)
    expected = functional.log_softmax(layer(STATES), dim=-1)
    heads = head_log_probs(layer, STATES, 1)
    assert torch.equal(mixture(heads), expected)
    losses = (
        heads_loss(heads, LABELS, LENGTHS, "all"),
        discriminator_loss(expected, LABELS, LENGTHS, "all"),
    )
    assert torch.equal(*losses)
    gradients = [torch.autograd.grad(loss, layer.weight)[0] for loss in losses]
    assert torch.equal(*gradients)
    assert mean_disagreement(heads[:, 0]) == {}


def test_a_mixture_is_the_mean_of_probabilities():
    heads = head_log_probs(layer_of(3), STATES, 3)
    torch.testing.assert_close(mixture(heads).exp(), heads.exp().mean(dim=0))
    gone = torch.tensor([[0.0, -math.inf], [-math.inf, 0.0]])
    torch.testing.assert_close(mixture(gone).exp(), torch.tensor([0.5, 0.5]))


@pytest.mark.parametrize("supervision", ["last", "all"])
def test_each_head_learns_by_a_cross_entropy_of_its_own(supervision):
    """Half of the gradient that it would have alone, and nothing of the other's."""
    layer = layer_of(2)
    loss = heads_loss(head_log_probs(layer, STATES, 2), LABELS, LENGTHS, supervision)
    (found,) = torch.autograd.grad(loss, layer.weight)
    for rows, weight, bias in zip(
        found.split(3), layer.weight.split(3), layer.bias.split(3), strict=True
    ):
        alone = weight.detach().requires_grad_()
        log_probs = functional.log_softmax(STATES @ alone.t() + bias.detach(), dim=-1)
        its = discriminator_loss(log_probs, LABELS, LENGTHS, supervision)
        torch.testing.assert_close(rows, 0.5 * torch.autograd.grad(its, alone)[0])


def test_the_metric_is_the_mean_gap_in_nats():
    heads = head_log_probs(layer_of(2), STATES[0], 2)
    expected = float(disagreement(heads.detach()).mean())
    assert mean_disagreement(heads)["ensemble_disagreement"] == pytest.approx(expected, rel=1e-4)
