"""Writes docs/rules/, rules/rules.json and docs/report.schema.json out of the rule files and the
declared tables: python docs/make_rules.py
"""

from __future__ import annotations

import json
from pathlib import Path

from nsysmap.output.json import schema
from nsysmap.output.rules import pages
from nsysmap.rules.packs import builtin_rules_dir, load_rules, rule_paths
from nsysmap.rules.ready_rules import READY_RULES, ready_text


def main() -> None:
    """Replace the pages; those of rules that are gone are removed."""
    folder = Path(__file__).parent / "rules"
    folder.mkdir(exist_ok=True)
    rules = builtin_rules_dir()
    (rules / READY_RULES).write_text(ready_text(rule_paths(rules)), encoding="utf-8")
    made = pages(load_rules([rules]))
    for path in folder.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder.parent / "report.schema.json").write_text(
        json.dumps(schema(), indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
