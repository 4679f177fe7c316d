"""How far skills go where there are no walls: of what is judged, if that is a place."""

from collections.abc import Mapping, Sequence

import numpy as np

from irrl.reward_model.spaces import Part, Parts
from irrl.reward_model.visits import Visits

MOST = 3  # numbers of a place
SIDE = 1.0  # of a bucket, in units of the place, if not said


def place_in(parts: Mapping[str, Part]) -> str | None:
    """The part that is a place: all there is, at most three numbers without bounds."""
    (name, part), *others = parts.items()
    numbers = not part.sizes and len(part.shape) == 1 and part.shape[0] <= MOST
    return name if numbers and part.low is None and not others else None


def metrics_of_places(
    parts: Mapping[str, Part], paths: Sequence[Parts], side: float | None
) -> dict[str, float]:
    """Metrics of one path of each skill; none where what is judged is no place.

    ``final_distance`` is the mean way from the first place to the last, as the crow flies;
    ``buckets_reached`` how many buckets of that side the paths touch together.
    """
    name = place_in(parts)
    if name is None:
        return {}
    apart = [np.linalg.norm(path[name][-1].astype(float) - path[name][0]) for path in paths]
    visits = Visits(parts, SIDE if side is None else side)
    for path in paths:
        visits.add(path)
    return {"final_distance": float(np.mean(apart)), "buckets_reached": float(len(visits))}
