"""How the command line reads its arguments: one line for an error, a flag for every setting."""

import argparse
import dataclasses
import textwrap
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from irrl.errors import UserError

if TYPE_CHECKING:
    from irrl.runs.config import Config


class Parser(argparse.ArgumentParser):
    """Errors in one line that says where to look, exit code 2; no abbreviated flags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"irrl: error: {message} (see `{self.prog} --help`)\n")

    def option(self, *flags: str, default: Any, metavar: str, help: str) -> None:
        """An option that says its default; its type is that of the default."""
        self.add_argument(
            *flags,
            default=default,
            type=type(default),
            metavar=metavar,
            help=f"{help} (default: %(default)s)",
        )


def parse_settings(
    parser: Parser, arguments: list[str], without: tuple[str, ...] = ()
) -> tuple[argparse.Namespace, dict[str, Any]]:
    """Parse TASK, --preset, the options of the verb, and a flag for every setting of the task.

    Returns all options, and apart from them the settings that were given.
    """
    from irrl.tasks import make_config
    from irrl.tasks.contract import DEFAULT_PRESET
    from irrl.tasks.registry import task_names

    parser.add_argument("task", metavar="TASK", help=", ".join(task_names()))
    parser.option(
        "--preset",
        default=DEFAULT_PRESET,
        metavar="NAME",
        help="see `irrl presets`",
    )
    tell_of_tasks(parser, arguments)
    task = first_word(parser, arguments, task_names().__contains__)
    defaults = make_config(task, known_options(parser, arguments).preset)
    names = setting_names(parser, task, without)
    add_settings(parser, defaults, names)
    options = parser.parse_args(arguments)
    return options, given_settings(options, names)


def tell_of_tasks(parser: Parser, arguments: list[str]) -> None:
    """Where no task is named yet, the help lists them, and says how to see the flags of each."""
    if any(not word.startswith("-") for word in arguments):
        return
    from irrl.tasks.registry import all_tasks

    lines = [f"tasks, and `{parser.prog} TASK --help` for the flags of each:"]
    for name, task in all_tasks().items():
        about = (task.config.__doc__ or "").strip().splitlines()[0]
        lines.append(f"  {name:<10} {about}")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join([*textwrap.wrap(parser.epilog or "", 78), *lines])


def first_word(parser: Parser, arguments: list[str], fits: Callable[[str], bool]) -> str:
    """The first argument that fits, else the first that is no flag; without one, end here."""
    words = [a for a in arguments if not a.startswith("-")]
    word = next(filter(fits, words), words[0] if words else None)
    if word is None:
        parser.parse_args(arguments)  # shows the help, or says what is missing
    return str(word)


def known_options(parser: Parser, arguments: list[str]) -> argparse.Namespace:
    """The options known so far, before there are flags for all settings."""
    return parser.parse_known_args([w for w in arguments if w not in ("-h", "--help")])[0]


def setting_names(parser: Parser, task: str, without: Collection[str] = ()) -> list[str]:
    """Settings that get a flag: not those for which the verb has one of its own."""
    from irrl.runs.config import flag_name
    from irrl.tasks import find_task

    names = [field.name for field in dataclasses.fields(find_task(task).config)]
    taken = parser._option_string_actions
    return [n for n in names if n not in without and f"--{flag_name(n)}" not in taken]


def add_settings(
    parser: Parser,
    defaults: "Config",
    names: Sequence[str],
    reader: Callable[[Callable[[str], Any], Any], Callable[[str], Any]] = lambda parse, _: parse,
) -> None:
    """Add a flag for each of these settings.

    ``reader`` makes of the parser of one value, and its default, what reads the flag.
    """
    from irrl.runs.config import flag_name, value_type

    if not names:
        return
    cls = type(defaults)
    group = parser.add_argument_group(f"settings of {cls.task}", cls.__doc__)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    for name in names:
        kind, _ = value_type(cls, name)
        default = getattr(defaults, name)
        group.add_argument(
            f"--{flag_name(name)}",
            dest=name,
            type=reader(yes_or_no if kind is bool else kind, default),
            metavar="YES|NO" if kind is bool else kind.__name__.upper(),
            default=argparse.SUPPRESS,
            help=fields[name].metadata["help"].replace("%", "%%") + f" (default: {default})",
        )


def given_settings(options: argparse.Namespace, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


def yes_or_no(text: str) -> bool:
    words = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
    if text.lower() not in words:
        raise argparse.ArgumentTypeError(f"expected yes or no, got {text!r}")
    return words[text.lower()]


def reward_names(text: str | None, densities: bool = False) -> list[str]:
    """Rewards from a list with commas, each once; of the library, or module:function.

    Those of densities only where they are asked for.
    """
    from irrl.density_rewards import DENSITY_REWARDS
    from irrl.rewards import reward

    names = list(dict.fromkeys(name for name in (text or "").replace(" ", "").split(",") if name))
    for name in names:
        if densities and name in DENSITY_REWARDS:
            continue
        try:
            reward(name)
        except ValueError as error:
            raise UserError(str(error)) from None
    return names


def curve_names(names: list[str]) -> list[str]:
    """The same, if each is a function of the posterior alone."""
    from irrl.rewards import reward

    for name in names:
        if not reward(name).of_posterior_alone:
            raise UserError(f"{name} is not a function of the posterior alone: it has no curve")
    return names
