"""Scenes: cubes of three sizes and two colours on a round table, and how they are sampled.

The origin is the middle of the table top. The camera of view k stands at angle 30° k, so that
turning right is the next view, turning left the one before. Lengths are in metres.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from irrl.errors import UserError

SIZES = ("small", "medium", "large")
COLOURS = ("red", "blue")
KINDS = tuple(f"{size} {colour} cube" for size in SIZES for colour in COLOURS)
GOALS = KINDS[:4]
EDGES = np.array([0.045, 0.085, 0.2])
"""Edges of the cubes: about 12, 22 and 55 pixels in the middle of a view of 256."""

TABLE_RADIUS, TABLE_HEIGHT = 0.5, 0.72
MARGIN, GAP = 0.08, 0.01  # that cubes keep from the table's edge, and from each other
CAMERA_RADIUS, CAMERA_HEIGHT = 1.0, 1.082
VIEWS = 12

MEAN_OTHERS, MAX_OTHERS = 4.0, 6
MAX_CUBES, MAX_LARGE = 1 + MAX_OTHERS, 3
CLASSES = MAX_OTHERS + 1
HIDE = 0.8

RESOLUTION = 256
"""Side of the picture in which cubes are measured."""
SEEN_FROM = np.array([18, 60, 385])
"""A cube of each size is seen where such a picture shows so many of its pixels: a tenth of what it
shows in the middle of the table. Where it shows fewer, it is hidden."""

NONE = -1
TRIES, TRIES_PLACE, TRIES_BEHIND = 400, 20, 10


class Scene(NamedTuple):
    """A table with cubes. Rows of ``kinds``, ``places`` and ``angles`` belong together.

    Places and angles are of single precision, as they are stored: what was measured is what is
    rendered later.
    """

    goal: int  # which kind to count
    kinds: np.ndarray  # (cubes,)
    places: np.ndarray  # (cubes, 2): of the middle of each
    angles: np.ndarray  # (cubes,): about the vertical
    hidden: int  # which cube was put behind a larger one, or NONE

    @property
    def label(self) -> int:
        """How many cubes are of the goal's kind."""
        return int((self.kinds == self.goal).sum())

    @property
    def edges(self) -> np.ndarray:
        return EDGES[self.kinds // len(COLOURS)]


Visibility = Callable[[Scene, int], np.ndarray]
"""Pixels that a view of a scene shows of each cube."""


def is_seen(pixels: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Whether cubes of some kinds are seen where so many pixels show them."""
    return pixels >= SEEN_FROM[kinds // len(COLOURS)]


def camera_place(view: int) -> np.ndarray:
    angle = 2.0 * math.pi * view / VIEWS
    return CAMERA_RADIUS * np.array([math.cos(angle), math.sin(angle)])


def count_prior(uniform: bool = False) -> np.ndarray:
    """p(count): N ~ Poisson(4), at most 6; the count uniform in 0..N."""
    if uniform:
        return np.full(CLASSES, 1.0 / CLASSES)
    others = np.array(
        [math.exp(-MEAN_OTHERS) * MEAN_OTHERS**n / math.factorial(n) for n in range(MAX_OTHERS)]
    )
    others = np.append(others, 1.0 - others.sum())
    return np.array([(others[y:] / np.arange(y + 1, CLASSES + 1)).sum() for y in range(CLASSES)])


def corners_of(scene: Scene) -> np.ndarray:
    """The corners of each cube, (cubes, 8, 3); the first four stand on the table."""
    square = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    cosine, sine = np.cos(scene.angles, dtype=float), np.sin(scene.angles, dtype=float)
    turns = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], 1)
    flat = scene.places[:, None] + 0.5 * scene.edges[:, None, None] * (square @ turns)
    heights = np.broadcast_to([0.0, 1.0], (len(flat), 2)) * scene.edges[:, None]
    corners = np.empty((len(flat), 8, 3))
    corners[..., :2] = np.tile(flat, (1, 2, 1))
    corners[..., 2] = np.repeat(heights, 4, axis=1)
    return corners


# --- sampling ---


def sample_scene(rng: np.random.Generator, visible: Visibility) -> Scene:
    """A scene of the paper. Kinds and count are sampled once; places until all constraints hold."""
    others = min(int(rng.poisson(MEAN_OTHERS)), MAX_OTHERS)
    goal, count = int(rng.integers(len(GOALS))), int(rng.integers(others + 1))
    kinds = sample_kinds(rng, goal, count, others)
    hide = count > 0 and rng.random() < HIDE
    return arrange(rng, goal, kinds, hide, visible)


def sample_kinds(rng: np.random.Generator, goal: int, count: int, others: int) -> np.ndarray:
    """One large cube, ``count`` of the goal's kind, the rest of any other.

    More than three large cubes find no room beside the rest: from the fourth on they are sampled
    again from the smaller kinds.
    """
    large = len(GOALS) + rng.integers(len(COLOURS))
    sampled = rng.choice(np.delete(np.arange(len(KINDS)), goal), others - count)
    too_many = np.flatnonzero(sampled >= len(GOALS))[MAX_LARGE - 1 :]
    sampled[too_many] = rng.choice(np.delete(np.arange(len(GOALS)), goal), len(too_many))
    return np.concatenate([[large], np.full(count, goal), sampled]).astype(np.int64)


def arrange(
    rng: np.random.Generator, goal: int, kinds: np.ndarray, hide: bool, visible: Visibility
) -> Scene:
    """Put cubes of these kinds on the table, one of the goal's behind a larger one if asked to."""
    hidden = int(np.flatnonzero(kinds == goal)[0]) if hide else NONE
    for _ in range(TRIES):
        angles = rng.uniform(0.0, 0.5 * math.pi, len(kinds)).astype(np.float32)
        places = scatter(rng, kinds, hidden)
        if places is None:
            continue
        scene = Scene(goal, kinds, places, angles, hidden)
        if not hide:
            return scene
        for _ in range(TRIES_BEHIND):
            place = behind_larger(rng, scene)
            if place is not None:
                places[hidden] = place
                if not is_seen(visible(scene, 0)[hidden], kinds[hidden]):
                    return scene
    raise UserError(
        f"{len(kinds)} cubes ({', '.join(KINDS[kind] for kind in kinds)}) found no place on the "
        f"table in {TRIES} tries; ask for fewer or smaller ones"
    )


def scatter(rng: np.random.Generator, kinds: np.ndarray, left_out: int) -> np.ndarray | None:
    """Places at which no two cubes touch and none is near the edge; None if one finds no room."""
    radii = radii_of(kinds)
    places = np.full((len(kinds), 2), np.inf, np.float32)
    for cube in np.argsort(-radii, kind="stable"):
        if cube == left_out:
            continue
        for _ in range(TRIES_PLACE):
            place = sample_disc(rng, TABLE_RADIUS - MARGIN - radii[cube])
            if is_free(place, radii[cube], places, radii):
                places[cube] = place
                break
        else:
            return None
    return places


def radii_of(kinds: np.ndarray) -> np.ndarray:
    """Of the circles in which cubes turn."""
    return EDGES[kinds // len(COLOURS)] / math.sqrt(2.0)


def sample_disc(rng: np.random.Generator, radius: float) -> np.ndarray:
    angle, distance = rng.uniform(0.0, 2.0 * math.pi), radius * math.sqrt(rng.random())
    return np.array([distance * math.cos(angle), distance * math.sin(angle)], np.float32)


def is_free(place: np.ndarray, radius: float, places: np.ndarray, radii: np.ndarray) -> bool:
    """Whether a cube fits at a place: on the table, and apart from all that lie there."""
    x, y = place.tolist()
    if math.hypot(x, y) > TABLE_RADIUS - MARGIN - radius:
        return False
    apart = np.hypot(places[:, 0] - x, places[:, 1] - y) >= radii + radius + GAP
    return bool(apart.all())


def behind_larger(rng: np.random.Generator, scene: Scene) -> np.ndarray | None:
    """A place for the hidden cube, behind a larger one as seen from the first view, if free."""
    radii = radii_of(scene.kinds)
    radius = radii[scene.hidden]
    larger = np.flatnonzero(radii > radius)
    if len(larger) == 0:
        return None
    cover = rng.choice(larger)
    away = scene.places[cover] - camera_place(0)
    away /= np.hypot(*away)
    aside = np.array([-away[1], away[0]])
    beyond = radii[cover] + radius + GAP + rng.uniform(0.0, 0.2)
    shift = rng.uniform(-0.5, 0.5) * (radii[cover] - radius)
    place = (scene.places[cover] + beyond * away + shift * aside).astype(np.float32)
    others = scene.places.copy()
    others[scene.hidden] = np.inf
    return place if is_free(place, radius, others, radii) else None
