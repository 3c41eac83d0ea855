"""Finds the rules: the built-in ones, and those in a user's folders."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from nsysmap.core.errors import NsysmapError, named_path
from nsysmap.rules.parameters import Params, load_params, with_params
from nsysmap.rules.ready_rules import ready_rules
from nsysmap.rules.rule_file import Rule, read_rule
from nsysmap.rules.sandbox.strangers import Strangers

MOST_FILES = 1_000
"""Rule files in one folder: nsysmap itself has 57, and each takes some 10 ms to check."""


def builtin_rules_dir() -> Path:
    """The folder of the rules that come with nsysmap: inside the package where it is installed,
    beside it in a checkout.
    """
    package = Path(__file__).parents[1]
    installed = package / "rule_files"
    return installed if installed.is_dir() else package.parent / "rules"


def chosen_rules(
    packs: Sequence[Path | str] = (), *, params: Params | None = None, settings: Path | None = None
) -> tuple[Rule, ...]:
    """The built-in rules and those of these folders, with their parameters set.

    ``settings`` is a .toml file, or a folder with nsysmap.toml or pyproject.toml (default: the
    current folder); ``params`` override it. Raises NsysmapError for an invalid rule file, settings
    file or parameter.
    """
    rules = load_rules([builtin_rules_dir(), *map(Path, packs)], check_own=False)
    return with_params(
        with_params(rules, load_params(settings if settings is not None else Path())), params or {}
    )


def load_rules(directories: Sequence[Path], *, check_own: bool = True) -> tuple[Rule, ...]:
    """Every rule in these folders, by folder and name; NsysmapError at the first invalid file, or
    if two rules have the same name.

    Unless ``check_own``, the built-in rules are not checked until they run (see
    rule_file.read_rule) and have no cases.
    """
    rules: dict[str, Rule] = {}
    own = None if check_own else builtin_rules_dir()
    ready = {} if own is None else ready_rules(own)
    with ExitStack() as opened:
        sandbox = None
        for directory in directories:
            if not named_path(directory).is_dir():
                raise NsysmapError(
                    str(directory), "is not a folder", "give a folder of rule files (NAME.yaml)"
                )
            paths = rule_paths(directory)
            if not paths:
                raise NsysmapError(
                    str(directory), "holds no rule files", "a rule file is named NAME.yaml"
                )
            if sandbox is None and directory != own:
                sandbox = opened.enter_context(Strangers())
            for path in paths:
                if path.suffix == ".yml":
                    raise NsysmapError(str(path), "is named .yml", f"name it {path.stem}.yaml")
                if not path.is_file():
                    raise NsysmapError(
                        str(path),
                        "is not a regular file",
                        "give a folder of rule files (NAME.yaml)",
                    )
                rule = read_rule(path, None if directory == own else sandbox, ready)
                if rule.name in rules:
                    raise NsysmapError(
                        str(path),
                        f"has the same name as {rules[rule.name].source}",
                        "rename one of them",
                    )
                rules[rule.name] = rule
    return tuple(rules.values())


def rule_paths(directory: Path) -> list[Path]:
    """The rule files of a folder and of the folders in it, one a group; deeper ones are not looked
    into.
    """
    try:
        found = [path for path in _listed(directory) if not path.name.startswith(".")]
        inside = [
            path
            for folder in found
            if folder.is_dir()
            for path in _listed(folder)
            if not path.name.startswith(".")
        ]
    except OSError as error:
        raise NsysmapError(
            str(error.filename), f"cannot be read: {error.strerror}", "check its permissions"
        ) from None
    files = [path for path in (*found, *inside) if path.suffix in (".yaml", ".yml")]
    if len(files) > MOST_FILES:
        raise NsysmapError(
            str(directory),
            f"holds {len(files):,} rule files, more than {MOST_FILES:,}",
            "give the folder of one pack",
        )
    return sorted(files, key=lambda path: (path.name, path))


def _listed(folder: Path) -> list[Path]:
    """The content of a folder. Raises NsysmapError if that is too much to be rules."""
    found = list(islice(folder.iterdir(), 10 * MOST_FILES + 1))
    if len(found) > 10 * MOST_FILES:
        raise NsysmapError(
            str(folder), f"holds more than {10 * MOST_FILES:,} files", "give the folder of one pack"
        )
    return found
