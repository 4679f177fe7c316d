"""Ray: a cluster that is there, or one on this machine that nobody else can reach."""

import logging
import os
import secrets
import signal
import socket
from typing import Any

from irrl.errors import UserError

LOOPBACK = "127.0.0.1"
OBJECT_STORE = 80 * 2**20  # bytes, about the least there can be: jobs hand over almost nothing


RLLIB = (2, 60), (2, 61)
"""Versions of Ray whose RLlib was tried: from the first, below the second."""


def import_ray(address: str | None, engine: str = "ray") -> Any:
    """Ray without usage reports; where no address is given, one that keeps to this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        # Ray lets nobody in without a token; ours is for this one, and need not be kept at home.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
        # Ray exchanges a loopback address for that of a network card, and opens its ports there,
        # except where it is not to form clusters. It reads this variable on every system.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    try:
        import ray
    except ModuleNotFoundError:
        raise UserError(f"--engine {engine} needs Ray: pip install 'irrl[{engine}]'") from None
    return ray


def import_rllib(address: str | None) -> Any:
    """Ray, if its RLlib can be used; that warns of much which is none of its user's doing."""
    ray = import_ray(address, "rllib")
    require_rllib_version(ray.__version__)
    try:
        import ray.rllib
    except ImportError as error:
        raise UserError(
            f"this Ray comes without RLlib ({_said(error)}): pip install 'irrl[rllib]'"
        ) from None
    for name in ("ray", "ray.rllib", "ray.tune"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return ray


def require_rllib_version(version: str) -> None:
    """Raise unless a version of Ray is one that was tried."""
    numbers = [int(part) for part in version.split(".")[:2] if part.isdigit()]
    if not list(RLLIB[0]) <= numbers < list(RLLIB[1]):
        first, below = (".".join(map(str, end)) for end in RLLIB)
        raise UserError(
            f"--engine rllib needs ray >={first},<{below}, found {version}: "
            "pip install 'irrl[rllib]'"
        )


def connect(ray: Any, address: str | None, workers: int, object_store: int = OBJECT_STORE) -> None:
    """Join the cluster at an address, or start one that only this machine can reach."""
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    handler = signal.getsignal(signal.SIGTERM)  # Ray puts its own in its place
    try:
        if address is None:
            ray.init(
                "local",
                num_cpus=workers,
                include_dashboard=False,
                object_store_memory=object_store,
                _node_ip_address=LOOPBACK,
                **quiet,
            )
        else:
            check_answers(address)
            ray.init(address, **quiet)
    except UserError:
        raise
    except Exception as error:
        where = "a local Ray" if address is None else f"the Ray cluster at {address}"
        hint = "" if address is None else "; if it asks for a token, set RAY_AUTH_MODE=token"
        raise UserError(f"{where} cannot be used: {_said(error)}{hint}") from None
    finally:
        signal.signal(signal.SIGTERM, handler)


def check_answers(address: str) -> None:
    """Raise at once where nobody listens; Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdigit():
        raise UserError(f"address must be HOST:PORT of a Ray cluster, or auto, got {address!r}")
    try:
        socket.create_connection((host, int(port)), timeout=10.0).close()
    except (OSError, OverflowError) as error:
        raise UserError(
            f"no Ray cluster answers at {address} ({error}); start one with `ray start --head`, "
            "or leave --address out for a local one"
        ) from None


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
