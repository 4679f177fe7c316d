"""What glimpses show."""

import numpy as np
import pytest
import torch

from irrl.tasks.digits.config import RamConfig
from irrl.tasks.digits.retina import Retina


def naive_glimpse(image, column, row, side):
    """Pixels around a point, zero outside, by counting."""
    size = len(image)
    rows = [int(0.5 * (row + 1) * size) - side // 2 + i for i in range(side)]
    columns = [int(0.5 * (column + 1) * size) - side // 2 + j for j in range(side)]
    return np.array(
        [[image[i, j] if 0 <= i < size and 0 <= j < size else 0.0 for j in columns] for i in rows]
    )


@pytest.mark.parametrize(("size", "scales"), [(4, 1), (5, 1), (12, 3), (1, 2)])
def test_glimpses_are_the_pixels_around_a_place(size, scales):
    config = RamConfig(glimpse_size=size, scales=scales)
    retina = Retina(config)
    images = torch.randint(256, (6, 60, 60), dtype=torch.uint8)
    corners = torch.tensor([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
    locations = torch.cat([corners, torch.rand(2, 2) * 2 - 1])
    compiled = retina.look(retina.prepare(images), locations, torch.empty(6, scales * size**2))
    gathered = torch.cat(retina.gather(retina.with_margin(images), locations), dim=1)
    normalised = (images.numpy() / 255 - 0.1307) / 0.3081
    for n in range(6):
        for k in range(scales):
            glimpse = naive_glimpse(normalised[n], *locations[n].tolist(), size * 2**k)
            pooled = glimpse.reshape(size, 2**k, size, 2**k).mean(axis=(1, 3))
            for found in (compiled, gathered):  # on a processor, on an accelerator
                found = found.view(6, scales, size, size)[n, k]
                np.testing.assert_allclose(found, pooled, atol=1e-5)


def test_what_is_not_a_number_looks_at_the_corner():
    retina = Retina(RamConfig())
    images = torch.randint(256, (1, 60, 60), dtype=torch.uint8)
    nowhere, corner = torch.full((1, 2), torch.nan), torch.full((1, 2), -1.0)
    seen = [retina.look(images, place, torch.empty(1, 16)) for place in (nowhere, corner)]
    gathered = torch.cat(retina.gather(retina.with_margin(images), nowhere), dim=1)
    torch.testing.assert_close(seen[0], seen[1])
    torch.testing.assert_close(seen[0], gathered)
