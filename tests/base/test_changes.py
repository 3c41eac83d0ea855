"""What-if's changes are declared once, and every reader knows each."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import nsysmap
from nsysmap.advice.paste import CHANGES as WAYS
from nsysmap.comparison.predictions import MADE
from nsysmap.core.changes import CHANGES
from nsysmap.core.idle_causes import IDLE_CAUSES
from nsysmap.rules.packs import builtin_rules_dir, load_rules
from nsysmap.whatif.plans import PLANS

PACKAGE = Path(nsysmap.__file__).parent
BY_NAME = {
    PACKAGE / "core" / "changes.py",
    PACKAGE / "whatif" / "plans.py",
    PACKAGE / "advice" / "paste.py",
    PACKAGE / "comparison" / "predictions.py",
}
NEW_CHANGE = """
import sys
from nsysmap.core import changes

changes.CHANGES["fewer-waits"] = changes.DeclaredChange(
    "fewer-waits", "wait less often", how="wait only where a result is used",
    removes=("sync", "host", "launch"),
)
from nsysmap.whatif import plans
from nsysmap.whatif.changes import without_waits
plans.PLANS["fewer-waits"] = lambda model, change: plans.Plan(
    (lambda timeline, machine: without_waits(timeline),), "The host waits once."
)
from nsysmap.cli.main import main
for arguments in list(sys.argv[1:]):
    sys.argv = ["nsysmap", *arguments.split()]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code, arguments
"""


def test_a_new_change_is_an_entry_and_its_plan_and_every_reader_knows_it(tmp_path: Path) -> None:
    report, engine = "fixtures/bert_trt10/sync.nsys-rep", "fixtures/bert_trt10/engine.json"
    names = ("a.html", "a.md", "a.json")
    outputs = " ".join(f"-o {tmp_path / name}" for name in names)
    done = subprocess.run(
        [
            *(sys.executable, "-c", NEW_CHANGE),
            f"analyze {report} {engine} --full {outputs}",
            f"plot {report} {engine} what-if -o {tmp_path / 'a.svg'}",
            f"what-if {report} {engine} --change fewer-waits",
            "what-if --help",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wait less often" in done.stdout
    assert "one-graph (of all that is launched)" in " ".join(done.stdout.split())
    assert "join-kernels or fewer-waits" in " ".join(done.stdout.split()).replace("- ", "-")
    told = {name: (tmp_path / name).read_text("utf-8") for name in (*names, "a.svg")}
    for name, text in told.items():
        assert "fewer-waits" in text, name
    changes = {row["change"] for row in json.loads(told["a.json"])["whatif"]}
    assert "fewer-waits" in changes


def test_every_change_has_a_plan_and_what_to_do() -> None:
    assert set(PLANS) == set(WAYS) == set(CHANGES)
    assert set(MADE) <= set(CHANGES)
    for change in CHANGES.values():
        assert set(change.removes) | set(change.also_shortens) <= set(IDLE_CAUSES), change.name
        assert set(change.instead) <= set(CHANGES), change.name
        assert any(WAYS[change.name].ways.values()), change.name


def test_changes_name_rules_that_exist() -> None:
    rules = {rule.name: rule for rule in load_rules([builtin_rules_dir()])}
    for change in CHANGES.values():
        assert {*change.prices, *change.stands_in_for, *change.judged_by} <= set(rules), change.name
        assert change.prices_group in (None, *(rule.group for rule in rules.values()))


def test_the_page_about_what_if_explains_each_change() -> None:
    page = Path("docs/what-if.md").read_text("utf-8")
    assert not [name for name in CHANGES if f"`{name}`" not in page]


def test_nobody_else_keeps_a_list_of_changes() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in PACKAGE.rglob("*.py")
        if path not in BY_NAME
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict)
        and len(names := _names(node)) >= 2
        and set(names) <= set(CHANGES)
    ]
    assert not found


def _names(node: ast.Tuple | ast.List | ast.Set | ast.Dict) -> list[str]:
    parts = node.keys if isinstance(node, ast.Dict) else node.elts
    values = [one.value for one in parts if isinstance(one, ast.Constant)]
    return [one for one in values if isinstance(one, str)] if len(values) == len(parts) else []
