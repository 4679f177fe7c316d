"""The README's one table: what can be done, how far it comes, and what others have."""

import json
from typing import NamedTuple

from studies import PUBLISHED, RAM, RESULTS
from tables import load, shown_estimate

from irrl.analysis.stats import mean_estimate
from irrl.analysis.tables import markdown_table
from irrl.tasks.gym.peers import APPLE, CIRCLE_SQUARE


class Row(NamedTuple):
    """What is done, ours, what stands beside it; the study that ours is from, and its seeds."""

    what: str
    ours: str
    beside: str
    study: str
    seeds: int


def fill(text: str, name: str, block: str) -> str:
    """Put a block between two marks."""
    before, rest = text.split(f"<!-- {name} -->\n")
    after = rest.split(f"<!-- end of {name} -->\n")[1]
    return f"{before}<!-- {name} -->\n{block}<!-- end of {name} -->\n{after}"


def headline_block() -> str:
    rows = [[row.what, f"**{row.ours}**, seeds: {row.seeds}", row.beside] for row in headlines()]
    return markdown_table(["", "irrl", "beside it"], rows)


def headlines() -> list[Row]:
    """The rows whose study is there."""
    return [
        *skills_rows(), *digits_rows(), counting_row(), *gym_rows(), numbers_row(), maze_row(),
        robot_row(), preferences_row(),
    ]  # fmt: skip


def seeds_of(study: str, reward: str = "clipped-linear") -> int:
    return len(load(study)["rewards"][reward]["seeds"])


def skills_rows() -> list[Row]:
    authors = PUBLISHED["skills"].numbers
    return [
        Row(
            "Skill discovery in four rooms, 128 codes: skills told apart, at most 97.6",
            shown_estimate("skills-fast", "clipped-linear", "n_skills"),
            f"the paper's authors {authors['clipped-linear'].text}, after the same training",
            "skills-fast",
            seeds_of("skills-fast"),
        ),
        Row(
            "The same with a bonus for rarely visited cells (a baseline of DISDAIN's authors)",
            shown_estimate("skills-visits", "clipped-log", "n_skills"),
            "DISDAIN, an ensemble's disagreement as a bonus: "
            f"{shown_estimate('skills-fast', 'disdain', 'n_skills')} here, the paper's authors "
            f"{authors['disdain'].text}",
            "skills-visits",
            seeds_of("skills-visits", "clipped-log"),
        ),
    ]


def digits_rows() -> list[Row]:
    validated = ("clipped-linear", "accuracy_percent")
    return [
        Row(
            "Hard attention (RAM): digits in clutter from 18 glimpses, % right after 100 epochs",
            shown_estimate("digits-ram-fast", *validated),
            f"the authors' own recipe {RAM.curve_point('clipped-linear', 100)} at 100 epochs, "
            f"{RAM.texts()['clipped-linear']}; ours is another model",
            "digits-ram-fast",
            seeds_of("digits-ram-fast"),
        ),
        Row(
            "The same with a policy that decides when to stop (DT-RAM), 60 epochs",
            shown_estimate("digits-dt-ram-fast", *validated),
            f"{PUBLISHED['dt-ram'].texts()['clipped-linear']}; ours is another model",
            "digits-dt-ram-fast",
            seeds_of("digits-dt-ram-fast"),
        ),
    ]


def counting_row() -> Row:
    authors = PUBLISHED["counting"]
    return Row(
        "Counting hidden objects by walking around the table, % right after 120,000 episodes",
        shown_estimate("counting", "clipped-linear", "accuracy_percent"),
        f"{authors.curve_point('clipped-linear', 100_000)} at 100,000 episodes, "
        f"{authors.texts()['clipped-linear']}; ours sees smaller pictures",
        "counting",
        seeds_of("counting"),
    )


def gym_rows() -> list[Row]:
    best = next(peer for peer in CIRCLE_SQUARE if peer.length == "250k steps")
    return [
        Row(
            "Somebody else's environment, stock PPO: ap_gym's CircleSquare, % right at 250k steps",
            shown_estimate(
                "gym-circle-square", "clipped-linear", "environment_final_accuracy_percent"
            ),
            f"[published]({APPLE}): {best.method} {best.text}",
            "gym-circle-square",
            seeds_of("gym-circle-square"),
        ),
        Row(
            "Skills of a point mass with stock PPO, 32 codes, a minute on one core",
            shown_estimate("gym-point-mass-cosine", "clipped-linear", "n_skills"),
            "at most 32",
            "gym-point-mass-cosine",
            seeds_of("gym-point-mass-cosine"),
        ),
    ]


def numbers_row() -> Row:
    study, metric = "gym-light-dark", ("ball", "squared_error")
    return Row(
        "Labels that are numbers, stock PPO: ap_gym's LightDark, squared error per step at 240k "
        "steps (a blind guess has 1)",
        shown_estimate(study, *metric),
        "the environment's own reward in the same trainer "
        f"{shown_estimate(f'{study}-own-reward', *metric)}",
        study,
        seeds_of(study, "ball"),
    )


def maze_row() -> Row:
    """Coverage has a range of its own, whatever the study."""
    found = load("gym-maze")["rewards"]["clipped-linear"]
    log, diayn = (
        mean_estimate(load(study)["rewards"][reward]["coverage"]["values"]).within(0.0, 100.0)
        for study, reward in (("gym-maze-log-bonus", "clipped-log"), ("gym-maze-diayn", "log"))
    )
    return Row(
        "50 skills in a continuous maze with stock PPO and a bonus for rare visits, each action "
        "taken ten times: buckets of 100 reached",
        str(mean_estimate(found["coverage"]["values"]).within(0.0, 100.0)),
        f"same trainer: clipped log with a bonus of its own scale {log}, DIAYN (log at every "
        f"state, no bonus) {diayn}",
        "gym-maze",
        len(found["seeds"]),
    )


def robot_row() -> Row:
    study = "gym-half-cheetah"
    log, diayn = (
        shown_estimate(study, "clipped-log", "n_skills"),
        shown_estimate(f"{study}-diayn", "log", "n_skills"),
    )
    return Row(
        "8 skills of MuJoCo's HalfCheetah, told from where they end after five seconds, stock PPO",
        shown_estimate(study, "clipped-linear", "n_skills"),
        f"same trainer: clipped log {log}, DIAYN {diayn}",
        study,
        seeds_of(study),
    )


def preferences_row() -> Row:
    """Returns of Pendulum, below zero: no range to keep to."""
    linear, true = (pendulum_returns(reward) for reward in ("linear", "true"))
    return Row(
        "A policy that learns from 600 comparisons: Pendulum, return",
        str(mean_estimate(linear)),
        f"the same PPO on the true reward {mean_estimate(true)}",
        "preferences-pendulum",
        len(linear),
    )


def pendulum_returns(reward: str) -> list[float]:
    files = sorted((RESULTS / "preferences-pendulum").glob(f"{reward}-*.json"))
    return [json.loads(path.read_text())["return"] for path in files]
