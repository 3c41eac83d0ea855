"""The built-in rule files as plain values, in one JSON file beside them.

To parse their YAML takes twenty times as long as to read that file, which was a twentieth of the
first screen's time.  The YAML is the source: docs/make_rules.py makes the file of it, and a rule
whose YAML has changed since is parsed.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict, cast

from nsysmap.rules.plain_yaml import plain_yaml

READY_RULES = "rules.json"

_CASES = re.compile(r"^cases:.*?(?=^[^\s#-]|\Z)", re.DOTALL | re.MULTILINE)


class ReadyRule(TypedDict):
    """One rule file."""

    crc32: int  # of the YAML
    says: object  # all of it but the cases


def ready_rules(folder: Path) -> Mapping[str, ReadyRule]:
    """What is ready of the rule files of this folder, by rule; nothing where that is not there."""
    try:
        return cast("dict[str, ReadyRule]", json.loads((folder / READY_RULES).read_bytes()))
    except (OSError, ValueError):
        return {}


def ready_text(paths: Iterable[Path]) -> str:
    """What is to be ready of these rule files: one line a rule."""
    made = {
        path.stem: ReadyRule(crc32=zlib.crc32(path.read_bytes()), says=own_values(path, {}))
        for path in paths
    }
    lines = (f"{json.dumps(name)}: {json.dumps(rule)}" for name, rule in made.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def own_values(path: Path, ready: Mapping[str, ReadyRule]) -> object:
    """What a rule file of nsysmap's own says, without its cases."""
    held = ready.get(path.stem)
    if held is not None and zlib.crc32(path.read_bytes()) == held["crc32"]:
        return held["says"]
    return plain_yaml(path, without=_CASES, own=True)
