"""Settings of runs of a moment, one for each kind of state that a checkpoint can hold."""

from tests.tasks.gym import own

_SHORT = {"steps": 1_600, "evaluate_every": 400, "checkpoint_every": 400}
_REPLAY = {"agent": "sac", "rollout": 4, "gradient_steps": 2, "buffer_size": 800}
_DOORS = {"env": f"{own.__name__}:Doors-v0", "mode": "labels", "labels": 2, "pay": "differences"}

_WALK = {
    "env": f"{own.__name__}:Walk-v0", "mode": "regression", "labels": 2, "label_low": -1.0,
    "label_high": 1.0, "label_moves": True, "reward": "ball", "pay": "steps", "observe": "belief",
    "discriminator_core": "gru", "beta_nll": 0.5, "discriminator_schedule": "cosine",
}  # fmt: skip

SMALL = {
    "ppo": _SHORT,
    "sac": {**_SHORT, **_REPLAY},
    "labels": {**_SHORT, **_DOORS, "agent": "recurrent-ppo", "ensemble_size": 2},
    "regression": {**_SHORT, **_WALK},
}
