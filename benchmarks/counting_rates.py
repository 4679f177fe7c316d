"""Pictures and episodes per second of counting."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import peak_memory_megabytes, seconds

from irrl.tasks import make_config

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
