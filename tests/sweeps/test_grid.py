import sys
from types import SimpleNamespace

import pytest

from irrl.cli.main import main
from irrl.errors import UserError
from irrl.sweeps.grid import parse_values, read_plan, separator_of
from tests.helpers.command import REPOSITORY, failed

EXPERIMENTS = sorted((REPOSITORY / "experiments").glob("*.toml"))


@pytest.fixture
def sweep(capsys, tmp_path, monkeypatch):
    """`irrl sweep` in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            code = main(["sweep", *map(str, arguments)])
        except SystemExit as end:  # of the argument parser
            code = end.code
        said = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=said.out, stderr=said.err)

    return run


def listed(result):
    """The folders that a dry run lists."""
    assert result.returncode == 0, result.stderr
    return [word for word in result.stdout.split() if "seed-" in word]


def test_values():
    assert parse_values("0.1, 2", float) == [0.1, 2.0]
    assert parse_values("0..2,7", int) == [0, 1, 2, 7]
    assert parse_values(",", int) == parse_values("3..1", int) == []
    assert parse_values("16,32;8", str, separator_of("32,64,128")) == ["16,32", "8"]
    assert separator_of("large") == separator_of(0.1) == separator_of(None) == ","


def test_flags_make_a_grid(sweep, tmp_path):
    flags = ("--reward", "linear,clipped-log", "--seed", "0..1", "--learning-rate", "0.2,1")
    result = sweep("skills", *flags, "--codes", "64", "--out", "out", "--dry-run")
    assert set(listed(result)) == {
        f"out/learning-rate={rate}/{reward}/seed-{seed}"
        for rate in ("0.2", "1.0")
        for reward in ("linear", "clipped-log")
        for seed in (0, 1)
    }
    assert "8 runs, 0 finished, 8 to do" in result.stdout
    assert not list(tmp_path.iterdir())


def test_only_what_varies_is_in_the_name_of_a_folder(sweep):
    assert listed(sweep("digits", "--seed", "3", "--dry-run")) == [
        "runs/sweep/clipped-linear/seed-3"
    ]
    flags = ("--preset", "fast,paper", "--fresh-canvases", "yes,no", "--dry-run")
    assert listed(sweep("digits", *flags))[0] == (
        "runs/sweep/preset=fast,fresh-canvases=yes/clipped-linear/seed-0"
    )
    widths = ("--encoder-widths", "16,32;8,16,32", "--encoder", "small", "--dry-run")
    assert listed(sweep("counting", *widths)) == [
        "runs/sweep/encoder-widths=16-32/clipped-linear/seed-0",
        "runs/sweep/encoder-widths=8-16-32/clipped-linear/seed-0",
    ]


FILE = """
task = "skills"
preset = "smoke"
out = "rates"
[settings]
iterations = 1000
lambda = 1
[grid]
reward = ["linear", "log"]
seed = "0..2"
learning_rate = [0.2, 1]
"""


def test_a_file_says_the_same_as_flags(sweep, tmp_path):
    (tmp_path / "grid.toml").write_text(FILE)
    plan = read_plan(tmp_path / "grid.toml", "fast")
    assert plan.settings == {"iterations": 1000, "lambda_": 1.0}
    flags = (
        "--preset smoke --iterations 1000 --lambda 1 --reward linear,log --seed 0..2 "
        "--learning-rate 0.2,1 --out rates --dry-run"
    )
    said = sweep("skills", *flags.split()).stdout
    assert len(listed(sweep("grid.toml", "--dry-run"))) == 12
    assert sweep("grid.toml", "--dry-run").stdout == said


def test_flags_come_before_what_a_file_says(sweep, tmp_path):
    (tmp_path / "grid.toml").write_text(FILE)
    flags = ("--learning-rate", "0.4", "--iterations", "10,20", "--seed", "5", "--out", "here")
    assert listed(sweep("grid.toml", *flags, "--dry-run")) == [
        f"here/iterations={n}/{reward}/seed-5" for reward in ("linear", "log") for n in (10, 20)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task = 'skils'", ["unknown task 'skils'", "'skills'"]),
        ("tsak = 'skills'", ["unknown key 'tsak'", "Did you mean 'task'"]),
        ("out = 'x'", ["names no task"]),
        ("task = 3", ["task must be text"]),
        ("task = 'skills'\n[gird]\nseed = [1]", ["unknown key 'gird'", "Did you mean 'grid'"]),
        ("task = 'skills'\n[grid]\nsede = [1]", ["[grid]", "Did you mean 'seed'"]),
        ("task = 'skills'\n[settings]\nlearning-rte = 1", ["Did you mean 'learning-rate'"]),
        ("task = 'skills'\n[grid]\nseed = []", ["grid is empty", "seed has no values"]),
        ("task = 'skills'\n[grid]", ["grid is empty", "--seed 0..4"]),
        ("task = 'skills'", ["grid is empty"]),
        ("task = 'skills'\npreset = []\n[grid]\nseed = 1", ["preset has no values"]),
        ("task = 'skills'\npreset = [1]\n[grid]\nseed = 1", ["preset must be text"]),
        ("task = 'skills'\ngrid = 3", ["grid must be a table"]),
        ("task = 'skills'\n[settings]\nseed = [1, 2]", ["put it in [grid]"]),
        ("task = 'skills'\n[grid]\nseed = 'a..b'", ["whole numbers", "a..b"]),
        ("task = 'skills'\n[grid]\nseed = [0.5]", ["seed must be int, got 0.5"]),
        ("task = 'skills'\n[grid]\nreward = [[1]]", ["put it in [grid]"]),
        ("task = 'skills'\n[grid]\nseed = [1]\n[settings]\nseed = 1", ["take one out"]),
        ("task = 'skills'\n[grid]\nseed = [1, 1]", ["share the folder", "seed-1"]),
        ("task = 'skills'\npreset = 'fats'\n[grid]\nseed = 1", ["unknown preset", "'fast'"]),
        ("task = ", ["is not TOML"]),
    ],
)
def test_bad_files_are_told_in_one_line(sweep, tmp_path, text, words):
    (tmp_path / "grid.toml").write_text(text)
    assert failed(sweep("grid.toml"), "grid.toml" if "Did you" in words[-1] else "", *words)
    assert [p.name for p in tmp_path.iterdir()] == ["grid.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.toml"], ["cannot read nowhere.toml"]),
        (["skils"], ["unknown task 'skils'"]),
        (["skills"], ["grid is empty"]),
        (["skills", "--learning-rate", "0.3"], ["grid is empty"]),
        (["skills", "--seed", ","], ["grid is empty", "seed has no values"]),
        (["skills", "--seed", "4..1"], ["grid is empty"]),
        (["skills", "--seed", "0,1.5"], ["--seed", "invalid int value in '0,1.5'"]),
        (["skills", "--seed", "0,0"], ["share the folder"]),
        (["skills", "--map", "small,-small-"], ["unknown map"]),
        (["skills", "--reward", "linear,lnear"], ["Did you mean 'linear'"]),
        (["skills", "--seed", "0", "--engine", "rya"], ["Did you mean 'ray'"]),
        (["skills", "--seed", "0", "--workers", "0"], ["workers", "at least 1"]),
        (["skills", "--seed", "0", "--address", "x:1"], ["need --engine ray"]),
        (["skills", "--seed", "0", "--engine", "ray", "--address", "x:1", "--workers", "2"],
         ["--workers is for this machine"]),
        (["skills", "--seed", "0", "--engine", "ray", "--address", "nowhere"], ["HOST:PORT"]),
        (["skills", "--seed", "0", "--engine", "ray", "--address", "127.0.0.1:1"],
         ["no Ray cluster answers at 127.0.0.1:1", "ray start --head"]),
    ],
)  # fmt: skip
def test_bad_sweeps_are_told_in_one_line(sweep, tmp_path, arguments, words):
    assert failed(sweep(*arguments), *words)
    assert not list(tmp_path.iterdir())


def test_values_that_make_the_same_folder_are_refused(tmp_path, monkeypatch, sweep):
    for name in ("a-b.txt", "a b.txt"):
        (tmp_path / name).write_text("S..\n...\n")
    result = sweep("skills", "--map", "a-b.txt,a b.txt", "--codes", "4", "--seed", "0")
    assert failed(result, "share the folder", "map=a-b.txt")


def test_without_ray_it_is_told_what_to_install(sweep, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert failed(sweep("skills", "--seed", "0", "--engine", "ray"), "pip install 'irrl[ray]'")
    assert not list(tmp_path.iterdir())


def test_a_folder_of_another_run_is_refused_before_anything_starts(sweep, tmp_path):
    (tmp_path / "out" / "linear" / "seed-1").mkdir(parents=True)
    (tmp_path / "out" / "linear" / "seed-1" / "notes.txt").write_text("mine")
    flags = ("--preset", "smoke", "--reward", "linear", "--seed", "0..1", "--out", "out")
    for extra in ([], ["--dry-run"]):
        assert failed(sweep("skills", *flags, *extra), "seed-1 is not empty")
    assert [p.name for p in (tmp_path / "out" / "linear").iterdir()] == ["seed-1"]


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_the_experiments_can_be_read(sweep, path):
    result = sweep(path, "--dry-run")
    folders = listed(result)
    assert folders == sorted(set(folders), key=folders.index) and len(folders) >= 9
    assert {folder.rsplit("/", 1)[1] for folder in folders} == {f"seed-{n}" for n in range(3)}
    assert "core-hours" in path.read_text()


def test_there_are_experiments():
    assert {path.stem for path in EXPERIMENTS} >= {"skills", "digits-ram", "digits-dt-ram"}
    with pytest.raises(UserError, match="cannot read"):
        read_plan(REPOSITORY / "experiments" / "none.toml", "fast")
