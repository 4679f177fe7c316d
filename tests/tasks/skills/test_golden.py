"""The same bytes on any machine: checksums that were written down once, for any instruction set."""

import json
import os
import platform
import subprocess
import sys

import pytest
from llvmlite.binding import get_host_cpu_features

from tests.helpers.command import REPOSITORY
from tests.tasks.skills.golden import QUICK, checksum

GOLDEN = json.loads((REPOSITORY / "tests/tasks/skills/golden.json").read_text())
X86 = platform.machine() in ("x86_64", "AMD64")
OTHERS = {  # processor -> features that this one must have to run what is compiled for it
    "generic": (),
    "nehalem": ("sse4.2", "popcnt"),
    "sandybridge": ("sse4.2", "popcnt", "avx"),
    "haswell": ("sse4.2", "popcnt", "avx", "avx2", "fma", "bmi", "bmi2"),
}


@pytest.mark.parametrize("name", QUICK)
def test_this_machine_gives_the_golden_bytes(name):
    assert checksum(name) == GOLDEN[name]


def checksums_compiled_for(processor, tmp_path):
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": processor,
        "NUMBA_CPU_FEATURES": ",".join(f"+{feature}" for feature in OTHERS[processor]),
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512_SKX"
        if processor == "generic"
        else "",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.tasks.skills.golden"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(not X86, reason="names of x86 processors")
def test_a_processor_without_wide_vectors_gives_the_golden_bytes(tmp_path):
    assert checksums_compiled_for("generic", tmp_path) == {n: GOLDEN[n] for n in QUICK}


@pytest.mark.slow
@pytest.mark.skipif(not X86, reason="names of x86 processors")
@pytest.mark.parametrize("processor", [name for name in OTHERS if name != "generic"])
def test_other_processors_give_the_golden_bytes(tmp_path, processor):
    here = get_host_cpu_features()
    if not all(here.get(feature) for feature in OTHERS[processor]):
        pytest.skip(f"this processor cannot run what is compiled for {processor}")
    assert checksums_compiled_for(processor, tmp_path) == {n: GOLDEN[n] for n in QUICK}


@pytest.mark.slow
def test_the_whole_fast_run_gives_the_golden_bytes():
    assert checksum("fast") == GOLDEN["fast"]
