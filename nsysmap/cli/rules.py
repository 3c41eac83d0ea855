"""`nsysmap rules`: the rules that come with nsysmap, and those of a user's folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from nsysmap.cli.inputs import completing
from nsysmap.core.errors import NsysmapError


@click.group("rules", short_help="List, show and test the rules behind findings.")
def rules_group() -> None:
    """The rules that look for what costs time, those that come with nsysmap and your own.

    \b
    Example:
      nsysmap rules list
    """


def _builtin_names() -> Iterable[str]:
    """The names of the rules that come with nsysmap: those of their files."""
    from nsysmap.rules.packs import builtin_rules_dir

    return (path.stem for path in builtin_rules_dir().rglob("*.yaml"))


_FOLDERS = click.option(
    "--rules",
    "folders",
    metavar="DIR",
    multiple=True,
    help="Also the rules in this folder. Repeatable.",
)


@rules_group.command("list", short_help="List the rules by group.")
@_FOLDERS
def rules_list(folders: tuple[str, ...]) -> None:
    """List the rules by group, with their severity and what each finds.

    \b
    Example:
      nsysmap rules list --rules our-rules
    """
    from nsysmap.output.rules import rules_list as listing
    from nsysmap.rules.packs import builtin_rules_dir, load_rules

    click.echo(
        listing(load_rules([builtin_rules_dir(), *map(Path, folders)], check_own=False)), nl=False
    )


@rules_group.command("show", short_help="Show one rule in full.")
@click.argument("name", shell_complete=completing(_builtin_names))
@_FOLDERS
def rules_show(name: str, folders: tuple[str, ...]) -> None:
    """Show one rule: why it matters, what to do, its parameters, its SQL and its cases.

    \b
    Example:
      nsysmap rules show launch-bound
    """
    from nsysmap.output.rules import rule_text
    from nsysmap.rules.packs import builtin_rules_dir, load_rules

    rules = {rule.name: rule for rule in load_rules([builtin_rules_dir(), *map(Path, folders)])}
    if name not in rules:
        import difflib

        close = difflib.get_close_matches(name, rules, n=3)
        remedy = f"did you mean {', '.join(close)}?" if close else "see `nsysmap rules list`"
        raise NsysmapError(f"rules show {name}", "there is no such rule", remedy)
    click.echo(rule_text(rules[name]))


@rules_group.command("test", short_help="Check rule files and run their cases.")
@click.argument("folder", metavar="DIR")
def rules_test(folder: str) -> int:
    """Check the rule files of a folder and run their cases; exit with status 1 if a case fails.

    \b
    Example:
      nsysmap rules test our-rules
    """
    from nsysmap.output.rules import cases_text
    from nsysmap.rules.cases import run_cases
    from nsysmap.rules.packs import load_rules

    results = run_cases(load_rules([Path(folder)]))
    click.echo(cases_text(results))
    return 1 if any(result.wrong is not None for result in results) else 0
