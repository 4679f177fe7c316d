"""Files of a run folder are not trusted: links, pipes, hostile JSON, edited states and metrics."""

import json
import os
import shutil

import pytest

from irrl.errors import UserError, shown
from irrl.runs import files, reading
from irrl.tasks import checked_run, evaluate, open_run, sound_runs, train
from tests.fuzz.mutations import reseal


@pytest.fixture
def run(smoke_run, tmp_path):
    """A finished run that may be changed."""
    return shutil.copytree(smoke_run, tmp_path / "runs" / "one")


@pytest.fixture
def half(run):
    """One that was stopped at step 1000."""
    (run / "summary.json").unlink()
    for step in ("000000001500", "000000002000"):
        shutil.rmtree(run / "checkpoints" / step)
    (run / "checkpoints" / "last").write_text("000000001000\n")
    return run


@pytest.fixture
def decoy(tmp_path):
    path = tmp_path / "decoy"
    path.write_text("precious\n" * 3000)
    return path


def content(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# --- what is no plain file of its own ---

PARTS = ("config.json", "provenance.json", "metrics.jsonl", "checkpoints/last",
         "checkpoints/000000001000/state.json", "checkpoints/000000001000/arrays.safetensors",
         "checkpoints/000000001000", "checkpoints")  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_read_or_written_through_a_link(half, decoy, tmp_path, part):
    path = half / part
    target = decoy
    if path.is_dir():
        target = shutil.move(path, tmp_path / "elsewhere")
    else:
        path.unlink()
    path.symlink_to(target)
    before = content(tmp_path)
    with pytest.raises(UserError, match=r"link|names no checkpoint"):
        train(open_run(half))
    assert content(tmp_path) == before


def test_a_second_name_of_the_metrics_is_not_written_to(half, tmp_path):
    os.link(half / "metrics.jsonl", tmp_path / "snapshot")
    before = content(tmp_path)
    with pytest.raises(UserError, match=r"metrics.jsonl has a second name"):
        train(open_run(half))
    assert content(tmp_path) == before


@pytest.mark.parametrize("part", PARTS[:6])
def test_a_pipe_is_not_waited_for(half, part):
    (half / part).unlink()
    os.mkfifo(half / part)
    with pytest.raises(UserError, match="not a plain file"):
        train(open_run(half))


def test_temporary_names_cannot_be_foreseen(half, decoy):
    """Links where a temporary file used to be; a whole run leaves neither them nor files behind."""
    for name in (".provenance.json.tmp", ".summary.json.tmp", "checkpoints/.last.tmp"):
        (half / name).symlink_to(decoy)
    before = decoy.read_bytes()
    train(open_run(half))
    assert decoy.read_bytes() == before
    assert not [p for p in half.rglob("*") if files.is_leftover(p)]


def test_what_kills_have_left_is_removed_when_a_run_goes_on(half, decoy):
    left = half / ".summary.json.0123456789abcdef.tmp"
    left.write_text("{")
    folder = half / "checkpoints" / ".000000001500.0123456789abcdef.tmp"
    folder.mkdir()
    (folder / "arrays.safetensors").symlink_to(decoy)
    train(open_run(half))
    assert not left.exists() and not folder.exists() and decoy.exists()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "file"
    files.write_atomic(path, b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_atomic(path, b"new")
    assert path.read_bytes() == b"old" and [p.name for p in tmp_path.iterdir()] == ["file"]


def test_of_several_only_one_writes_first(tmp_path):
    files.write_first(tmp_path / "file", b"one")
    with pytest.raises(FileExistsError):
        files.write_first(tmp_path / "file", b"two")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("file", b"one")]


def test_without_hard_links_only_one_writes_first(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError("no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    test_of_several_only_one_writes_first(tmp_path)


# --- JSON ---


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * 40 + "]" * 40, "nested more than 32"),
        ('{"a": NaN}', "NaN is not a finite"),
        ('{"a": 1e999}', "1e999 is not a finite"),
        ("1" * 5000, "cannot read"),
        ("{", "cannot read"),
        ("\xff", "cannot read"),
        ("", "cannot read"),
    ],
)
def test_hostile_json_is_told_in_one_line(tmp_path, text, word):
    path = tmp_path / "file.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=word) as told:
        reading.read_json(path)
    assert "\n" not in str(told.value) and str(path) in str(told.value)


def test_a_file_larger_than_it_can_be_is_not_read(tmp_path):
    path = tmp_path / "file.json"
    path.write_text("{}")
    os.truncate(path, 1 << 40)
    with pytest.raises(UserError, match="too large: 1099511627776 bytes"):
        reading.read_json(path)
    path.rename(tmp_path / "metrics.jsonl")
    assert (
        reading.last_whole_row(reading.read_plain(tmp_path / "metrics.jsonl", 100, False)) is None
    )


@pytest.mark.parametrize(
    "row",
    ['{"a": 1}', '{"step": "1"}', '{"step": null}', '{"step": true}', '{"step": -1}',
     '{"step": 1.5}', '{"step": 1, "a": "x"}', '{"step": 1, "a": null}', '{"step": 1, "a": [1]}',
     '{"step": 1, "a": {}}', '{"step": 1, "a": 1e999}', '{"step": 1, "a": 1e300}',
     '{"step": 1, "a": NaN}', '{"step": 1, "a": 1' + "0" * 40 + "}",
     "[]", '{"step": 1' + "0" * 40 + "}"],
)  # fmt: skip
def test_rows_that_cannot_be(row):
    with pytest.raises(ValueError):
        reading.parse_row(row.encode() + b"\n")


def test_values_are_shown_shortly():
    assert len(shown("x" * 10_000)) < 100 and len(shown(10**4000)) < 100
    assert shown(10**5000) == "int of many digits"


# --- damage that has the right form ---


def test_an_edited_state_is_noticed(half):
    path = half / "checkpoints" / "000000001000" / "state.json"
    record = json.loads(path.read_text())
    whole = content(half)
    for change in ({"step": 500}, {"state": {**record["state"], "metrics_bytes": 10}}):
        path.write_text(json.dumps({**record, **change}))
        before = content(half)
        with pytest.raises(UserError, match=r"damaged checkpoint: .*state.json"):
            train(open_run(half))
        with pytest.raises(UserError, match=r"damaged checkpoint: .*state.json"):
            evaluate(open_run(half))
        assert content(half) == before
    path.write_text(json.dumps(record))
    assert set(content(half)) == set(whole)
    train(open_run(half))


def test_a_checkpoint_of_before_there_were_digests_is_loaded(half):
    path = half / "checkpoints" / "000000001000" / "state.json"
    record = json.loads(path.read_text())
    del record["sha256"], record["arrays_bytes"], record["state"]["metrics_sha256"]
    path.write_text(json.dumps(record))
    assert train(open_run(half))["iterations"] == 2000


def test_edited_metrics_are_noticed_when_a_run_goes_on(half):
    path = half / "metrics.jsonl"
    text = path.read_text()
    path.write_text(text.replace('"step": 500, "n_skills": ', '"step": 500, "n_skills": 9', 1))
    assert path.read_text() != text
    with pytest.raises(UserError, match=r"metrics.jsonl was altered"):
        train(open_run(half))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("metrics.jsonl", '"step": 500, "n_skills": ', '"step": 500, "n_skills": 1'),
        ("summary.json", '"n_skills": ', '"n_skills": 1'),
        ("config.json", '"seed": 0', '"seed": 7'),
    ],
)
def test_a_finished_run_is_shown_as_it_ended_or_not_at_all(run, name, old, new):
    path = run / name
    text = path.read_text()
    path.write_text(text.replace(old, new, 1))
    assert path.read_text() != text
    with pytest.raises(UserError, match=f"{name} is not as it was when the run ended"):
        checked_run(run)


def test_a_summary_without_its_primary_metric(run):
    path = run / "summary.json"
    summary = json.loads(path.read_text())
    for value in (None, "x", [], float("inf")):
        path.write_text(json.dumps({**summary, "n_skills": value}))
        reseal(run)
        with pytest.raises(UserError, match=r"summary.json"):
            checked_run(run)


@pytest.mark.parametrize("occupancy", [None, [], [0.5], ["x"] * 24, [2.0] * 24])
def test_a_state_without_shares_of_cells(half, occupancy, capsys, tmp_path):
    from irrl.analysis.comparison_plots import save_comparison_figures

    path = half / "checkpoints" / "000000001000" / "state.json"
    record = json.loads(path.read_text())
    record["state"]["occupancy"] = occupancy
    path.write_text(json.dumps(record))
    reseal(half)
    save_comparison_figures([open_run(half)], tmp_path / "all.png")
    assert "left out: damaged checkpoint" in capsys.readouterr().err


def test_of_several_runs_the_damaged_one_is_told_and_left_out(run, smoke_run, capsys):
    fine = shutil.copytree(smoke_run, run.parent / "two")
    (run / "summary.json").write_text("{")
    runs, left_out = sound_runs([str(run.parent)], finished=True)
    assert [run.folder for run in runs] == [fine] and len(left_out) == 1
    assert capsys.readouterr().err.startswith(f"irrl: left out: cannot read {run}")
    with pytest.raises(UserError, match=r"cannot read .*summary.json"):
        sound_runs([str(run)], finished=True)


def test_a_damaged_provenance_is_told_and_not_overwritten(half, capsys):
    (half / "provenance.json").write_text('{"resumed": 3}')
    assert open_run(half).provenance() == {}
    assert "provenance.json is damaged: its resumed" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"provenance.json is damaged"):
        train(open_run(half))
    assert (half / "provenance.json").read_text() == '{"resumed": 3}'
