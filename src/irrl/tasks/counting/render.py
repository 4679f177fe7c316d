"""Pictures of scenes, by MuJoCo without a window, and what each view shows of each cube."""

import ctypes.util
import math
import os
import sys
from typing import Any, Self

import numpy as np

from irrl.errors import UserError
from irrl.runs.probe import probe
from irrl.tasks.counting.scene import (
    CAMERA_HEIGHT,
    CAMERA_RADIUS,
    COLOURS,
    MAX_CUBES,
    RESOLUTION,
    TABLE_HEIGHT,
    TABLE_RADIUS,
    VIEWS,
    Scene,
    camera_place,
)

FIELD_OF_VIEW = 52.0  # degrees: all of the table where cubes may lie
TABLE_THICKNESS = 0.04
RGBA = {"red": (0.8, 0.12, 0.1, 1.0), "blue": (0.1, 0.2, 0.8, 1.0)}
BACKENDS = {"egl": "EGL", "osmesa": "OSMesa"}
"""Ways to render without a window on Linux, the best first, and the library each needs."""
INSTALL = (
    "on Debian install `libegl1 libgl1 libgl1-mesa-dri`, or `libosmesa6` and set MUJOCO_GL=osmesa"
)


def world() -> str:
    """A table in an empty room, seven cubes that each scene places anew, and 12 cameras around.

    Few polygons and no sky: without a graphics card both cost more than the cubes themselves. The
    extent is fixed because MuJoCo takes near and far, beyond which nothing shows, as multiples.
    """
    cubes = "".join(f'<geom name="cube{n}" type="box" size="1 1 1"/>' for n in range(MAX_CUBES))
    cameras = "".join(
        f'<camera name="view{k}" mode="targetbody" target="table" fovy="{FIELD_OF_VIEW}" '
        f'pos="{x:.9f} {y:.9f} {CAMERA_HEIGHT - TABLE_HEIGHT}"/>'
        for k, (x, y) in enumerate(map(camera_place, range(VIEWS)))
    )
    walls = "".join(
        f'<geom type="box" size="{size}" pos="{place} {1.5 - TABLE_HEIGHT}" '
        'rgba="0.66 0.71 0.76 1"/>'
        for size, place in (
            ("3 0.1 1.5", "0 3"), ("3 0.1 1.5", "0 -3"),
            ("0.1 3 1.5", "3 0"), ("0.1 3 1.5", "-3 0"),
        )
    )  # fmt: skip
    post = 0.5 * (TABLE_HEIGHT - TABLE_THICKNESS)
    return f"""
    <mujoco>
      <statistic extent="1" center="0 0 0"/>
      <visual>
        <quality shadowsize="0" offsamples="0" numslices="64" numstacks="2" numquads="1"/>
        <headlight ambient="0.45 0.45 0.45" diffuse="0.35 0.35 0.35" specular="0 0 0"/>
        <map znear="0.05" zfar="10"/>
      </visual>
      <worldbody>
        <light directional="true" dir="-0.3 -0.5 -1" diffuse="0.4 0.4 0.4" specular="0 0 0"/>
        <geom type="plane" size="3 3 1" pos="0 0 -{TABLE_HEIGHT}" rgba="0.42 0.4 0.38 1"/>
        {walls}
        <geom type="cylinder" size="0.05 {post}" pos="0 0 -{TABLE_THICKNESS + post}"
              rgba="0.4 0.3 0.2 1"/>
        <body name="table">
          <geom type="cylinder" size="{TABLE_RADIUS} {0.5 * TABLE_THICKNESS}"
                pos="0 0 -{0.5 * TABLE_THICKNESS}" rgba="0.72 0.6 0.45 1"/>
        </body>
        {cubes}
        {cameras}
      </worldbody>
    </mujoco>"""


class Renderer:
    """Renders scenes at one resolution. Close it, or use `with`; each process needs its own.

    The same scene gives the same bytes wherever the graphics driver is the same.
    """

    def __init__(self, resolution: int = RESOLUTION) -> None:
        mujoco = _import_mujoco()
        self.mujoco = mujoco
        self.model = mujoco.MjModel.from_xml_string(world())
        self.model.vis.global_.offwidth = self.model.vis.global_.offheight = resolution
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self.cubes = [self.model.geom(f"cube{n}").id for n in range(MAX_CUBES)]
        try:
            self.gl: Any = mujoco.GLContext(resolution, resolution)
            self.gl.make_current()
            self.context = mujoco.MjrContext(self.model, mujoco.mjtFontScale.mjFONTSCALE_50)
        except Exception as error:
            raise _cannot_render(error) from None
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        self.area = mujoco.MjrRect(0, 0, resolution, resolution)
        self.option, self.camera = mujoco.MjvOption(), mujoco.MjvCamera()
        self.camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self.rendered = mujoco.MjvScene(self.model, maxgeom=32)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            self.rendered.flags[flag] = 0
        self.pixels = np.empty((resolution, resolution, 3), np.uint8)

    def place(self, scene: Scene) -> None:
        """Put the cubes of a scene on the table."""
        model, data = self.model, self.data
        for n, cube in enumerate(self.cubes):
            there = n < len(scene.kinds)
            model.geom_rgba[cube, 3] = float(there)  # MuJoCo leaves out what is transparent
            if not there:
                continue
            half, angle = 0.5 * scene.edges[n], float(scene.angles[n])
            cosine, sine = math.cos(angle), math.sin(angle)
            model.geom_size[cube] = half
            model.geom_rbound[cube] = half * math.sqrt(3.0)
            model.geom_rgba[cube] = RGBA[COLOURS[scene.kinds[n] % len(COLOURS)]]
            data.geom_xpos[cube] = (*scene.places[n], half)
            data.geom_xmat[cube] = (cosine, -sine, 0.0, sine, cosine, 0.0, 0.0, 0.0, 1.0)

    def render(self, view: int, out: np.ndarray | None = None) -> np.ndarray:
        """The picture of a view, (resolution, resolution, 3) bytes, the first row on top."""
        self._render(view)
        if out is None:
            return self.pixels[::-1].copy()
        out[...] = self.pixels[::-1]
        return out

    def visible_pixels(self, view: int) -> np.ndarray:
        """How many pixels of a view show each cube, (7,); zero for cubes that are not there."""
        flags, names = self.rendered.flags, self.mujoco.mjtRndFlag
        flags[names.mjRND_SEGMENT], flags[names.mjRND_IDCOLOR] = 1, 1
        try:
            self._render(view)
        finally:
            flags[names.mjRND_SEGMENT], flags[names.mjRND_IDCOLOR] = 0, 0
        numbers = self.pixels[..., 0]  # there are fewer than 255 things to tell apart
        counts = np.bincount(numbers.reshape(-1), minlength=256)
        found = np.zeros(MAX_CUBES, np.int64)
        for thing in self.rendered.geoms[: self.rendered.ngeom]:
            if thing.objid in self.cubes and thing.objtype == self.mujoco.mjtObj.mjOBJ_GEOM:
                found[self.cubes.index(thing.objid)] = counts[thing.segid + 1]
        return found

    def visible(self, scene: Scene, view: int) -> np.ndarray:
        """The same for a scene that is not on the table yet: what the sampler asks for."""
        self.place(scene)
        return self.visible_pixels(view)

    def _render(self, view: int) -> None:
        mujoco = self.mujoco
        self.gl.make_current()  # another renderer may have been at work
        self.camera.fixedcamid = view
        mujoco.mjv_updateScene(
            self.model, self.data, self.option, None, self.camera,
            mujoco.mjtCatBit.mjCAT_ALL, self.rendered,
        )  # fmt: skip
        mujoco.mjr_render(self.area, self.rendered, self.context)
        mujoco.mjr_readPixels(self.pixels, None, self.area, self.context)

    def close(self) -> None:
        if self.context is not None:
            self.gl.make_current()
            self.context.free()
            self.gl.free()
            self.context = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def look() -> str:
    """By what pictures are drawn, without a window; raises where that cannot be done."""
    return probe(
        "import os; from irrl.tasks.counting.render import Renderer; Renderer(16).close(); "
        "import mujoco; by = os.environ.get('MUJOCO_GL', 'its default'); "
        "print('mujoco', mujoco.__version__, 'by', by)"
    )


def _import_mujoco() -> Any:
    _choose_backend()
    try:
        import mujoco
    except ModuleNotFoundError as error:
        if error.name != "mujoco":
            raise _cannot_render(error) from None
        raise UserError("object counting needs MuJoCo: pip install 'irrl[counting]'") from None
    except Exception as error:  # it also looks for OpenGL, which fails in many ways
        raise _cannot_render(error) from None
    return mujoco


def _choose_backend() -> None:
    """Let MuJoCo render without a window, unless the user has chosen; only Linux needs that."""
    if sys.platform != "linux" or os.environ.get("MUJOCO_GL"):
        return
    found = [name for name, library in BACKENDS.items() if ctypes.util.find_library(library)]
    os.environ["MUJOCO_GL"] = (found or list(BACKENDS))[0]


def _cannot_render(error: Exception) -> UserError:
    backend = os.environ.get("MUJOCO_GL", "not set")
    reason = " ".join(str(error).split()) or type(error).__name__
    return UserError(f"cannot render without a window (MUJOCO_GL={backend}: {reason}); {INSTALL}")


# --- pictures and places in them ---


def shrink(picture: np.ndarray, resolution: int) -> np.ndarray:
    """A square picture at a resolution that divides its own: the mean of each area."""
    factor = len(picture) // resolution
    if factor == 1:
        return picture
    strips = picture.reshape(resolution, factor, -1)
    rows = strips[:, 0].astype(np.uint16)
    for k in range(1, factor):  # several times faster than a sum over an inner axis
        rows += strips[:, k]
    cells = rows.reshape(resolution, resolution, factor, 3)
    areas = cells[:, :, 0].astype(np.uint32)
    for k in range(1, factor):
        areas += cells[:, :, k]
    return ((areas + factor**2 // 2) // factor**2).astype(np.uint8)


def check_resolution(resolution: int) -> None:
    if resolution < 1 or RESOLUTION % resolution:
        raise UserError(f"resolution must divide {RESOLUTION}, such as 64; got {resolution}")


def project(points: np.ndarray, view: int, resolution: int = RESOLUTION) -> np.ndarray:
    """Where points (..., 3) of a scene are in the picture of a view: (..., 2), column and row."""
    x, y = camera_place(view)
    eye = np.array([x, y, CAMERA_HEIGHT - TABLE_HEIGHT])
    ahead = -eye / np.linalg.norm(eye)
    right = np.array([-y, x, 0.0]) / CAMERA_RADIUS
    down = np.cross(ahead, right)
    rays = np.asarray(points, float) - eye
    scale = 0.5 * resolution / math.tan(math.radians(0.5 * FIELD_OF_VIEW))
    across = np.stack([rays @ right, rays @ down], axis=-1)
    return 0.5 * resolution + scale * across / (rays @ ahead)[..., None]
