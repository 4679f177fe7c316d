"""What can only be told from the picture, on scenes that are really rendered."""

import math
import sys

import numpy as np
import pytest

from irrl.errors import UserError
from irrl.tasks.counting import render
from irrl.tasks.counting.render import Renderer, check_resolution, project, shrink
from irrl.tasks.counting.scene import (
    CAMERA_RADIUS,
    KINDS,
    MAX_CUBES,
    NONE,
    RESOLUTION,
    VIEWS,
    Scene,
    camera_place,
    corners_of,
    is_seen,
    sample_scene,
)
from tests.tasks.counting.samples import generator


@pytest.fixture(scope="module")
def scenes(renderer):
    return [sample_scene(generator(seed), renderer.visible) for seed in range(60)]


def lone(kind, place=(0.0, 0.0), angle=0.0):
    return Scene(0, np.array([kind]), np.float32([place]), np.float32([angle]), NONE)


def coloured(picture, kind):
    """Where a picture shows cubes of a kind's colour; nothing else in it is so strong."""
    red, green, blue = np.moveaxis(picture.astype(int), -1, 0)
    strong, weak = (blue, red) if "blue" in KINDS[kind] else (red, blue)
    return (strong > 2 * weak) & (strong > 2 * green)


def box_of(mask):
    """Left, top, right and bottom of where a mask is true."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])


# --- hidden means measured ---


def test_hidden_cubes_are_hidden_by_larger_ones(renderer, scenes):
    asked = [scene for scene in scenes if scene.hidden != NONE]
    assert len(asked) > 25
    for scene in asked:
        kind = scene.kinds[scene.hidden]
        assert not is_seen(renderer.visible(scene, 0)[scene.hidden], kind)
        rest = scene.edges <= scene.edges[scene.hidden]
        alone = Scene(0, scene.kinds[rest], scene.places[rest], scene.angles[rest], NONE)
        number = int(rest[: scene.hidden].sum())
        assert is_seen(renderer.visible(alone, 0)[number], kind)


def test_every_cube_to_count_is_seen_from_somewhere(renderer, scenes):
    for scene in scenes:
        renderer.place(scene)
        seen = np.max([renderer.visible_pixels(view) for view in range(VIEWS)], axis=0)
        assert is_seen(seen[: len(scene.kinds)], scene.kinds).all()
        assert (seen[len(scene.kinds) :] == 0).all()


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_pixels_of_a_lone_cube_are_those_of_its_colour(renderer, kind):
    rng = generator(kind)
    for view in range(VIEWS):
        renderer.place(lone(kind, rng.uniform(-0.2, 0.2, 2), rng.uniform(0, 1.5)))
        found = renderer.visible_pixels(view)
        assert found[0] == coloured(renderer.render(view), kind).sum() > 0
        assert (found[1:] == 0).all()


def test_measuring_does_not_change_the_picture(renderer, scenes):
    renderer.place(scenes[0])
    before = renderer.render(3)
    renderer.visible_pixels(3)
    np.testing.assert_array_equal(renderer.render(3), before)


# --- where things are ---


@pytest.mark.parametrize("kind", [0, 3, 4])
def test_cubes_are_rendered_where_they_are_projected(renderer, kind):
    rng = generator(10 + kind)
    for view in range(VIEWS):
        scene = lone(kind, rng.uniform(-0.25, 0.25, 2), rng.uniform(0, 1.5))
        renderer.place(scene)
        corners = project(corners_of(scene)[0], view)
        expected = np.concatenate([corners.min(axis=0), corners.max(axis=0)])
        found = box_of(coloured(renderer.render(view), kind))
        np.testing.assert_allclose(found, expected, atol=1.0)


@pytest.mark.parametrize(("kind", "side"), [(0, 12), (2, 22), (4, 55)])
def test_sizes_are_those_of_the_authors_pictures(renderer, kind, side):
    renderer.place(lone(kind))
    left, _, right, _ = box_of(coloured(renderer.render(0), kind))
    assert abs(right - left - side) <= 3


def test_no_cube_is_cut_off_by_the_edge_of_a_view(scenes):
    for view in range(VIEWS):
        for scene in scenes:
            pixels = project(corners_of(scene), view)
            assert pixels.min() > 0 and pixels.max() < RESOLUTION


def test_turning_right_is_the_next_view(renderer):
    """Whoever walks to the right sees what is near move to the left, what is far to the right."""
    columns = []
    for distance in (0.3, -0.3):
        renderer.place(lone(2, (distance, 0.0)))
        boxes = [box_of(coloured(renderer.render(view), 2)) for view in (0, 1, VIEWS - 1)]
        columns.append([0.5 * (left + right) for left, _, right, _ in boxes])
    (near, near_right, near_left), (far, far_right, far_left) = columns
    assert abs(near - RESOLUTION / 2) <= 1 and abs(far - RESOLUTION / 2) <= 1
    assert near_right < near - 20 < near + 20 < near_left
    assert far_left < far - 20 < far + 20 < far_right
    ahead, right = -camera_place(0), camera_place(1) - camera_place(0)
    assert np.cross([*ahead, 0], [*right, 0])[2] < 0  # clockwise from ahead, seen from above


def test_a_view_is_the_first_view_of_a_turned_table(renderer, scenes):
    for scene in scenes[:6]:
        for view in range(VIEWS):
            turn = 2 * math.pi * view / VIEWS
            back = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
            turned = scene._replace(
                places=(scene.places @ back).astype(np.float32),
                angles=(scene.angles - turn).astype(np.float32),
            )
            found, expected = renderer.visible(scene, view), renderer.visible(turned, 0)
            np.testing.assert_allclose(found, expected, atol=3 + 0.01 * expected.max())


def test_the_middle_of_the_table_is_plain(renderer):
    """The post below once shone through in places."""
    renderer.place(lone(0, (0.0, 0.35)))
    size = int(RESOLUTION * 0.04 / CAMERA_RADIUS)
    for view in range(VIEWS):
        middle = renderer.render(view)[128 - size : 128 + size, 128 - size : 128 + size].astype(int)
        assert (np.ptp(middle, axis=(0, 1)) <= 6).all()


# --- pictures ---


def test_the_same_scene_gives_the_same_bytes(renderer, scenes):
    renderer.place(scenes[0])
    first = renderer.render(4)
    assert first.shape == (RESOLUTION, RESOLUTION, 3) and first.dtype == np.uint8
    out = np.zeros_like(first)
    assert renderer.render(4, out) is out
    np.testing.assert_array_equal(out, first)
    with Renderer() as other:  # renderers do not disturb each other
        other.place(scenes[1])
        elsewhere = other.render(4)
        np.testing.assert_array_equal(renderer.render(4), first)
        np.testing.assert_array_equal(other.render(4), elsewhere)
        other.place(scenes[0])
        np.testing.assert_array_equal(other.render(4), first)
    np.testing.assert_array_equal(renderer.render(4), first)


def test_cubes_of_the_scene_before_are_gone(renderer, scenes):
    full = max(scenes, key=lambda scene: len(scene.kinds))
    assert len(full.kinds) == MAX_CUBES
    renderer.place(lone(4))
    alone = renderer.render(0)
    renderer.place(full)
    renderer.place(lone(4))
    np.testing.assert_array_equal(renderer.render(0), alone)


@pytest.mark.parametrize("resolution", [1, 2, 16, 64, 128, 256])
def test_shrinking_takes_the_mean_of_each_area(resolution):
    picture = generator().integers(0, 256, (256, 256, 3), np.uint8)
    picture[:128] = 255
    factor = 256 // resolution
    areas = picture.reshape(resolution, factor, resolution, factor, 3).astype(float)
    expected = np.floor(areas.mean(axis=(1, 3)) + 0.5)
    np.testing.assert_array_equal(shrink(picture, resolution), expected)
    assert shrink(picture, resolution).dtype == np.uint8


@pytest.mark.parametrize("resolution", [0, -64, 100, 512])
def test_resolutions_that_do_not_divide(resolution):
    with pytest.raises(UserError, match="must divide 256"):
        check_resolution(resolution)


# --- no OpenGL, no MuJoCo ---


def test_a_broken_opengl_names_what_to_install(monkeypatch):
    import mujoco

    class Broken:
        def __init__(self, width, height):
            raise RuntimeError("no\ndisplay")

    monkeypatch.setattr(mujoco, "GLContext", Broken)
    with pytest.raises(UserError, match=r"no display\); on Debian.*libegl1.*libosmesa6") as caught:
        Renderer()
    assert "\n" not in str(caught.value)


def test_no_mujoco(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(UserError, match=r"needs MuJoCo: pip install 'irrl\[counting\]'"):
        Renderer()


def test_the_backend_that_is_there_is_chosen(monkeypatch):
    def chosen(*libraries, wish=""):
        monkeypatch.setenv("MUJOCO_GL", wish)
        monkeypatch.setattr(render.ctypes.util, "find_library", lambda n: n in libraries or None)
        render._choose_backend()
        return render.os.environ["MUJOCO_GL"]

    monkeypatch.setattr(sys, "platform", "linux")
    assert chosen("EGL", "OSMesa") == "egl"
    assert chosen("OSMesa") == "osmesa"
    assert chosen() == "egl"
    assert chosen("EGL", wish="glfw") == "glfw"
