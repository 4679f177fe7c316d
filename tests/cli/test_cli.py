import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from irrl.cli.main import VERBS
from irrl.density_rewards import DENSITY_REWARDS
from irrl.rewards import REWARDS
from tests.helpers.command import failed


def test_help_lists_the_verbs_without_heavy_imports(irrl):
    result = irrl("--help")
    assert result.returncode == 0
    assert all(f"  {verb} " in result.stdout for verb in VERBS)
    code = "import sys; from irrl.cli.main import main; main(['--help']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    heavy = {"numpy", "numba", "torch", "matplotlib", "jax", "gymnasium", "rich"}
    assert not heavy & set(loaded.split())


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(irrl, verb):
    task = ["skills"] if verb in ("train", "compare") else []
    result = irrl(verb, *task, "--help")
    assert result.returncode == 0 and "usage" in result.stdout
    if verb == "train":
        for flag in ("--iterations", "--batch-size", "--learning-rate", "--lambda", "--seed"):
            assert flag in result.stdout


def test_version(irrl):
    assert irrl("--version").stdout.startswith("irrl ")


def test_train_eval_and_resume(irrl, tmp_path):
    result = irrl("train", "skills", "--preset", "smoke", "--reward", "clipped-log", "--seed", "5",
                  "--iterations", "1000", "--batch-size", "8", "--out", "run")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "n_skills" in result.stdout and "100 %" in result.stderr
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    chosen = {key: config[key] for key in ("reward", "seed", "iterations", "batch_size")}
    assert chosen == {"reward": "clipped-log", "seed": 5, "iterations": 1000, "batch_size": 8}

    evaluated = json.loads(irrl("eval", "run", "--json").stdout)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert evaluated["step"] == 1000 and evaluated["n_skills"] == summary["n_skills"]

    again = irrl("resume", "run")
    assert again.returncode == 0 and "finished already" in again.stdout
    assert failed(irrl("train", "skills", "--preset", "smoke", "--out", "run"), "already holds")


def test_a_map_from_a_file_is_kept_in_the_run(irrl, tmp_path):
    (tmp_path / "map.txt").write_text("S....\n.###.\n.....\n")
    result = irrl("train", "skills", "--preset", "smoke", "--map", "map.txt", "--codes", "6",
                  "--out", "run")  # fmt: skip
    assert result.returncode == 0, result.stderr
    (tmp_path / "map.txt").unlink()
    assert irrl("eval", "run").returncode == 0


def test_tensorboard_output(irrl, tmp_path):
    flags = ("--preset", "smoke", "--iterations", "1000", "--tensorboard", "--out", "run")
    assert irrl("train", "skills", *flags).returncode == 0
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert b"n_skills" in events.read_bytes()
    # resumed with a torn last line: the line goes, the mirror is made anew
    (tmp_path / "run" / "summary.json").unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "000000001000")
    (tmp_path / "run" / "checkpoints" / "last").unlink()
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"step": 15')
    assert irrl("resume", "run", "--tensorboard").returncode == 0
    (events,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert b"n_skills" in events.read_bytes()


def test_compare_trains_tables_and_draws(irrl, tmp_path):
    command = ("compare", "skills", "--preset", "smoke", "--rewards", "clipped-linear,disdain",
               "--seeds", "2", "--out", "out")  # fmt: skip
    result = irrl(*command)
    assert result.returncode == 0, result.stderr
    assert "clipped-linear" in result.stdout and "disdain" in result.stdout
    out = tmp_path / "out"
    assert (out / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert "| disdain | 2 |" in (out / "comparison.md").read_text()
    table = json.loads((out / "comparison.json").read_text())
    assert table["rewards"]["disdain"]["seeds"] == [0, 1]
    found = table["rewards"]["clipped-linear"]["n_skills"]
    assert found["mean"]["low"] <= found["mean"]["value"] <= found["mean"]["high"]

    # what is there is kept: a half-finished run is resumed, the others are not touched
    before = {p: p.stat().st_mtime_ns for p in out.rglob("summary.json")}
    half = out / "disdain" / "seed-1"
    expected = (half / "metrics.jsonl").read_bytes()
    (half / "summary.json").unlink()
    assert irrl(*command).returncode == 0
    after = {p: p.stat().st_mtime_ns for p in out.rglob("summary.json")}
    assert [p for p in before if before[p] != after[p]] == [half / "summary.json"]
    assert (half / "metrics.jsonl").read_bytes() == expected

    assert failed(irrl(*command, "--epsilon", "0.5"), "another epsilon")


@pytest.mark.parametrize("name", ["figure.png", "figure.svg", "figure.pdf"])
def test_plot(irrl, smoke_run, tmp_path, name):
    result = irrl("plot", smoke_run, "-o", name)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / name).stat().st_size > 5000


def test_plot_refuses_what_it_cannot_draw(irrl, smoke_run, tmp_path):
    assert failed(irrl("plot", smoke_run, "-o", "figure.docx"), ".png, .svg, .pdf")
    assert failed(irrl("plot", tmp_path), "there is no run")
    assert failed(irrl("plot", "nowhere"), "not a folder")
    twice = shutil.copytree(smoke_run, tmp_path / "twice")
    assert failed(irrl("plot", smoke_run, twice), "same seed")


def test_presets_and_rewards_are_listed(irrl, tmp_path):
    presets = irrl("presets").stdout
    for name in ("fast (default)", "paper", "small-map", "smoke"):
        assert f"skills --preset {name}" in presets
    listed = irrl("rewards", "--classes", "4").stdout
    assert all(f" {name} " in listed for name in (*REWARDS, *DENSITY_REWARDS))
    (line,) = (line for line in listed.splitlines() if " power-2 " in line)
    assert line.split()[-2] == "0.5"  # slope 2 p
    assert irrl("rewards", "--plot", "shapes.png").returncode == 0
    assert (tmp_path / "shapes.png").stat().st_size > 5000


def test_noise_theory(irrl, tmp_path):
    result = irrl("noise", "theory", "--rewards", "log,linear,clipped-linear", "-o", "noise.png")
    assert result.returncode == 0, result.stderr
    assert "q >= 0.19" in result.stdout  # where the expansion of the log stops being valid
    assert "normal, zero mean, std 0.05" in result.stdout and "its prior is 0.1" in result.stdout
    assert (tmp_path / "noise.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], ["unknown command 'trian'", "Did you mean 'train'"]),
        (["train"], ["TASK"]),
        (["train", "skils"], ["unknown task 'skils'", "'skills'"]),
        (["train", "skills", "--reward", "clipped-liner"], ["Did you mean 'clipped-linear'"]),
        (["train", "skills", "--preset", "fats"], ["unknown preset", "'fast'", "small-map"]),
        (["train", "skills", "--learning-rate", "-1"], ["learning-rate", "zero or positive"]),
        (["train", "skills", "--learning-rate", "nan"], ["learning-rate", "finite"]),
        (["train", "skills", "--epsilon", "1.5"], ["epsilon", "between 0 and 1"]),
        (["train", "skills", "--seed", "1.5"], ["--seed", "1.5"]),
        (["train", "skills", "--seed", "-1"], ["seed", "zero or positive"]),
        (["train", "skills", "--iterations", "0"], ["iterations", "at least 1"]),
        (["train", "skills", "--codes", "1"], ["codes", "at least 2"]),
        (["train", "skills", "--map", "nowhere.txt"], ["unknown map", "path of a text file"]),
        (["train", "skills", "--bonus", "visit"], ["Did you mean 'visits'"]),
        (["train", "skills", "--bonus-weight", "3"], ["bonus-weight needs a bonus"]),
        (["train", "skills", "--bonus-initial-value", "0"], ["needs a bonus"]),
        (["train", "skills", "--bonus-kind", "linear"], ["unknown bonus-kind", "quadratic"]),
        (["train", "skills", "--bonus-kind", "quadratic"], ["needs the bonus disagreement"]),
        (["train", "skills", "--reward", "disdain", "--ensemble-size", "1"], ["ensemble-size"]),
        (["train", "skills", "--reward", "disdain", "--bonus", "visits"], ["disagreement"]),
        (["train", "skills", "--no-such-flag"], ["--no-such-flag"]),
        (["train", "--seed", "3", "skills", "--reward", "x"], ["unknown reward 'x'"]),
        (["resume", "nowhere"], ["not a run folder"]),
        (["eval", "nowhere"], ["not a run folder"]),
        (["compare", "skills", "--seeds", "x"], ["--seeds", "x"]),
        (["compare", "skills", "--seeds", "0"], ["seeds", "at least 1"]),
        (["compare", "skills", "--rewards", "a,b"], ["unknown reward 'a'"]),
        (["compare", "skills", "--rewards", ","], ["at least one reward"]),
        (["rewards", "--classes", "1"], ["classes", "at least 2"]),
        (["rewards", "--plot", "--rewards", "accuracy"], ["no curve"]),
        (["noise", "theory", "--family", "norml"], ["Did you mean 'normal'"]),
        (["noise", "theory", "--scale", "0"], ["scale must be a positive number"]),
        (["noise", "practice"], ["practice"]),
    ],
)
def test_bad_input_is_told_in_one_line(irrl, tmp_path, arguments, words):
    assert failed(irrl(*arguments), *words)
    assert not list(tmp_path.iterdir())  # nothing was written


def test_output_that_cannot_be_written_is_told_in_one_line(irrl, tmp_path, smoke_run):
    (tmp_path / "file").write_text("")
    assert failed(irrl("train", "skills", "--preset", "smoke", "--out", "file/run"), "file")
    assert failed(irrl("rewards", "--plot", "file/picture.png"), "file")
    assert failed(irrl("plot", smoke_run, "-o", "file/picture.png"), "file")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (
            ["--learning-rate", "1e30", "--discriminator-learning-rate", "0.1"],
            ["diverged", "lower learning-rate"],
        ),
        (["--discriminator-learning-rate", "1000"], ["at most 80"]),
    ],
)
def test_divergence_is_told_in_one_line(irrl, flags, words):
    result = irrl("train", "skills", "--preset", "smoke", *flags, "--out", "run")
    assert result.returncode == 2 and all(word in result.stderr for word in words)
    assert "Traceback" not in result.stderr


def test_abbreviated_flags_are_refused(irrl):
    assert failed(irrl("compare", "skills", "--seed", "2"), "--seed")


def test_help_shows_the_defaults_of_the_preset(irrl):
    shown = irrl("train", "skills", "--preset", "smoke", "--help").stdout
    assert "(default: 2000)" in " ".join(shown.split())
    assert failed(irrl("train", "skills", "--preset", "fats", "--help"), "unknown preset")


def test_a_refused_comparison_leaves_nothing_behind(irrl, tmp_path):
    command = (
        "compare",
        "skills",
        "--preset",
        "smoke",
        "--seeds",
        "1",
        "--out",
        "out",
        "--rewards",
    )
    assert irrl(*command, "linear").returncode == 0
    assert failed(irrl(*command, "log,linear", "--epsilon", "0.5"), "another epsilon")
    assert not (tmp_path / "out" / "log").exists()
    assert irrl(*command, "log,linear").returncode == 0


def test_stopping_a_comparison_ends_its_workers_and_leaves_it_to_be_resumed(tmp_path):
    command = [sys.executable, "-m", "irrl", "compare", "skills", "--preset", "smoke", "--rewards",
               "linear", "--iterations", "3000000", "--seeds", "2", "--out", "out"]  # fmt: skip
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    folders = [tmp_path / "out" / "linear" / f"seed-{n}" for n in (0, 1)]
    while not all((folder / "checkpoints" / "last").exists() for folder in folders):
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130 and "can be resumed" in told
    sizes = [os.stat(folder / "metrics.jsonl").st_size for folder in folders]
    time.sleep(1.0)
    assert sizes == [os.stat(folder / "metrics.jsonl").st_size for folder in folders]


@pytest.mark.parametrize("text", ["###\n###\n", "...\n..\n", ".#.\n"])
def test_bad_maps_are_told_in_one_line(irrl, tmp_path, text):
    (tmp_path / "map.txt").write_text(text)
    assert failed(irrl("train", "skills", "--map", "map.txt", "--out", "run"), "map")
    assert not (tmp_path / "run").exists()


def test_damaged_runs_are_told_in_one_line(irrl, smoke_run, tmp_path):
    half = shutil.copytree(smoke_run, tmp_path / "half")
    (half / "summary.json").unlink()
    (half / "checkpoints" / "000000002000" / "arrays.safetensors").unlink()
    assert failed(irrl("resume", half), "half a checkpoint", "remove")
    assert failed(irrl("eval", half), "half a checkpoint")
    # the advice works: fall back on the checkpoint before, and end with the same numbers
    shutil.rmtree(half / "checkpoints" / "000000002000")
    (half / "checkpoints" / "last").unlink()
    assert irrl("resume", half).returncode == 0
    assert (half / "metrics.jsonl").read_bytes() == (smoke_run / "metrics.jsonl").read_bytes()

    cut = shutil.copytree(smoke_run, tmp_path / "cut")
    metrics = cut / "metrics.jsonl"
    metrics.write_bytes(metrics.read_bytes()[:-7])
    assert failed(irrl("plot", cut), "metrics.jsonl", "line 5")
    assert failed(irrl("resume", cut), "metrics.jsonl", "line 5")
    (cut / "summary.json").unlink()
    assert failed(irrl("resume", cut), "metrics.jsonl", "was cut")


def test_a_closed_pipe_does_not_end_a_run_nor_makes_an_unfinished_one_a_success(tmp_path):
    command = [sys.executable, "-m", "irrl", "train", "skills", "--preset", "smoke", "--out", "run"]
    reader, writer = os.pipe()
    os.close(reader)  # nobody listens, from the first line on
    done = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=writer)
    os.close(writer)
    assert (tmp_path / "run" / "summary.json").exists()
    assert done.returncode == 141
    listed = [sys.executable, "-m", "irrl", "presets"]
    reader, writer = os.pipe()
    os.close(reader)
    assert subprocess.run(listed, stdout=writer, stderr=subprocess.PIPE).returncode == 0
    os.close(writer)


def test_flags_of_a_verb_are_not_taken_for_settings_of_the_same_name():
    from irrl.cli.flags import Parser, setting_names

    parser = Parser(prog="irrl sweep")
    assert "engine" in setting_names(parser, "gym")
    parser.option("--engine", default="local", metavar="NAME", help="where runs go")
    names = setting_names(parser, "gym", without=("reward",))
    assert "engine" not in names and "reward" not in names and "seed" in names
