"""`irrl figure`: the paper's figures by name, from run folders of real (smoke) runs."""

import json
import re
import shutil
from types import SimpleNamespace

import pytest
from matplotlib.text import Text

from irrl.analysis.plots import SMALL
from irrl.cli.main import main
from irrl.errors import UserError
from irrl.report import figures
from irrl.tasks import sound_runs
from tests.helpers.command import failing
from tests.helpers.runs import run_in


@pytest.fixture(scope="module")
def skills(tmp_path_factory):
    """Skill runs: linear and log, clipped and not. Do not change them."""
    folder = tmp_path_factory.mktemp("skills")
    for reward in ("linear", "clipped-linear", "clipped-log"):
        for seed in (0, 1):
            run_in(folder / reward / f"seed-{seed}", "skills", reward=reward, seed=seed)
    return folder


@pytest.fixture(scope="module")
def digits(tmp_path_factory, mnist_cache):
    """Digit runs of both models, one of them rewarded by an oracle. Do not change them."""
    folder = tmp_path_factory.mktemp("digits")
    run_in(folder / "linear", "digits", epochs=1)
    run_in(folder / "log", "digits", epochs=1, reward="clipped-log")
    run_in(folder / "paid", "digits", epochs=1, oracle=str(folder / "linear"))
    run_in(folder / "stops", "digits", epochs=1, model="dt-ram")
    run_in(folder / "leaked", "digits", epochs=1, leak_reward_gradient=True)
    run_in(folder / "accuracy", "digits", epochs=1, reward="accuracy")
    return folder


def plot(name, *folders, **options):
    """A figure by its name."""
    runs, _ = sound_runs([str(folder) for folder in folders], finished=True)
    return figures.find_figure(name).plot(figures.Request(runs, **options))


def curves(axes):
    """Names of the curves of a panel."""
    labels = [line.get_label() for line in axes.lines]
    return [re.sub(r"  [\d.]+$", "", label) for label in labels if not label.startswith("_")]


def test_the_list_shows_every_figure_its_label_and_its_needs(irrl):
    listed = irrl("figure", "--list").stdout
    for name, entry in figures.all_figures().items():
        about = f"    shows: {entry.shows}\n    paper: {entry.label}\n    needs: {entry.needs}\n"
        assert f"{name}\n{about}" in listed and entry.shows
        assert re.match(r"Figures? \d+|no figure there", entry.label), entry.label
    as_json = json.loads(irrl("figure", "--list", "--json").stdout)
    assert list(as_json) == list(figures.all_figures())
    assert as_json["occupancy"]["paper"] == "Figure 16, fig:skill-discovery-state-occupancy"


def test_the_reward_comparison_draws_each_reward_at_column_width(skills):
    figure = plot("reward-comparison", skills)
    (axes,) = figure.axes
    assert sorted(curves(axes)) == ["clipped-linear", "clipped-log", "linear"]
    assert axes.get_xlabel() == "iterations" and "2 seeds" in axes.get_title()
    assert figure.get_size_inches()[0] == pytest.approx(3.3)
    letters = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
    assert min(letters) >= 6.5 and SMALL["font.size"] >= 8


def test_digits_have_a_panel_for_each_model(digits):
    figure = plot("reward-comparison", digits / "linear", digits / "log", digits / "stops")
    assert [axes.get_title().split(":")[0] for axes in figure.axes] == ["RAM", "DT-RAM"]
    assert curves(figure.axes[0]) == ["clipped-linear", "clipped-log"]
    assert curves(figure.axes[1]) == ["clipped-linear"]


def test_clipping_draws_pairs_only(skills):
    figure = plot("clipping", skills)
    assert curves(figure.axes[0]) == ["linear", "clipped-linear"]
    means = [line for line in figure.axes[0].lines if line.get_linewidth() > 1]
    styles = [line.get_linestyle() for line in means]
    colours = {line.get_color() for line in figure.axes[0].lines}
    assert styles == ["--", "-"] and len(colours) == 1


def test_the_oracle_is_dotted(digits):
    figure = plot("oracle-reward", digits / "linear", digits / "log", digits / "paid")
    lines = {line.get_label().rsplit("  ")[0]: line for line in figure.axes[0].lines}
    assert lines["clipped-linear (oracle)"].get_linestyle() == ":"
    assert lines["clipped-linear"].get_linestyle() == "-"


def test_scripted_baselines_are_not_what_an_oracle_is_compared_with():
    def run(**settings):
        own = {"reward": "clipped-linear", "seed": 0, **settings}
        return SimpleNamespace(task="counting", settings=own, provenance=lambda: {"irrl": "0"})

    runs = [run(behaviour_policy="stay"), run(behaviour_policy="learned", oracle="elsewhere")]
    with pytest.raises(UserError, match="and the same without"):
        figures.oracle_reward(figures.Request(runs))


def test_runs_whose_reward_leaks_have_panels_of_their_own(digits):
    """Accuracy, which has no gradient to leak, is in both."""
    both = (digits / "linear", digits / "leaked", digits / "accuracy")
    figure = plot("oracle-reward", *both, digits / "paid")
    online = ["clipped-linear", "accuracy"]
    assert [curves(a) for a in figure.axes] == [[*online, "clipped-linear (oracle)"]] * 2
    assert ["leaked" in a.get_title() for a in figure.axes] == [False, True]
    figure = plot("reward-comparison", *both, digits / "stops")
    titles = [axes.get_title().split(":")[0] for axes in figure.axes]
    assert titles == ["RAM", "RAM, leaked", "DT-RAM"]
    assert figure.get_size_inches()[0] == pytest.approx(6.6)  # two side by side, the rest below
    figure = plot("reward-comparison", *both[1:])
    assert [curves(a) for a in figure.axes] == [online]


def test_g_functions_and_occupancy(skills):
    figure = plot("g-functions", skills)
    assert len(curves(figure.axes[0])) == 3
    figure = plot("occupancy", skills)
    assert sum(bool(axes.images) for axes in figure.axes) == 9  # three rewards, three stages


def test_case_study_and_noise_take_one_run_of_each_reward(digits):
    figure = plot("case-study", digits / "linear", digits / "log")
    assert "drawn at random (seed 0) among" in figure.get_suptitle()
    assert 2 <= len(figure.axes) <= 10 and len(figure.axes) % 2 == 0
    figure = plot("noise", digits / "linear", digits / "log", oracle=digits / "linear")
    assert [axes.get_title() for axes in figure.axes] == ["clipped-linear", "clipped-log"]


@pytest.mark.parametrize("name", ["reward-shapes", "noise-theory"])
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figures_without_runs(tmp_path, capsys, name, ending):
    output = tmp_path / f"figure.{ending}"
    assert main(["figure", name, "-o", str(output)]) == 0
    assert output.stat().st_size > 5000 and str(output) in capsys.readouterr().out


# --- bad input: one clear line, exit code 2, runs untouched ---


def test_names_and_needs(skills, digits, capsys, tmp_path):
    out = ("-o", tmp_path / "figure.png")
    assert "Did you mean 'occupancy'" in failing(capsys, "figure", "ocupancy", skills, *out)
    assert "--list" in failing(capsys, "figure")
    assert "needs runs of one task" in failing(capsys, "figure", "clipping", *out)
    assert "draws no runs" in failing(capsys, "figure", "reward-shapes", skills, *out)
    assert "must end in .png" in failing(capsys, "figure", "occupancy", skills, "-o", "x.doc")
    assert "seed must be" in failing(capsys, "figure", "case-study", digits, "--seed", "-1", *out)
    assert "of skills, not of digits" in failing(capsys, "figure", "occupancy", digits, *out)
    only = skills / "linear"
    assert "its clipped form" in failing(capsys, "figure", "clipping", only, *out)
    assert "two rewards or more" in failing(capsys, "figure", "g-functions", only, *out)
    online = digits / "log"
    assert "--oracle and the same without" in failing(
        capsys, "figure", "oracle-reward", online, *out
    )
    assert "--oracle DIR" in failing(capsys, "figure", "noise", online, *out)
    assert list(tmp_path.iterdir()) == []


def test_runs_that_do_not_belong_in_one_figure(skills, digits, capsys, tmp_path):
    out = ("-o", tmp_path / "figure.png")
    said = failing(capsys, "figure", "reward-comparison", skills, digits, *out)
    assert "runs of different tasks do not compare: digits, skills" in said

    other = shutil.copytree(skills / "linear" / "seed-0", tmp_path / "other")
    made = json.loads((other / "provenance.json").read_text())
    (other / "provenance.json").write_text(json.dumps({**made, "irrl": "0.0.1"}))
    said = failing(capsys, "figure", "reward-comparison", skills / "clipped-log", other, *out)
    assert "different versions of irrl do not compare: 0.0.1" in said
    assert not (tmp_path / "figure.png").exists()


def test_a_folder_without_a_finished_run(skills, capsys, tmp_path):
    half = shutil.copytree(skills / "linear", tmp_path / "half")
    (half / "seed-0" / "summary.json").unlink()
    assert main(["figure", "reward-comparison", str(half), "-o", str(tmp_path / "f.png")]) == 0
    told = capsys.readouterr().err
    assert told.startswith("irrl: left out: ") and "seed-0 is not finished" in told
    (half / "seed-1" / "summary.json").unlink()
    before = {path: path.read_bytes() for path in half.rglob("*") if path.is_file()}
    for verb in (("figure", "reward-comparison"), ("report",)):
        said = failing(capsys, *verb, skills, half)
        assert "there is no finished run in" in said and "half" in said
    assert {path: path.read_bytes() for path in half.rglob("*") if path.is_file()} == before
