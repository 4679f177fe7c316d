"""Pictures and episodes per second of counting."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from timing import peak_memory_megabytes, seconds

from irrl.tasks import make_config

RENDERED, RENDER_ROUNDS, COUNTING_SCENES, PAPER_SCENES, BATCHES = 240, 8, 64, 8, 3


def counting() -> dict[str, Any]:
    result = {
        "rendering, 256 x 256": measure_rendering(),
        "fast": measure_counting("fast", COUNTING_SCENES, BATCHES),
        "paper": measure_counting("paper", PAPER_SCENES, 1),
    }
    for name, row in result.items():
        print(f"{name}:", ", ".join(f"{k} {v:,}" for k, v in row.items()), flush=True)
    return result


def measure_rendering() -> dict[str, float]:
    """Of one scene with seven cubes, all views in turn."""
    from irrl.tasks.counting.dataset import Scenes
    from irrl.tasks.counting.render import Renderer
    from irrl.tasks.counting.scene import MAX_OTHERS, VIEWS, arrange, sample_kinds

    rng = np.random.default_rng(0)
    scenes = Scenes.empty(1)
    with Renderer() as renderer:
        kinds = sample_kinds(rng, 0, 3, MAX_OTHERS)
        scenes.put(
            0, arrange(rng, 0, kinds, False, renderer.visible), np.zeros((VIEWS, len(kinds)))
        )
        renderer.place(scenes.scene(0))
        picture = np.empty_like(renderer.pixels)

        def render() -> None:
            for n in range(RENDERED):
                renderer.render(n % VIEWS, out=picture)

        render()
        ours, bare = [], []
        for _ in range(RENDER_ROUNDS):
            ours.append(RENDERED / seconds(render))
            bare.append(RENDERED / seconds(lambda: bare_loop(renderer)))
    return {
        "pictures_per_second": round(max(ours)),
        "bare_mujoco_per_second": round(max(bare)),
        "share_of_bare": round(max(ours) / max(bare), 3),
    }


def bare_loop(renderer: Any) -> None:
    """MuJoCo alone, with the same model, data and context."""
    mujoco = renderer.mujoco
    category = mujoco.mjtCatBit.mjCAT_ALL
    for n in range(RENDERED):
        renderer.camera.fixedcamid = n % 12
        mujoco.mjv_updateScene(
            renderer.model, renderer.data, renderer.option, None, renderer.camera, category,
            renderer.rendered,
        )  # fmt: skip
        mujoco.mjr_render(renderer.area, renderer.rendered, renderer.context)
        mujoco.mjr_readPixels(renderer.pixels, None, renderer.area, renderer.context)


def measure_counting(name: str, scenes: int, batches: int) -> dict[str, float]:
    """Batches of a preset, on a few scenes and with any weights: which makes no difference."""
    import tempfile

    import torch
    from safetensors.torch import save_file

    from irrl.nn.parallel import parts_in_parallel
    from irrl.tasks.counting.data import load_split
    from irrl.tasks.counting.dataset import Plan
    from irrl.tasks.counting.generate import make_scenes
    from irrl.tasks.counting.images import make_images
    from irrl.tasks.counting.resnet import ResNet18
    from irrl.tasks.counting.rollout import rollout, sample_batch
    from irrl.tasks.counting.scene import VIEWS
    from irrl.tasks.counting.state import initial_learner
    from irrl.tasks.counting.train import train_batch

    with tempfile.TemporaryDirectory() as root:
        folder = f"{root}/scenes"
        preset: Any = make_config("counting", name)
        settings: dict[str, Any] = {"scenes": folder, "train_scenes": None}
        if preset.encoder == "resnet18":
            settings["backbone_weights"] = f"{root}/weights.safetensors"
            save_file(ResNet18().state_dict(), settings["backbone_weights"])
        config: Any = make_config("counting", name, **settings)
        make_scenes(Path(folder), Plan(0, scenes, 1))
        rendering = seconds(lambda: make_images(Path(folder), config.resolution))
        split = load_split(config, "train")
        device = torch.device("cpu")
        learner = initial_learner(config, device)
        views, learning, rolling = [], [], []
        with parts_in_parallel(device, config.parts) as each:
            for number in range(1 + batches):
                inputs = sample_batch(config, number * config.batch_episodes, len(split))
                parts = inputs.cut(config.parts)
                begun = time.perf_counter()
                walks = list(each(lambda part: rollout(learner.model, split, part), parts))
                rolling.append(time.perf_counter() - begun)
                views.append(sum(int(walk.lengths.sum()) for walk in walks))
                begun = time.perf_counter()
                train_batch(config, learner, split, inputs, number * config.batch_episodes, each)
                learning.append(time.perf_counter() - begun)  # it rolls out, too
    total, rolled = sum(learning[1:]), sum(rolling[1:])
    episodes = batches * config.batch_episodes
    pictures = rendering / ((scenes + 1) * VIEWS)
    rendered = pictures * VIEWS * (preset.train_scenes or Plan.train) * episodes / config.episodes
    return {
        "threads": torch.get_num_threads(),
        "episodes_per_second": round(episodes / total, 1),
        "views_per_second": round(sum(views[1:]) / total, 1),
        "share_of_rendering": round(rendered / (rendered + total), 3),
        "share_of_rollout": round(rolled / (rendered + total), 3),
        "share_of_learning": round((total - rolled) / (rendered + total), 3),
        "peak_memory_megabytes": round(peak_memory_megabytes()),
    }
