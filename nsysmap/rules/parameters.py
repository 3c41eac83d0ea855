"""The parameters of rules: from a settings file, from a command line, and put into the rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.rules.rule_file import Rule, typed
from nsysmap.rules.sandbox.limits import Value
from nsysmap.rules.settings_files import SETTINGS

Params = Mapping[str, Mapping[str, Value]]

LARGEST_BYTES = 1 << 20
"""Limit for a settings file: pyproject.toml files of large projects have some 50 kB, and the TOML
reader takes gigabytes for odd megabytes.
"""
MOST_KEY_PARTS = 50
"""Limit for the parts of a dotted key: the TOML reader needs memory for the square of them, 3.8 GB
for 50,000.
"""
_PARTS = re.compile(rf"[^=#]*?(?:\.[^=#.]*){{{MOST_KEY_PARTS},}}")


def load_params(place: Path) -> dict[str, dict[str, Value]]:
    """Rule parameters set in a .toml file, or in the nsysmap.toml and pyproject.toml of a folder
    (the first goes before the second).
    """
    params: dict[str, dict[str, Value]] = {}
    named = [place / name for name in reversed(SETTINGS)] if place.is_dir() else [place]
    for path in named:
        if place.is_dir() and not path.is_file():
            continue
        section = "tool.nsysmap.rules" if path.name == "pyproject.toml" else "rules"
        content: object = read_toml(
            path,
            "rule parameters are a few lines",
            needed="nsysmap" if path.name == "pyproject.toml" else "",
        )
        for key in section.split("."):
            content = content.get(key, {}) if isinstance(content, dict) else content
        if not isinstance(content, dict):
            raise NsysmapError(
                f"{path}: {section}", "is not a table", f"write [{section}.RULE], then NAME = VALUE"
            )
        for rule, values in content.items():
            if not isinstance(values, dict) or not all(
                isinstance(value, bool | int | float | str) for value in values.values()
            ):
                raise NsysmapError(
                    f"{path}: {section}.{rule}",
                    "must hold parameters",
                    f"write [{section}.{rule}], then NAME = VALUE",
                )
            params.setdefault(rule, {}).update(values)
    return params


def read_toml(path: Path, hint: str, *, needed: str = "") -> dict[str, object]:
    """The file's content; nothing if it does not hold the word ``needed``, so that somebody else's
    broken file does not matter.

    NsysmapError, with the hint at what is expected, where it is no TOML, or such that reading it
    takes too much.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise NsysmapError(str(path), "there is no such file", "check the path") from None
    except OSError as error:
        raise NsysmapError(
            str(path), f"cannot be read: {error.strerror}", "check its name and permissions"
        ) from None
    if needed.encode() not in raw:
        return {}
    if len(raw) > LARGEST_BYTES:
        raise NsysmapError(str(path), f"is larger than {LARGEST_BYTES >> 20} MiB", hint)
    import tomllib

    try:
        text = raw.decode("utf-8")
        deep = next(
            (
                number
                for number, line in enumerate(text.splitlines(), start=1)
                if _PARTS.match(line)
            ),
            None,
        )
        if deep is not None:
            raise NsysmapError(
                f"{path}:{deep}", f"has a key of more than {MOST_KEY_PARTS} parts", hint
            )
        return tomllib.loads(text)
    except RecursionError:
        raise NsysmapError(str(path), "is nested too deeply", hint) from None
    except UnicodeDecodeError:
        raise NsysmapError(str(path), "is not a text file", hint) from None
    except ValueError as error:  # not TOML, or a number of thousands of digits
        told = (
            "contains a number that is too long"
            if "int_max_str_digits" in str(error)
            else f"is not TOML: {error}"
        )
        raise NsysmapError(str(path), told, hint) from None


def parse_params(texts: Sequence[str]) -> dict[str, dict[str, Value]]:
    """Rule parameters as given on a command line: RULE.NAME=VALUE."""
    params: dict[str, dict[str, Value]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        rule, dot, name = key.strip().partition(".")
        if not (equals and dot and rule and name):
            raise NsysmapError(
                f"--param {text}",
                "is not RULE.NAME=VALUE",
                "write it like launch-bound.min_share=0.1",
            )
        params.setdefault(rule, {})[name] = value.strip()
    return params


def with_params(rules: Sequence[Rule], params: Params) -> tuple[Rule, ...]:
    """The rules with these values in place of their defaults.  Raises NsysmapError if there is no
    such rule or parameter.
    """
    by_name = {rule.name: rule for rule in rules}
    for name, values in params.items():
        if name not in by_name:
            raise NsysmapError(
                f"parameter of {name}", "there is no such rule", "see `nsysmap rules list`"
            )
        rule = by_name[name]
        for key in values:
            if key not in rule.params:
                raise NsysmapError(
                    f"parameter {name}.{key}",
                    "there is no such parameter",
                    f"{name} has {', '.join(rule.params) or 'none'}",
                )
        changed = {
            key: typed(value, rule.params[key], f"parameter {name}.{key}")
            for key, value in values.items()
        }
        by_name[name] = replace(rule, params={**rule.params, **changed})
    return tuple(by_name.values())
