"""`irrl completion SHELL`: what makes a shell complete irrl's words.

The shell asks `irrl completion --words ...` at each press of the key. The answer is taken from the
parser of the verb itself, which stops where it would begin to parse: flags of tasks, also of those
in other packages, are known without being written down a second time.
"""

import argparse
import contextlib
from collections.abc import Sequence
from typing import Any, NoReturn

from irrl.cli.flags import Parser
from irrl.errors import UserError, unknown_name

BASH = """\
_irrl() {
    local IFS=$'\\n' line
    COMPREPLY=()
    for line in $(irrl completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        COMPREPLY+=("${line%%$'\\t'*}")
    done
}
complete -o default -F _irrl irrl
"""

ZSH = """\
#compdef irrl
_irrl() {
    local -a found
    local line
    for line in "${(@f)$(irrl completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done
    if (( $#found )); then _describe irrl found; else _files; fi
}
if (( $+functions[compdef] )); then compdef _irrl irrl; fi
"""

FISH = """\
function __irrl_words
    set -l found (irrl completion --words (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c irrl -f -a '(__irrl_words)'
"""

SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
WHERE = """\
bash:  echo 'source <(irrl completion bash)' >> ~/.bashrc
zsh:   echo 'source <(irrl completion zsh)' >> ~/.zshrc      (after compinit)
fish:  irrl completion fish > ~/.config/fish/completions/irrl.fish"""

Words = dict[str, str]
"""Words that may stand at a place, and what each means."""


def run_completion(parser: Parser, arguments: list[str]) -> int:
    if arguments[:1] == ["--words"]:
        for word, meaning in words_for(arguments[1:] or [""]).items():
            print(f"{word}\t{meaning}")
        return 0
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = WHERE
    parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))
    shell = parser.parse_args(arguments).shell
    if shell not in SHELLS:
        raise UserError(unknown_name("shell", shell, SHELLS))
    print(SHELLS[shell], end="")
    return 0


# --- which words there are ---


class AskedError(Exception):
    """Raised in place of parsing: the parser has all its flags."""


class Listening(Parser):
    """A parser that only says what it would take."""

    def parse_args(self, *arguments: Any, **options: Any) -> NoReturn:
        raise AskedError

    def error(self, message: str) -> NoReturn:
        raise AskedError


def words_for(line: Sequence[str]) -> Words:
    """What may stand in place of the last word of a line; nothing where a file is wanted."""
    from irrl.cli.main import VERBS

    *before, last = [word for word in line if word != "="]  # which bash makes a word of its own
    if not before:
        verbs = {name: summary for name, (summary, _) in VERBS.items()}
        return beginning(last, {**verbs, "--help": "", "--version": ""})
    verb, *before = before
    if verb not in VERBS:
        return {}
    if last.startswith("--") and "=" in last:
        flag, _, last = last.partition("=")
        found = beginning(last, words_of_verb(verb, [*before, flag], last))
        return {f"{flag}={word}": meaning for word, meaning in found.items()}
    return beginning(last, words_of_verb(verb, before, last))


def beginning(start: str, words: Words) -> Words:
    """Those of some words that go on from where a word begins, in lists with commas, too."""
    head, comma, start = start.rpartition(",")
    return {f"{head}{comma}{w}": meaning for w, meaning in words.items() if w.startswith(start)}


def words_of_verb(verb: str, before: list[str], last: str) -> Words:
    from irrl.cli.main import VERBS

    if verb == "completion":
        return dict.fromkeys(SHELLS, "")
    parser = Listening(prog=f"irrl {verb}")
    with contextlib.suppress(AskedError, UserError):
        VERBS[verb][1](parser, [*before])
    actions = parser._actions
    for action in actions:
        kinds = action.choices if isinstance(action, argparse._SubParsersAction) else {}
        if before and before[0] in kinds:
            actions, before = kinds[before[0]]._actions, before[1:]
    flags = {flag: action for action in actions for flag in action.option_strings}
    if before and before[-1] in flags and flags[before[-1]].nargs != 0:
        return values_of(flags[before[-1]], before)
    if last.startswith("-"):
        return {flag: one_line(action) for flag, action in flags.items() if flag.startswith("--")}
    given = [word for word in before if not word.startswith("-")]
    places = [action for action in actions if not action.option_strings]
    values = [values_of(action, before) for action in places]
    is_taken = any(set(found) & set(given) for found in values)
    return {} if is_taken else next(iter(values), {})


def one_line(action: argparse.Action) -> str:
    return " ".join((action.help or "").replace("%%", "%").partition(" (default:")[0].split())


def values_of(action: argparse.Action, before: Sequence[str]) -> Words:
    """The values that an option or an argument takes, where they are known."""
    from irrl.tasks.registry import all_tasks, task_names

    if isinstance(action, argparse._SubParsersAction):
        return {choice.dest: choice.help or "" for choice in action._choices_actions}
    if action.choices is not None:
        return dict.fromkeys(map(str, action.choices), "")
    if action.metavar == "YES|NO":
        return {"yes": "", "no": ""}
    if isinstance(action.metavar, str) and action.metavar.startswith("TASK"):
        return {n: one_line_of(t.config.__doc__ or "") for n, t in all_tasks().items()}
    if action.dest == "preset":
        named = [all_tasks()[word] for word in before if word in task_names()]
        return {name: p.description for task in named for name, p in task.presets.items()}
    if action.dest == "name":
        from irrl.report.figures import all_figures

        return {name: entry.shows for name, entry in all_figures().items()}
    if action.dest in ("reward", "rewards"):
        from irrl.rewards import REWARDS

        return {name: found.formula for name, found in REWARDS.items()}
    return {}


def one_line_of(text: str) -> str:
    return text.strip().partition("\n")[0]
