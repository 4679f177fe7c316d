"""What the presets promise, over seeds. Slow: run with `make test-slow`."""

import itertools

import numpy as np
import pytest

from irrl.tasks import make_config, train_in

pytestmark = pytest.mark.slow


def skills(folder, preset, reward, seeds, **settings):
    counts = []
    for seed in range(seeds):
        config = make_config("skills", preset, reward=reward, seed=seed, **settings)
        counts.append(train_in(folder / f"{reward}-{seed}", config)["n_skills"])
    return counts


def permutation_p(higher, lower):
    """How often a random relabelling separates the two groups at least as much."""
    pooled, n = np.array([*higher, *lower]), len(higher)
    observed = np.mean(higher) - np.mean(lower)
    splits = list(itertools.combinations(range(len(pooled)), n))
    gaps = [pooled[list(s)].mean() - np.delete(pooled, list(s)).mean() for s in splits]
    return np.mean(np.array(gaps) >= observed - 1e-12)


def test_small_map_order(tmp_path):
    linear = skills(tmp_path, "small-map", "clipped-linear", 5)
    log = skills(tmp_path, "small-map", "clipped-log", 5)
    disdain = skills(tmp_path, "small-map", "disdain", 5)
    assert permutation_p(linear, log) < 0.01
    assert permutation_p(disdain, log) < 0.01
    assert np.mean(disdain) >= 21.0


def test_fast_preset_shows_the_papers_main_claim(tmp_path):
    linear = skills(tmp_path, "fast", "clipped-linear", 4)
    log = skills(tmp_path, "fast", "clipped-log", 4)
    assert permutation_p(linear, log) < 0.02
    assert np.mean(linear) >= 85 and np.mean(log) <= 38


def test_visits_preset_needs_no_ensemble_to_come_close_to_the_ceiling(tmp_path):
    assert np.mean(skills(tmp_path, "visits", "clipped-log", 3)) >= 92
