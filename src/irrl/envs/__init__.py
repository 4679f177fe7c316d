"""Gymnasium environments of the tasks, registered when this module is imported.

import gymnasium as gym, irrl.envs
env = gym.make("irrl/FourRooms-v0")

A task's package names its environments as entry points of the group ``irrl.envs``; each gets the
id ``irrl/NAME``.
"""

from importlib.metadata import entry_points

import gymnasium as gym

GROUP = "irrl.envs"

for _entry in entry_points(group=GROUP):
    if f"irrl/{_entry.name}" not in gym.registry:
        gym.register(f"irrl/{_entry.name}", entry_point=_entry.value)
