import numpy as np
import pytest
import torch
from torch import nn

from irrl.errors import UserError
from irrl.nn.models import make_adam, restore_adam, tensors_of, to_arrays


def layer_and_adam():
    layer = nn.Linear(3, 2)
    return layer, make_adam([{"params": list(layer.parameters()), "lr": 0.1}])


def learned():
    """Arrays of a layer that has learned a little, and its Adam."""
    layer, adam = layer_and_adam()
    layer(torch.ones(1, 3)).sum().backward()
    adam.step()
    return to_arrays(tensors_of(layer, "layer.", adam))


def test_adam_is_restored_as_it_was():
    layer, adam = layer_and_adam()
    arrays = learned()
    restore_adam(adam, layer, "layer.", arrays)
    again = to_arrays(tensors_of(layer, "layer.", adam))
    moments = [name for name in arrays if name.startswith("adam.")]
    assert len(moments) == 6
    for name in moments:
        np.testing.assert_array_equal(again[name], arrays[name])


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 2)])
def test_moments_of_another_shape_are_refused(shape):
    layer, adam = layer_and_adam()
    arrays = {**learned(), "adam.exp_avg.layer.weight": np.zeros(shape, np.float32)}
    with pytest.raises(UserError, match=r"adam.exp_avg.layer.weight is .* expected .*\(2, 3\)"):
        restore_adam(adam, layer, "layer.", arrays)


def test_moments_of_another_type_are_refused():
    layer, adam = layer_and_adam()
    arrays = {**learned(), "adam.exp_avg_sq.layer.bias": np.zeros(2)}
    with pytest.raises(UserError, match="float64 of shape"):
        restore_adam(adam, layer, "layer.", arrays)
