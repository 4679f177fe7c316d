"""Gymnasium environments of the tasks, registered when this module is imported.

import gymnasium as gym, irrl.envs
env = gym.make("irrl/FourRooms-v0")
"""

import gymnasium as gym

gym.register("irrl/FourRooms-v0", entry_point="irrl.tasks.skills.env:FourRooms")
gym.register("irrl/ObjectCounting-v0", entry_point="irrl.tasks.counting.env:ObjectCounting")
