"""Completion in real shells: keys are pressed in bash and zsh, and fish is asked."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from irrl.cli.completion import SHELLS, words_for
from irrl.cli.main import VERBS
from irrl.rewards import REWARDS
from irrl.tasks.registry import task_names
from tests.helpers.command import failed

HERE = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "TERM": "dumb", "PS1": "> ", "INPUTRC": "/dev/null"}  # fmt: skip
SET_UP = {
    "bash": (["--norc", "--noprofile", "-i"], "source <(irrl completion bash)"),
    "zsh": (["-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <(irrl completion zsh)"),
}


def find_shell(name):
    """Its path. Without it the test fails: a skip would hide that nothing was completed."""
    found = shutil.which(name)
    assert found, f"no {name} to complete in: install it"
    return found


def plain(shown):
    """Without what moves the cursor or colours letters; zsh also draws spaces twice."""
    return re.sub(r" +", " ", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[\r\a\b]", "", shown))


def press(shell, keys, wanted):
    """What an interactive shell shows after some keys, up to what is wanted."""
    flags, set_up = SET_UP[shell]
    path = find_shell(shell)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(path, [shell, *flags], HERE)
    shown = ""

    def read_until(text):
        nonlocal shown
        end = time.monotonic() + 120
        while text not in plain(shown):
            assert time.monotonic() < end, shown
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")

    try:
        os.write(terminal, f"{set_up}; echo rea''dy\n".encode())
        read_until("ready")
        os.write(terminal, keys.encode())
        read_until(wanted)
    finally:
        os.close(terminal)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@pytest.mark.parametrize("shell", SET_UP)
def test_a_key_completes_verb_task_flag_and_value(shell):
    """The verb and the task are finished by the key, then a flag of that task and its value."""
    keys = "irrl trai\tsk\t--learning-r\t0.1 --reward clipped-lin\t"
    press(shell, keys, "irrl train skills --learning-rate 0.1 --reward clipped-linear")


def test_fish_completes_with_meanings_and_files_where_nothing_is_known(tmp_path):
    (tmp_path / "folder").mkdir()

    def ask(line):
        command = f"irrl completion fish | source; complete -C '{line}'"
        return subprocess.run([find_shell("fish"), "--no-config", "-c", command],
                              capture_output=True, text=True, env=HERE, cwd=tmp_path)  # fmt: skip

    assert ask("irrl tra").stdout == f"train\t{VERBS['train'][0]}\n"
    assert ask("irrl resume fo").stdout.startswith("folder/")


# --- which words ---


def test_verbs():
    assert set(words_for([""])) == {*VERBS, "--help", "--version"}
    assert list(words_for(["swe"])) == ["sweep"] and words_for(["nothing", ""]) == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train ", set(task_names())),
        ("train skills --preset s", {"small-map", "smoke"}),
        ("train --preset", {"--preset"}),
        ("train skills --map", {"--map"}),
        ("train digits --equivariant ", {"yes", "no"}),
        ("train skills --reward=power-", {f"--reward=power-{n}" for n in (2, 3, 4, 6)}),
        ("compare skills --rewards log,clipped-lin", {"log,clipped-linear"}),
        ("sweep digits --reward accuracy,clipped-lin", {"accuracy,clipped-linear"}),
        ("noise ", {"theory", "measure", "gradient"}),
        ("data show-s", {"show-scenes"}),
        ("figure occ", {"occupancy"}),
        ("data show-scenes --f", {"--force"}),
        ("completion ", set(SHELLS)),
        ("train skills ", set()),  # nothing more to name
        ("eval nowhere", set()),  # files, which the shell knows
        ("train skils --", None),  # a task that is not there has no flags of its own
    ],
)
def test_words(line, words):
    found = set(words_for(line.split(" ")))
    assert found == words if words is not None else "--out" in found


def test_flags_of_a_task_have_meanings():
    found = words_for(["train", "skills", "--"])
    assert found["--epsilon"] and "--iterations" in found and "--glimpses" not in found
    assert set(words_for(["rewards", "--rewards", ""])) == set(REWARDS)


def test_bash_makes_a_word_of_an_equals_sign():
    assert set(words_for(["train", "skills", "--preset", "=", "smo"])) == {"smoke"}


def test_an_unknown_shell_is_told_in_one_line(irrl):
    assert failed(irrl("completion", "tcsh"), "unknown shell 'tcsh'", "bash, zsh, fish")
    assert failed(irrl("completion"), "SHELL")
