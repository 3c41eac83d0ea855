"""Fails when the wheel lacks a rule, a data file or the typing marker that the checkout has, or
holds what no user needs.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def expected() -> set[str]:
    """Names, inside the wheel, of every file of the package and of every rule."""
    package = {
        path
        for path in (ROOT / "nsysmap").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    rules = {path for path in (ROOT / "rules").rglob("*") if path.is_file()}
    if not any(path.suffix in (".yaml", ".yml") for path in rules):
        sys.exit("rules/ holds no rule")
    return {str(path.relative_to(ROOT)) for path in package} | {
        f"nsysmap/rule_files/{path.relative_to(ROOT / 'rules')}" for path in rules
    }


def main() -> None:
    """Compare the wheel named on the command line with the checkout."""
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    missing, extra = sorted(expected() - held), sorted(held - expected())
    if missing or extra:
        sys.exit(f"{Path(sys.argv[1]).name}: missing {missing}, not in the checkout {extra}")
    print(f"{Path(sys.argv[1]).name}: {len(held)} files, as in the checkout")


if __name__ == "__main__":
    main()
