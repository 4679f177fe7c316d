"""Gymnasium environments of the tasks, registered when this module is imported, and wrappers.

import gymnasium, irrl.envs
env = gymnasium.make("irrl/FourRooms-v0")
env = irrl.envs.Skills(env, codes=16)

`Skills` makes skill discovery of any environment, `perceive` active perception of any whose label
is in ``info``. A task's package names its environments as entry points of the group ``irrl.envs``;
each gets the id ``irrl/NAME``.
"""

from importlib.metadata import entry_points

import gymnasium

from irrl.envs.perceive import Perceive, perceive
from irrl.envs.skills import Skills

__all__ = ["Perceive", "Skills", "perceive"]

GROUP = "irrl.envs"

for _entry in entry_points(group=GROUP):
    if f"irrl/{_entry.name}" not in gymnasium.registry:
        gymnasium.register(f"irrl/{_entry.name}", entry_point=_entry.value)
