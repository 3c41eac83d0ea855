"""Runs nsysmap where optional packages are not installed.

usage: hidden_extras.py MODULE,MODULE... ARGUMENTS OF NSYSMAP...
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence

hidden = frozenset(sys.argv[1].split(","))


class Hidden(importlib.abc.MetaPathFinder):
    """Finds none of the hidden modules."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        """Nothing; ModuleNotFoundError for a hidden module."""
        del path, target
        if fullname.partition(".")[0] in hidden:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


if __name__ == "__main__":
    sys.meta_path.insert(0, Hidden())
    sys.argv[:2] = ["nsysmap"]
    from nsysmap.cli.main import main

    main()
