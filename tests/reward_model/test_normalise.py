import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from irrl.reward_model.normalise import LIMIT, Moments, Normaliser, is_large
from irrl.reward_model.spaces import Part, parts_of
from tests.reward_model.episodes import episode, fed, small_model


@given(st.lists(st.integers(1, 20), min_size=1, max_size=8), st.sampled_from([0.0, 1e3, -1e5]))
def test_moments_are_those_of_all_that_was_taken_in(sizes, offset):
    rng = np.random.default_rng(len(sizes))
    chunks = [offset + rng.normal(2.0, 3.0, (n, 2)) for n in sizes]
    moments = Moments((2,))
    for chunk in chunks:
        moments.add(chunk)
    every = np.concatenate(chunks)
    assert moments.count == len(every)
    np.testing.assert_allclose(moments.mean, every.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(
        (moments.squares / moments.count).sqrt(), every.std(axis=0), atol=1e-6
    )
    assert torch.equal(moments.shift, torch.zeros(2))  # nothing is settled yet
    moments.settle()
    std = np.where(every.std(axis=0) > 1e-6, every.std(axis=0), 1.0)
    np.testing.assert_allclose(moments.shift, every.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(moments.scale, 1.0 / std, rtol=1e-4)


def test_what_never_changes_stays_finite_and_what_is_far_out_is_limited():
    moments = Moments((2,))
    moments.add(np.array([[5.0, 0.0], [5.0, 1.0]]))
    moments.settle()
    assert moments(torch.tensor([5.0, 0.5])).tolist() == [0.0, 0.0]
    assert moments(torch.tensor([6.0, 1e9])).tolist() == [1.0, LIMIT]
    untouched = Moments((2,))
    untouched.settle()
    assert untouched(torch.tensor([3.0, -4.0])).tolist() == [3.0, -4.0]


def test_statistics_settle_only_when_the_model_learns():
    model, seen = small_model(), episode(99)
    before = model.rewards(seen, 0)
    fed(model)
    np.testing.assert_array_equal(model.rewards(seen, 0), before)
    model.learn()
    moments = model.discriminator.features.normaliser.values["of observation"]
    every = np.concatenate([episode([0, n]) for n in range(20)])
    np.testing.assert_allclose(moments.shift, every.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(moments.scale, 1.0 / every.std(axis=0), rtol=1e-5)


def test_the_judge_of_final_states_has_statistics_of_final_states():
    model = fed(small_model(judge="final"))
    model.learn()
    lasts = np.stack([episode([0, n])[-1] for n in range(20)])
    moments = model.discriminator.features.normaliser.values["of observation"]
    np.testing.assert_allclose(moments.shift, lasts.mean(axis=0), atol=1e-6)


# --- images ---

IMAGE = Part((4, 4, 1), "float32")


def pictures(seed=0, n=30):
    """Faint contrast beside strong lightness, which says nothing of it."""
    rng = np.random.default_rng(seed)
    lightness = rng.uniform(0.0, 200.0, (n, 1, 1, 1))
    return (lightness + rng.normal(0.0, 0.5, (n, 4, 4, 1))).astype(np.float32)


def settled(pixels, seen):
    normaliser = Normaliser({"image": IMAGE}, pixels)
    normaliser.add({"image": seen})
    normaliser.settle()
    return normaliser


def test_contrast_and_lightness_are_told_apart_and_nothing_is_lost():
    seen = pictures()
    normaliser = settled("contrast", seen)
    contrast, lightness = normaliser("image", IMAGE, torch.from_numpy(seen))
    assert float(contrast.std()) == pytest.approx(1.0, abs=0.05)
    assert float(lightness.std(correction=0)) == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(contrast.flatten(1).mean(dim=1), 0.0, atol=1e-3)
    apart, mean = normaliser.contrast["of image"], normaliser.lightness["of image"]
    back = contrast / apart.scale + apart.shift
    back = back + (lightness / mean.scale + mean.shift).reshape(-1, 1, 1, 1)
    np.testing.assert_allclose(back, seen, atol=1e-2)


def test_a_discriminator_of_ones_own_sees_contrast_and_lightness_in_one_image():
    seen = pictures()
    normaliser = settled("contrast", seen)
    contrast, lightness = normaliser("image", IMAGE, torch.from_numpy(seen))
    shown = normaliser.standardised({"image": IMAGE}, {"image": torch.from_numpy(seen)})["image"]
    np.testing.assert_allclose(shown.flatten(1).mean(dim=1), lightness, atol=1e-3)
    np.testing.assert_allclose(shown - lightness.reshape(-1, 1, 1, 1), contrast, atol=1e-5)


def test_other_ways_to_see_pixels():
    seen = pictures()
    raw, none = settled("raw", seen)("image", IMAGE, torch.from_numpy(seen))
    assert none is None and np.array_equal(raw, seen)
    each, none = settled("standardised", seen)("image", IMAGE, torch.from_numpy(seen))
    assert none is None
    np.testing.assert_allclose(each.mean(dim=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(each.std(dim=0, correction=0), 1.0, atol=1e-4)


class ByLightness(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(1, 2)

    def forward(self, images):
        return self.head(images.flatten(2).mean(dim=2, keepdim=True))


def test_lightness_can_be_learned_by_a_discriminator_of_ones_own():
    space = Box(0.0, 1.0, (4, 4), np.float32)
    model = small_model(2, space, discriminator=ByLightness, learning_rate=0.1)
    for n in range(60):
        model.add(np.full((3, 4, 4), 0.25 + 0.5 * (n % 2), np.float32), n % 2)
    model.learn()
    assert np.exp(model.log_probs(np.full((2, 4, 4), 0.75, np.float32)))[-1, 1] > 0.7


@pytest.mark.parametrize(
    ("shape", "large"),
    [((32, 32), True), ((3, 32, 32), True), ((32, 32, 3), True), ((40, 24, 4), True),
     ((84, 30, 31), True), ((5, 5, 1), False), ((64, 3, 64), False), ((23, 64), False),
     ((2,), False), ((), False), ((24, 24, 24, 3), False)],
)  # fmt: skip
def test_images_with_two_long_sides_are_large(shape, large):
    assert is_large(Part(shape, "uint8")) == large


@pytest.mark.parametrize("pixels", ["contrast", "standardised", "raw"])
@pytest.mark.parametrize("shape", [(24, 32), (3, 24, 32), (24, 32, 3), (84, 30, 31), (64, 3, 64)])
def test_large_images_are_judged_whichever_axis_has_the_channels(shape, pixels):
    space = Box(0, 255, shape, np.uint8)
    model = small_model(2, space, pixels=pixels)
    rng = np.random.default_rng(0)
    for n in range(4):
        model.add(rng.integers(0, 256, (3, *shape), dtype=np.uint8), n % 2)
    assert np.isfinite(model.learn()["discriminator_loss"])
    assert np.isfinite(model.rewards(rng.integers(0, 256, (4, *shape), dtype=np.uint8), 1)).all()


def test_channels_first_and_last_are_read_alike():
    first, last = (small_model(2, Box(0, 255, s, np.uint8)) for s in ((3, 24, 24), (24, 24, 3)))
    seen = np.random.default_rng(0).integers(0, 256, (4, 3, 24, 24), dtype=np.uint8)
    turned = np.moveaxis(seen, 1, -1)
    np.testing.assert_allclose(first.log_probs(seen), last.log_probs(turned), atol=1e-5)


def test_names_of_parts_may_be_any():
    names = ("values", "type", "a.b", "a/b", "forward", "ü")
    space = Dict({name: Box(-1.0, 1.0, (1,), np.float32) for name in names})
    model = small_model(2, space)
    assert set(model.parts) == set(names) == set(parts_of(space))
    seen = {name: episode(0, size=1) for name in names}
    model.add(seen, 0)
    model.add(seen, 1)
    model.learn()
    assert np.isfinite(model.rewards(seen, 1)).all()
