"""Episodes per second of digits, beside what dense products of the same machine allow."""

import time
from typing import Any

from timing import peak_memory_megabytes, seconds

from irrl.tasks import make_config

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
    from irrl.tasks.digits.chance import sample_epoch
    from irrl.tasks.digits.data import layout_of, train_and_validation
    from irrl.tasks.digits.learner import initial_learner
    from irrl.tasks.digits.mnist import read_mnist
    from irrl.tasks.digits.train import cut_batch, learn_batch

    device = torch.device("cpu")
    learner = initial_learner(config, device)
    count = config.batch_size * UPDATES
    canvases, _ = train_and_validation(read_mnist("train"), 0, layout_of(config), count, 0)
    images, labels = torch.from_numpy(canvases.images), torch.from_numpy(canvases.labels)
    _, numbers = sample_epoch(config, 0, device)
    rows, weights = torch.randn(2304, 256), torch.randn(256, 256)
    product = 2.0 * 2304 * 256 * 256

    def train(each: Any, count: int) -> None:
        for first in range(0, count, config.batch_size):
            last = first + config.batch_size
            part = numbers.batch(first, last)
            parts = cut_batch(images[first:last], labels[first:last], part, config.parts)
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

    once = learner.discriminator.classifier
    layers = [
        layer
        for model in (learner.discriminator, learner.policy)
        for layer in model.modules()
        if isinstance(layer, nn.Linear) and layer is not once
    ]
    judged = config.glimpses if config.credit == "dense" or config.supervision == "all" else 1
    products = config.glimpses * sum(layer.weight.numel() for layer in layers)
    return 6.0 * (products + judged * once.weight.numel())


def share_of_data(config: Any, rate: float) -> float:
    """Time to sample an epoch's canvases, beside the time to train on them."""
    from irrl.tasks.digits.data import fresh_training_set, layout_of
    from irrl.tasks.digits.mnist import read_mnist

    train, layout = read_mnist("train"), layout_of(config)
    fresh_training_set(train, 0, 1, layout, 10)
    sampling = seconds(lambda: fresh_training_set(train, 0, 1, layout, config.train_images))
    return sampling / (config.train_images / rate)
