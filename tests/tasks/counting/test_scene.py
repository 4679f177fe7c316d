"""All constraints of the paper's scenes that can be told without rendering, on 10,000 of them."""

import math

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.tasks.counting.dataset import Scenes
from irrl.tasks.counting.scene import (
    CLASSES,
    EDGES,
    GOALS,
    HIDE,
    KINDS,
    MARGIN,
    MAX_CUBES,
    MAX_LARGE,
    NONE,
    TABLE_RADIUS,
    TRIES,
    Scene,
    arrange,
    camera_place,
    corners_of,
    count_prior,
    sample_scene,
)
from tests.tasks.counting.samples import generator

MANY = 10_000


def nothing_visible(scene, view):
    return np.zeros(MAX_CUBES)


@pytest.fixture(scope="module")
def scenes():
    rng = generator(1)
    many = Scenes.empty(MANY)
    for number in range(MANY):
        many.put(number, sample_scene(rng, nothing_visible), np.zeros(()))
    return many


def fits(counts, probabilities):
    """Pearson's chi-square, not beyond four standard deviations of what chance gives."""
    expected = np.asarray(probabilities) * np.sum(counts)
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = len(expected) - 1
    return statistic < freedom + 4.0 * math.sqrt(2.0 * freedom)


def test_numbers_of_cubes(scenes):
    there = scenes.kinds != NONE
    large = scenes.kinds >= len(GOALS)
    assert (large.sum(axis=1) >= 1).all() and (large.sum(axis=1) <= MAX_LARGE).all()
    others = there.sum(axis=1) - 1
    poisson = [math.exp(-4) * 4**n / math.factorial(n) for n in range(6)]
    assert fits(np.bincount(others, minlength=7), [*poisson, 1 - sum(poisson)])
    assert set(np.unique(scenes.kinds)) == {NONE, *range(len(KINDS))}


def test_goals_and_counts(scenes):
    assert fits(np.bincount(scenes.goals, minlength=4), np.full(4, 0.25))
    assert all(name.startswith(("small", "medium")) for name in GOALS)
    others = (scenes.kinds != NONE).sum(axis=1) - 1
    for n in range(1, 7):  # uniform in 0..n
        counts = np.bincount(scenes.counts[others == n], minlength=n + 1)
        assert fits(counts, np.full(n + 1, 1 / (n + 1)))
    assert fits(np.bincount(scenes.counts, minlength=CLASSES), count_prior())
    assert not fits(np.bincount(scenes.counts, minlength=CLASSES), count_prior(uniform=True))


def test_the_prior_of_the_count():
    assert count_prior().sum() == pytest.approx(1.0)
    np.testing.assert_allclose(count_prior(uniform=True), 1 / 7)
    poisson = [math.exp(-4) * 4**n / math.factorial(n) for n in range(6)]
    assert count_prior()[6] == pytest.approx((1 - sum(poisson)) / 7)
    assert count_prior()[5] == pytest.approx((1 - sum(poisson)) / 7 + poisson[5] / 6)


def test_one_goal_cube_is_put_behind_a_larger_one_in_four_of_five(scenes):
    some = scenes.counts > 0
    asked = scenes.hidden != NONE
    assert not asked[~some].any()
    assert fits([asked[some].sum(), (~asked[some]).sum()], [HIDE, 1 - HIDE])
    rows = np.flatnonzero(asked)
    hidden = scenes.hidden[rows]
    assert (scenes.kinds[rows, hidden] == scenes.goals[rows]).all()
    assert all(is_behind_a_larger_one(scenes.scene(row)) for row in rows)


def is_behind_a_larger_one(scene):
    """Whether the line from the first camera to the hidden cube crosses a larger one's circle."""
    eye = camera_place(0)
    line = scene.places[scene.hidden] - eye
    distance = np.hypot(*line)
    line /= distance
    larger = scene.edges > scene.edges[scene.hidden]
    others = scene.places[larger] - eye
    nearer = others @ line < distance
    aside = np.abs(others @ [-line[1], line[0]])
    return bool((nearer & (aside < scene.edges[larger] / math.sqrt(2))).any())


def padded_corners(scenes):
    """The four lower corners of each cube, (scenes, 7, 4, 2); not a number where there is none."""
    corners = np.full((len(scenes), MAX_CUBES, 4, 2), np.nan)
    for number in range(len(scenes)):
        scene = scenes.scene(number)
        corners[number, : len(scene.kinds)] = corners_of(scene)[:, :4, :2]
    return corners


def test_no_cube_leaves_the_table_or_touches_another(scenes):
    corners = padded_corners(scenes)
    assert np.nanmax(np.hypot(*np.moveaxis(corners, -1, 0))) <= TABLE_RADIUS - MARGIN + 1e-7
    for one in range(MAX_CUBES):
        for other in range(one):
            gap = gap_of_squares(corners[:, one], corners[:, other])
            assert not (gap <= 0).any()


def gap_of_squares(one, other):
    """The widest gap between squares (n, 4, 2) along their sides: above zero if they are apart."""
    gaps = []
    for square in (one, other):
        for side in (0, 1):
            axis = square[:, side + 1] - square[:, side]
            axis = axis / np.hypot(*axis.T)[:, None]
            a, b = ((points * axis[:, None]).sum(-1) for points in (one, other))
            gaps += [a.min(1) - b.max(1), b.min(1) - a.max(1)]
    return np.max(gaps, axis=0)


def test_squares_that_overlap_are_told():
    square = np.array([[[1, 1], [-1, 1], [-1, -1], [1, -1]]], float)
    turned = square @ (np.array([[1, 1], [-1, 1]]) / math.sqrt(2))
    assert gap_of_squares(square, turned + np.array([2.3, 0])) < 0
    assert gap_of_squares(square, turned + np.array([2.5, 0])) == pytest.approx(1.5 - math.sqrt(2))
    assert gap_of_squares(square, square + 1.9) < 0


def test_corners(scenes):
    scene = Scene(0, np.array([4]), np.float32([[0.1, 0.2]]), np.float32([0.0]), NONE)
    corners = corners_of(scene)[0]
    np.testing.assert_allclose(corners.min(axis=0), [0.0, 0.1, 0.0], atol=1e-7)
    np.testing.assert_allclose(corners.max(axis=0), [0.2, 0.3, 0.2], atol=1e-7)
    turned = corners_of(scene._replace(angles=np.float32([math.pi / 4])))[0]
    assert turned[:, 0].max() == pytest.approx(0.1 + EDGES[2] / math.sqrt(2))


def test_cubes_are_turned_any_way(scenes):
    angles = scenes.angles[scenes.kinds != NONE]
    counts, _ = np.histogram(angles, 9, (0, math.pi / 2))
    assert fits(counts, np.full(9, 1 / 9))


def test_what_is_sampled_can_be_stored_as_it_is(scenes):
    scene = sample_scene(generator(5), nothing_visible)
    assert scene.places.dtype == scene.angles.dtype == np.float32
    stored = Scenes.empty(1)
    stored.put(0, scene, np.zeros(()))
    for one, other in zip(scene, stored.scene(0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_same_seed_gives_the_same_scene():
    def sampled(seed):
        return [sample_scene(generator(seed), nothing_visible) for _ in range(5)]

    for one, other in zip(sampled(3), sampled(3), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert not np.array_equal(sampled(3)[0].places, sampled(4)[0].places)


# --- what does not fit ---


def test_too_many_large_cubes_are_given_up():
    with pytest.raises(UserError, match=rf"7 cubes \(large red cube.*in {TRIES} tries") as caught:
        arrange(generator(), 0, np.full(7, 4), False, nothing_visible)
    assert "\n" not in str(caught.value)


def test_a_cube_that_cannot_be_hidden_is_given_up():
    def all_visible(scene, view):
        return np.full(MAX_CUBES, 100)

    with pytest.raises(UserError, match="found no place"):
        arrange(generator(), 0, np.array([4, 0]), True, all_visible)
    with pytest.raises(UserError, match="found no place"):
        arrange(generator(), 0, np.array([0, 0]), True, nothing_visible)
