"""Discriminator and policy of a configuration: the paper's, or with what is added to it."""

import math

import torch
from torch import nn

from irrl.runs.seeding import stream
from irrl.tasks.digits.discriminator import Discriminator, Places, RecurrentDiscriminator
from irrl.tasks.digits.extensions.config import DigitsConfig
from irrl.tasks.digits.extensions.cores import GruDiscriminator, MapDiscriminator
from irrl.tasks.digits.extensions.places import FourierPlaces, ObjectCentredPlaces
from irrl.tasks.digits.extensions.policy import MapPolicy
from irrl.tasks.digits.policy import GaussianPolicy, Policy
from irrl.tasks.digits.ram import GlimpseNetwork

CORES = {"rnn": RecurrentDiscriminator, "gru": GruDiscriminator, "map": MapDiscriminator}


def make_discriminator(config: DigitsConfig) -> Discriminator:
    return CORES[config.core](config, make_places(config))


def make_places(config: DigitsConfig) -> Places:
    if config.object_centred:
        return ObjectCentredPlaces(config)
    return FourierPlaces(config) if config.location_features > 0 else Places()


def make_policy(config: DigitsConfig) -> Policy:
    return MapPolicy(config) if config.extends_policy else GaussianPolicy(config)


def initial_models(config: DigitsConfig, device: torch.device) -> tuple[Discriminator, Policy]:
    """PyTorch's usual initialisation, sampled from the streams of the run.

    The layer that combines what and where stands for two of half its input, and is sampled as
    these would be.
    """
    discriminator, policy = make_discriminator(config), make_policy(config)
    for name, model in (("discriminator", discriminator), ("policy", policy)):
        rng = stream(config.seed, name, 0)
        doubled = {m.combine for m in model.modules() if isinstance(m, GlimpseNetwork)}
        for layer in model.modules():
            if isinstance(layer, nn.Linear):
                layers = 2 if layer in doubled else 1
                bound = (layer.in_features / layers) ** -0.5
                weight = rng.uniform(-bound, bound, tuple(layer.weight.shape))
                bias = rng.uniform(-bound, bound, (layers, *layer.bias.shape)).sum(axis=0)
                layer.weight.data.copy_(torch.from_numpy(weight))
                layer.bias.data.copy_(torch.from_numpy(bias))
    for layer in policy.output_layers():
        for parameter in layer.parameters():
            parameter.data.mul_(config.initial_policy)
    if config.stops:
        odds = config.initial_stop / (1.0 - config.initial_stop)
        policy.locator.out.bias.data[-1] += math.log(odds)
    return discriminator.to(device), policy.to(device)
