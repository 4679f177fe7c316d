"""Throughput of training, against the limit of the machine in the same run.

    python benchmarks/throughput.py skills|digits|counting [--output FILE]

For skills: iterations and environment steps per second on one core, the ratio to the slow twin
of the tests, and the share of the limit. The limit is what the machine would reach if an iteration
cost nothing but one softmax over the codes for each cell in which its trajectories end, which the
reward cannot do without.

For digits: episodes per second of the paper's RAM and of the `fast` preset, at batch 256 on all
cores, and the share of the limit. The limit is what the machine would reach if an episode cost
nothing but the arithmetic of its matrix products, forward and backward, at the speed of one dense
product of 2304 x 256 by 256 x 256. Both are measured in turns, warm and for about as long, and the
best round of each counts: other work on the machine can only slow them.
By convention an episode costs six operations for each weight and glimpse (25 million for the
paper's RAM); not all of them are needed, such as gradients of the input: 23 million are.

For counting: pictures per second painted on one core at 256 x 256, and the share of what a bare
MuJoCo loop (update, render, read) of the same scene reaches, in turns, the best round of each; and
views per second trained with the `fast` and `paper` presets on scenes made for this, with the share
of time that painting one picture of each view once, rolling out and learning take.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from irrl.rewards import reward
from irrl.runs.run import provenance
from irrl.tasks import make_config
from irrl.tasks.skills.evaluate import evaluate
from irrl.tasks.skills.kernels import normalise
from irrl.tasks.skills.map import read_map
from irrl.tasks.skills.tables import initial_tables
from irrl.tasks.skills.train import BLOCK, compiled_reward, draw_block, learn_block
from tests.tasks.skills import twin

WARM_UP, MEASURED, TWIN_ITERATIONS = 100, 100, 20


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def iterations_per_second(config: Any) -> tuple[float, float]:
    """Median over blocks, after a hundred blocks of learning; and distinct final cells a batch."""
    room_map, pay = read_map(config.map), compiled_reward(reward(config.reward))
    tables = initial_tables(config, room_map)

    def block(number: int) -> float:
        draws = draw_block(config, number)
        return seconds(lambda: learn_block(config, room_map, pay, tables, draws, 0, BLOCK))

    for number in range(WARM_UP):
        block(number)
    rate = BLOCK / statistics.median(block(WARM_UP + n) for n in range(MEASURED))
    _, occupancy = evaluate(config, room_map, tables.q, tables.log_q)
    return rate, float(np.sum(1.0 - (1.0 - occupancy) ** config.batch_size))


def twin_iterations_per_second(config: Any) -> float:
    room_map = read_map(config.map)
    q, logits, visits = initial_tables(config, room_map)
    q, logits = q.astype(float), logits.astype(float)
    labels = draw_block(config, 0)[0][:TWIN_ITERATIONS]
    return TWIN_ITERATIONS / seconds(
        lambda: twin.learn(config, room_map, q, logits, visits, labels, {})
    )


@njit
def _softmaxes(log_q: np.ndarray, posterior: np.ndarray, count: int) -> None:
    for n in range(count):
        normalise(log_q, posterior, 0, n % log_q.shape[1])


def limit_iterations_per_second(config: Any, cells_per_batch: float) -> float:
    """If an iteration cost nothing but its softmaxes."""
    cells = len(read_map(config.map).cells)
    log_q = np.random.default_rng(0).random((1, cells, config.codes)).astype(np.float32)
    posterior = np.empty_like(log_q)
    count = 200_000
    _softmaxes(log_q, posterior, 1)
    best = min(seconds(lambda: _softmaxes(log_q, posterior, count)) for _ in range(5))
    return count / best / (cells_per_batch * config.ensemble_size)


def skills() -> dict[str, Any]:
    result = {}
    for name in ("clipped-linear", "clipped-log", "accuracy", "disdain"):
        for batch_size in (16, 32):
            config: Any = make_config("skills", "fast", reward=name, batch_size=batch_size)
            rate, cells = iterations_per_second(config)
            row = {
                "iterations_per_second": round(rate),
                "environment_steps_per_second": round(rate * batch_size * config.horizon),
                "times_the_twin": round(rate / twin_iterations_per_second(config)),
                "share_of_limit": round(rate / limit_iterations_per_second(config, cells), 3),
            }
            result[f"{name}, batch {batch_size}"] = row
            print(f"{name}, batch {batch_size}:", ", ".join(f"{k} {v:,}" for k, v in row.items()))
    return result


# --- digits ---

ROUNDS, UPDATES, PRODUCTS = 40, 8, 240


def digits() -> dict[str, Any]:
    import torch

    result = {}
    for name, settings in (
        ("paper, batch 256", {"preset": "paper", "batch_size": 256}),
        ("paper, batch 128", {"preset": "paper", "batch_size": 128}),
        ("fast, batch 256", {"preset": "fast", "batch_size": 256}),
    ):
        config: Any = make_config("digits", **settings)  # type: ignore[arg-type]
        rate, limit = measure_digits(config)
        row = {
            "threads": torch.get_num_threads(),
            "episodes_per_second": round(rate),
            "limit_episodes_per_second": round(limit),
            "share_of_limit": round(rate / limit, 3),
            "data_share_of_time": round(share_of_data(config, rate), 3),
            "peak_memory_megabytes": round(peak_memory_megabytes()),
        }
        result[name] = row
        print(f"{name}:", ", ".join(f"{k} {v:,}" for k, v in row.items()), flush=True)
    return result


def measure_digits(config: Any) -> tuple[float, float]:
    """Episodes per second of training and of the limit: the best of rounds measured in turns."""
    import torch

    from irrl.nn.parallel import parts_in_parallel
    from irrl.tasks.digits.data import layout_of, train_and_validation
    from irrl.tasks.digits.rollout import draw_epoch
    from irrl.tasks.digits.state import initial_learner
    from irrl.tasks.digits.train import cut, learn_batch

    device = torch.device("cpu")
    learner = initial_learner(config, device)
    canvases, _ = train_and_validation(0, layout_of(config), config.batch_size * UPDATES, 0)
    images, labels = torch.from_numpy(canvases.images), torch.from_numpy(canvases.labels)
    _, draws = draw_epoch(config, 0, device)
    rows, weights = torch.randn(2304, 256), torch.randn(256, 256)
    product = 2.0 * 2304 * 256 * 256

    def train(each: Any, count: int) -> None:
        for first in range(0, count, config.batch_size):
            last = first + config.batch_size
            part = draws.batch(first, last)
            parts = cut(images[first:last], labels[first:last], part, config.parts)
            learn_batch(config, learner, parts, 0.0, each)

    def multiply(count: int) -> None:
        torch.set_num_threads(threads)
        for _ in range(count):
            torch.mm(rows, weights)
        torch.set_num_threads(1)

    rates, limits = [], []
    threads = torch.get_num_threads()
    with parts_in_parallel(device, config.parts) as each:  # open for a whole run, as in training
        train(each, len(labels))
        multiply(PRODUCTS)
        for _ in range(ROUNDS):
            time.sleep(0.5)  # threads that multiplied go on spinning for a while
            train(each, config.batch_size)
            rates.append(len(labels) / seconds(lambda: train(each, len(labels))))
            multiply(10)
            taken = seconds(lambda: multiply(PRODUCTS))
            limits.append(PRODUCTS * product / taken / flops_per_episode(config, learner))
    return max(rates), max(limits)


def flops_per_episode(config: Any, learner: Any) -> float:
    """Multiplications and additions of the layers, forward and twice that backward."""
    from torch import nn

    once = learner.discriminator.classify
    layers = [
        layer
        for model in (learner.discriminator, learner.policy)
        for layer in model.modules()
        if isinstance(layer, nn.Linear) and layer is not once
    ]
    judged = config.steps if config.credit == "dense" or config.supervision == "all" else 1
    products = config.steps * sum(layer.weight.numel() for layer in layers)
    return 6.0 * (products + judged * once.weight.numel())


def share_of_data(config: Any, rate: float) -> float:
    """Time to draw an epoch's canvases, beside the time to train on them."""
    from irrl.tasks.digits.data import fresh_training_set, layout_of

    fresh_training_set(0, 1, layout_of(config), 10)
    drawing = seconds(lambda: fresh_training_set(0, 1, layout_of(config), config.train_images))
    return drawing / (config.train_images / rate)


# --- counting ---

PAINTED, PAINT_ROUNDS, COUNTING_SCENES, PAPER_SCENES, BATCHES = 240, 8, 64, 8, 3


def counting() -> dict[str, Any]:
    result = {
        "painting, 256 x 256": measure_painting(),
        "fast": measure_counting("fast", COUNTING_SCENES, BATCHES),
        "paper": measure_counting("paper", PAPER_SCENES, 1),
    }
    for name, row in result.items():
        print(f"{name}:", ", ".join(f"{k} {v:,}" for k, v in row.items()), flush=True)
    return result


def measure_painting() -> dict[str, float]:
    """Of one scene with seven cubes, all views in turn."""
    from irrl.tasks.counting.dataset import Scenes
    from irrl.tasks.counting.render import Painter
    from irrl.tasks.counting.scene import MAX_OTHERS, VIEWS, arrange, sample_kinds

    rng = np.random.default_rng(0)
    scenes = Scenes.empty(1)
    with Painter() as painter:
        kinds = sample_kinds(rng, 0, 3, MAX_OTHERS)
        scenes.put(0, arrange(rng, 0, kinds, False, painter.visible), np.zeros((VIEWS, len(kinds))))
        painter.place(scenes.scene(0))
        picture = np.empty_like(painter.pixels)

        def paint() -> None:
            for n in range(PAINTED):
                painter.paint(n % VIEWS, out=picture)

        paint()
        ours, bare = [], []
        for _ in range(PAINT_ROUNDS):
            ours.append(PAINTED / seconds(paint))
            bare.append(PAINTED / seconds(lambda: bare_loop(painter)))
    return {
        "pictures_per_second": round(max(ours)),
        "bare_mujoco_per_second": round(max(bare)),
        "share_of_bare": round(max(ours) / max(bare), 3),
    }


def bare_loop(painter: Any) -> None:
    """MuJoCo alone, with the same model, data and context."""
    mujoco = painter.mujoco
    category = mujoco.mjtCatBit.mjCAT_ALL
    for n in range(PAINTED):
        painter.camera.fixedcamid = n % 12
        mujoco.mjv_updateScene(
            painter.model, painter.data, painter.option, None, painter.camera, category,
            painter.drawn,
        )  # fmt: skip
        mujoco.mjr_render(painter.area, painter.drawn, painter.context)
        mujoco.mjr_readPixels(painter.pixels, None, painter.area, painter.context)


def measure_counting(name: str, scenes: int, batches: int) -> dict[str, float]:
    """Batches of a preset, on a few scenes and with any weights: which makes no difference."""
    import tempfile

    import torch
    from safetensors.torch import save_file

    from irrl.nn.parallel import parts_in_parallel
    from irrl.tasks.counting.data import load_split
    from irrl.tasks.counting.dataset import Plan, make_scenes
    from irrl.tasks.counting.images import make_images
    from irrl.tasks.counting.resnet import ResNet18
    from irrl.tasks.counting.rollout import draw_batch, rollout
    from irrl.tasks.counting.scene import VIEWS
    from irrl.tasks.counting.state import initial_learner
    from irrl.tasks.counting.train import cut_draws, learn_batch

    with tempfile.TemporaryDirectory() as root:
        folder = f"{root}/scenes"
        preset: Any = make_config("counting", name)
        settings: dict[str, Any] = {"scenes": folder, "train_scenes": None}
        if preset.encoder == "resnet18":
            settings["backbone_weights"] = f"{root}/weights.safetensors"
            save_file(ResNet18().state_dict(), settings["backbone_weights"])
        config: Any = make_config("counting", name, **settings)
        make_scenes(Path(folder), Plan(0, scenes, 1))
        painting = seconds(lambda: make_images(Path(folder), config.resolution))
        split = load_split(config, "train")
        device = torch.device("cpu")
        learner = initial_learner(config, device)
        views, learning, rolling = [], [], []
        with parts_in_parallel(device, config.parts) as each:
            for number in range(1 + batches):
                draws = draw_batch(config, number * config.batch_episodes, len(split))
                parts = cut_draws(config, draws)
                begun = time.perf_counter()
                walks = list(each(lambda part: rollout(learner.model, split, part), parts))
                rolling.append(time.perf_counter() - begun)
                views.append(sum(int(walk.lengths.sum()) for walk in walks))
                begun = time.perf_counter()
                learn_batch(config, learner, split, draws, number * config.batch_episodes, each)
                learning.append(time.perf_counter() - begun)  # it rolls out, too
    total, rolled = sum(learning[1:]), sum(rolling[1:])
    episodes = batches * config.batch_episodes
    pictures = painting / ((scenes + 1) * VIEWS)
    painted = pictures * VIEWS * (preset.train_scenes or Plan.train) * episodes / config.episodes
    return {
        "threads": torch.get_num_threads(),
        "episodes_per_second": round(episodes / total, 1),
        "views_per_second": round(sum(views[1:]) / total, 1),
        "share_of_painting": round(painted / (painted + total), 3),
        "share_of_rollout": round(rolled / (painted + total), 3),
        "share_of_learning": round((total - rolled) / (painted + total), 3),
        "peak_memory_megabytes": round(peak_memory_megabytes()),
    }


def peak_memory_megabytes() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("task", choices=["skills", "digits", "counting"])
    parser.add_argument("--output", metavar="FILE", help="write JSON here, too")
    options = parser.parse_args()
    measured = {"skills": skills, "digits": digits, "counting": counting}[options.task]()
    result = {"task": options.task, "throughput": measured}
    if options.output:
        made = provenance()
        made["command"] = "python benchmarks/throughput.py " + " ".join(sys.argv[1:])
        Path(options.output).write_text(json.dumps({**result, **made}, indent=1) + "\n")
        print(f"written to {options.output}")


if __name__ == "__main__":
    main()
