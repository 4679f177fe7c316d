"""Tables of environments that are not ours: peers' published rows beside ours, inputs, costs."""

from studies import STUDIES
from tables import commits, is_there, load, shown_estimate

from irrl.analysis.tables import markdown_table
from irrl.tasks.gym.peers import APPLE, CIRCLE_SQUARE

OWN, BY_ENVIRONMENT = "gym-circle-square", "environment_final_accuracy_percent"
SKILLS = (
    "gym-point-mass", "gym-point-mass-cosine", "gym-point-mass-128", "gym-four-rooms",
    "gym-four-rooms-cosine",
)  # fmt: skip
INPUTS = {
    "gym-circle-square": "deviations from the glimpse's mean (`contrast`, the default)",
    "gym-circle-square-by-hand": "the glimpse less its mean, times ten, made by hand",
    "gym-circle-square-standardised": "each pixel standardised",
    "gym-circle-square-raw": "raw pixels",
}
CHEETAH = [name for name in STUDIES if name.startswith("gym-half-cheetah")]


def estimate(study: str, reward: str, metric: str) -> str:
    """Mean over seeds with its interval; a dash where it was not measured."""
    found = load(study)["rewards"].get(reward, {}) if is_there(study) else {}
    return shown_estimate(study, reward, metric) if metric in found else "-"


def worst(study: str, reward: str, metric: str) -> str:
    return f"{min(load(study)['rewards'][reward][metric]['values']):.1f}"


def seeds(study: str, reward: str = "clipped-linear") -> int:
    return len(load(study)["rewards"][reward]["seeds"])


def peers_table() -> str:
    """Ours at 250,000 steps, then what is published, by steps."""
    rows = [
        [f"**irrl, PPO, {name}**", "250k steps", f"**{estimate(OWN, name, BY_ENVIRONMENT)}**",
         worst(OWN, name, BY_ENVIRONMENT)]
        for name in load(OWN)["rewards"]
    ]  # fmt: skip
    own = "gym-circle-square-own-reward"
    if is_there(own):
        found = estimate(own, "clipped-linear", BY_ENVIRONMENT)
        least = worst(own, "clipped-linear", BY_ENVIRONMENT)
        rows.append(["irrl's trainer, the environment's own reward", "250k steps", found, least])
    rows += [[f"{p.method} (published)", p.length, p.text, "-"] for p in CIRCLE_SQUARE]
    return markdown_table(["method", "after", "final accuracy %", "worst seed"], rows)


def inputs_table() -> str:
    """What discriminator and policy see."""
    rows = [
        [text, estimate(study, "clipped-linear", BY_ENVIRONMENT),
         worst(study, "clipped-linear", BY_ENVIRONMENT)]
        for study, text in INPUTS.items()
        if is_there(study)
    ]  # fmt: skip
    return markdown_table(["inputs", "final accuracy %", "worst seed"], rows)


def skills_table() -> str:
    rows = []
    for study in SKILLS:
        if not is_there(study):
            continue
        for name in load(study)["rewards"]:
            shown = [estimate(study, name, m) for m in ("n_skills", "cpu_seconds")]
            rows.append([STUDIES[study].title, name, str(seeds(study, name)), *shown])
    return markdown_table(["", "reward", "seeds", "n skills", "CPU seconds"], rows)


def half_cheetah_table() -> str:
    """Skills told by a place: all rewards and what was left out, and their commands."""
    rows, commands = [], []
    for study in filter(is_there, CHEETAH):
        columns, title = STUDIES[study].columns, STUDIES[study].title.partition(", ")[2]
        for name in load(study)["rewards"]:
            shown = [estimate(study, name, metric) for metric in columns.metrics]
            rows.append([title, name, str(seeds(study, name)), *shown])
        commands.append(f"- `{STUDIES[study].command}`, commit {commits(load(study))}")
    titles = STUDIES[CHEETAH[0]].columns.titles
    return (
        markdown_table(["", "reward", "seeds", *titles], rows) + "\n" + "\n".join(commands) + "\n"
    )


def published_note() -> str:
    return (
        f"Published rows: [the authors of ap_gym]({APPLE}), training episodes (there is no test "
        "split); ours are 512 new episodes with sampled actions. Theirs see the same glimpses "
        "through a video transformer; whether their pixels were normalised is not known to us."
    )


def circle_square_section() -> str:
    """After the studies, in docs/results.md."""
    return (
        "\n## CircleSquare beside published rows\n\n"
        "A circle is told from a square through glimpses of 5 x 5 pixels. Stock PPO with a reward "
        f"model, {estimate(OWN, 'clipped-linear', 'cpu_seconds')} CPU seconds a run, "
        f"{seeds(OWN)} seeds.\n\n"
        f"{peers_table()}\n{published_note()}\n\n"
        "What discriminator and policy are shown, clipped linear:\n\n"
        f"{inputs_table()}\n"
    )
