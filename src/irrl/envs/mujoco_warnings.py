"""MuJoCo tells a warning for each model that it reads: once is enough, of many environments."""

import sys

_told: set[str] = set()


def tell_once() -> None:
    """From here on, say each warning of MuJoCo once. Nothing where nobody has imported it."""
    mujoco = sys.modules.get("mujoco")
    if mujoco is not None and mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_tell)


def _tell(said: str) -> None:
    if said not in _told:
        _told.add(said)
        print(f"MuJoCo: {said}", file=sys.stderr)
