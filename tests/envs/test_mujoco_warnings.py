"""Many environments of MuJoCo, one warning."""

import subprocess
import sys

SCRIPT = """
import gymnasium
from irrl.envs.mujoco_warnings import tell_once
tell_once()  # before it is imported: nothing
make = lambda: gymnasium.make("HalfCheetah-v5", disable_env_checker=True)
make(); tell_once(); make(); make(); make()
import mujoco
mujoco.get_mju_user_warning()("something else"), mujoco.get_mju_user_warning()("something else")
"""


def test_a_warning_is_told_once_by_mujoco_and_once_here(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr.count("MuJoCo: something else") == 1
    assert done.stderr.count("deprecated") <= 2  # four models were read
