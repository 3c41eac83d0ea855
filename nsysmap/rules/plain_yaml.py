"""A YAML file as plain values: no tags, no aliases, no key twice, within limits of size and
depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from nsysmap.core.errors import NsysmapError

if TYPE_CHECKING:
    import yaml

LARGEST_BYTES = 64 * 1024
"""Limit for one rule file: the longest of nsysmap's own has 9 KiB, and libyaml takes 50 ms for this
much.
"""
DEEPEST = 50
"""Mappings and lists inside one another: a rule file needs six, and libyaml's recursion brings the
process down at some thousands.
"""


def plain_yaml(path: Path, *, without: re.Pattern[str] | None = None, own: bool = False) -> object:
    """The file's content, or all of it but the part that the pattern matches; NsysmapError names
    the file and the line.

    Tags are refused because what they ask for can fail in the middle of the library, aliases
    because they blow up.  Files of nsysmap's ``own`` are taken as free of them: the tests read them
    as a stranger's.
    """
    import yaml

    # the first where libyaml is there: ten times as fast
    safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise NsysmapError(
            str(path), f"cannot be read: {error.strerror}", "check its name and permissions"
        ) from None
    if len(raw) > LARGEST_BYTES:
        raise NsysmapError(
            str(path),
            f"is larger than {LARGEST_BYTES // 1024} KiB",
            "a rule file is a page or two of YAML",
        )
    try:
        text = raw.decode("utf-8")
        text = text if without is None else without.sub("", text)
        if own:
            return cast("object", yaml.load(text, Loader=safe))
        _check_events(yaml.parse(text, Loader=safe), path)
        loader = safe(text)
        root = loader.get_single_node()
        if root is None:
            return None
        _check_nodes(root, path)
        return cast("object", loader.construct_document(root))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).split("\n", maxsplit=1)[0]
        where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
        raise NsysmapError(where, f"is not plain YAML: {problem}", "correct it there") from None


def _check_events(events: Iterable[yaml.Event], path: Path) -> None:
    """Refuses aliases, tags, and nesting at which libyaml's own recursion would crash the
    process.
    """
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise NsysmapError(
                _line(event, path),
                "refers to an anchor",
                "write the value out: rule files have no anchors and aliases",
            )
        if getattr(event, "tag", None) is not None:
            raise NsysmapError(
                _line(event, path),
                "is not plain YAML: it has a tag",
                "write the plain value, without !!int and the like",
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise NsysmapError(
                _line(event, path),
                f"is nested more than {DEEPEST} deep",
                "a rule file is a page or two of YAML",
            )


def _line(part: yaml.Event | yaml.Node, path: Path) -> str:
    return f"{path}:{part.start_mark.line + 1}" if part.start_mark is not None else str(path)


def _check_nodes(root: yaml.Node, path: Path) -> None:
    """Refuses duplicate keys: YAML would silently keep the last one."""
    import yaml

    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value]
            for key, value in node.value:
                if isinstance(key.value, str) and keys.count(key.value) > 1:
                    raise NsysmapError(
                        _line(key, path), f"has the key {key.value} twice", "keep one of the two"
                    )
                waiting += [key, value]
        elif isinstance(node, yaml.SequenceNode):
            waiting += node.value
