"""The verbs of `irrl data`: what tasks learn from, made or fetched, and pictures of it."""

from irrl.cli.flags import Parser
from irrl.cli.outputs import add_force, check_picture
from irrl.errors import UserError


def run_data(parser: Parser, arguments: list[str]) -> int:
    from irrl.tasks.registry import all_tasks

    verbs = {}
    for task in all_tasks().values():
        for name, verb in task.data.items():
            if name in verbs:
                raise UserError(f"two tasks have a verb `irrl data {name}`; uninstall one of them")
            verbs[name] = verb
    kinds = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, verb in verbs.items():
        kind = kinds.add_parser(name, help=verb.summary, description=verb.summary)
        verb.add_options(kind)
        if kind.get_default("output") is not None:
            add_force(kind)
    options = parser.parse_args(arguments)
    if hasattr(options, "output"):
        check_picture(options.output, options.force)
    found = verbs[options.what].run(options)
    if not isinstance(found, str):
        from irrl.analysis.plots import save_figure

        found = str(save_figure(found, options.output))
    print(found)
    return 0
