"""What several tests of counting make."""

import numpy as np
import torch

from irrl.tasks.counting.resnet import ResNet18


def generator(seed=0):
    return np.random.Generator(np.random.PCG64(seed))


def torchvision_weights():
    """As torchvision saves ResNet-18: what we use, counters, and layers beyond."""
    generator = torch.Generator().manual_seed(0)
    tensors = {
        name: torch.randn(tensor.shape, generator=generator) * 0.05
        for name, tensor in ResNet18().state_dict().items()
    }
    for name in list(tensors):
        if name.endswith("running_var"):
            tensors[name] = tensors[name].abs() + 0.5
            tensors[name.replace("running_var", "num_batches_tracked")] = torch.tensor(7)
    return {**tensors, "layer3.0.conv1.weight": torch.zeros(256, 128, 3, 3)}
