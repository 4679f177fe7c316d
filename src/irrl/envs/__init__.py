"""Gymnasium environments of the tasks, registered when this module is imported, and wrappers.

`Skills` makes skill discovery of any environment, `SkillsVector` of vector environments, `perceive`
active perception of any whose label is in ``info``; `LastAction` shows what was done, `Repeat`
makes actions last. A package names its environments as entry points of the group ``irrl.envs``;
each gets the id ``irrl/NAME``. What makes many of one at once, for `gymnasium.make_vec`, has the
same name in the group ``irrl.envs.vector``.

Example:
    >>> import gymnasium, irrl.envs
    >>> env = gymnasium.make("irrl/FourRooms-v0")
    >>> env = irrl.envs.Skills(env, codes=16)
"""

from importlib.metadata import entry_points

import gymnasium

from irrl.envs.last_action import LastAction
from irrl.envs.perceive import Perceive, perceive
from irrl.envs.repeat import Repeat
from irrl.envs.skills import Skills
from irrl.envs.skills_vector import SkillsVector

__all__ = ["LastAction", "Perceive", "Repeat", "Skills", "SkillsVector", "perceive"]

GROUP, VECTOR_GROUP = "irrl.envs", "irrl.envs.vector"

_vectors = {entry.name: entry.value for entry in entry_points(group=VECTOR_GROUP)}
for _entry in entry_points(group=GROUP):
    if f"irrl/{_entry.name}" not in gymnasium.registry:
        gymnasium.register(
            f"irrl/{_entry.name}",
            entry_point=_entry.value,
            vector_entry_point=_vectors.get(_entry.name),
        )
