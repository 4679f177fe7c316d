"""UPSIDE's table and ours, side by side: in mazes that are not known to be the same."""

import json

from studies import RESULTS
from tables import load

from irrl.analysis.stats import mean_estimate
from irrl.analysis.tables import markdown_table
from irrl.envs.maze_map import read_maze
from irrl.envs.maze_metrics import largest_coverage

AS_LONG_AS_TRAINING = "50,000 episodes, ten million steps"
"""The reading of "random" that is nearest to UPSIDE's table."""

COLUMNS = (
    "random", "DIAYN-50", "SMM-50", "EDL-50 (told where to go)", "flat UPSIDE-50",
    "UPSIDE (a tree of skills)", "clipped linear, 50 codes, flat",
)  # fmt: skip
UPSIDE = {
    "Bottleneck": ("29.2", "30.0", "28.0", "33.3", "51.3", "85.7"),
    "U-Maze": ("23.3", "25.3", "25.0", "52.3", "57.3", "71.3"),
}
"""ICLR 2022, Table 2: buckets of 100."""

OURS = {
    "Bottleneck": {
        "DIAYN-50": ("gym-maze-diayn", "log"),
        COLUMNS[-1]: ("gym-maze", "clipped-linear"),
    },
    "U-Maze": {COLUMNS[-1]: ("gym-u-maze", "clipped-linear")},
}
"""Column -> study and reward; what is missing was not run."""


def buckets_of(maze: str) -> dict[str, list[float]]:
    """What was measured here: column -> buckets that each seed reached."""
    kept = json.loads((RESULTS / "gym-maze-random.json").read_text())[AS_LONG_AS_TRAINING]
    return {"random": kept[maze.lower()]} | {
        column: load(study)["rewards"][reward]["coverage"]["values"]
        for column, (study, reward) in OURS[maze].items()
    }


def upside_table() -> str:
    rows = []
    for maze, theirs in UPSIDE.items():
        most = largest_coverage(read_maze(maze.lower()))
        ours = {
            column: str(mean_estimate(values).within(0.0, most))
            for column, values in buckets_of(maze).items()
        }
        rows.append([f"{maze}, UPSIDE's table", *theirs, "-"])
        rows.append([f"{maze}, here", *(ours.get(column, "-") for column in COLUMNS)])
    return markdown_table(["", *COLUMNS], rows)
