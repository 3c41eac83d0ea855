"""What holds for the repository as a whole: links resolve, no machine's own places are named,
README and CI agree.
"""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import nsysmap
from tests.places import ROOT

BINARY = {".nsys-rep", ".sqlite", ".png", ".parquet", ".plan", ".npz"}
HOSTS = [
    f"{name}.{end}"
    for name, end in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("debian", "org/debian"),
    )
]
MACHINE = [
    re.escape(word)
    for word in (
        "/wo" + "rk/",
        "--index" + "-url",
        "extra-index" + "-url",
        "trusted" + "-host",
        *HOSTS,
    )
]


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [
        path
        for name in listed.stdout.decode().split("\0")
        if name and (path := ROOT / name).is_file()
    ]


def texts() -> list[tuple[Path, str]]:
    return [
        (path, path.read_text(encoding="utf-8")) for path in tracked() if path.suffix not in BINARY
    ]


def markdown() -> list[Path]:
    return [path for path in tracked() if path.suffix == ".md"]


def slugs(text: str) -> set[str]:
    """The anchors that a markdown file's headings make."""
    headings = re.findall(
        r"^#+\s+(.*)$",
        re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL),
        re.MULTILINE,
    )
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings
    }


def readme_command(marker: str) -> str:
    found = re.findall(
        rf"^<!-- ci: {marker} -->\n```sh\n(.*?)\n```",
        (ROOT / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
    assert len(found) == 1, marker
    return str(found[0])


def test_no_file_names_a_machine_s_own_places_or_a_package_host() -> None:
    pattern = re.compile("|".join(MACHINE))
    told = [
        (path.relative_to(ROOT), match.group())
        for path, text in texts()
        for match in pattern.finditer(text)
    ]
    # how the lock was made is told with the options that keep hosts out of it
    allowed = {"requirements-dev.txt", ".ci/install-nsys"}
    assert [
        found for found in told if not (str(found[0]) in allowed and found[1].startswith("--"))
    ] == []


def test_only_tests_look_for_material_outside_the_repository() -> None:
    pattern = re.compile(r"(?<![\w/.-])(?:\.\./)?share" + "d/")
    told = [
        str(path.relative_to(ROOT))
        for path, text in texts()
        if pattern.search(text) and ROOT / "tests" not in path.parents
    ]
    assert told == []


def test_every_markdown_link_resolves() -> None:
    broken = []
    for path in markdown():
        text = re.sub(
            r"^```.*?^```|`[^`\n]*`",
            "",
            path.read_text(encoding="utf-8"),
            flags=re.MULTILINE | re.DOTALL,
        )
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists() or ROOT not in (file, *file.parents):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
            elif (
                anchor
                and file.suffix == ".md"
                and anchor not in slugs(file.read_text(encoding="utf-8"))
            ):
                broken.append(f"{path.relative_to(ROOT)}: {target}: no such heading")
    assert broken == []


@pytest.mark.parametrize("marker", ["main-job", "tests"])
def test_the_readme_s_command_is_one_line_that_ci_runs_as_it_stands(marker: str) -> None:
    assert "\n" not in readme_command(marker)
    assert f"\nreadme {marker}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_s_main_job_runs_on_files_that_are_shipped() -> None:
    named = re.findall(r"fixtures/\S+", readme_command("main-job"))
    assert named
    assert [name for name in named if ROOT / name not in tracked()] == []


def test_every_locked_dependency_is_pinned_and_every_dependency_is_locked() -> None:
    import tomllib

    lines = [
        line
        for line in (ROOT / "requirements-dev.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[\w.]+", line)] == []
    locked = {line.split("==")[0] for line in lines}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {
        re.split(r"[><=\[; ]", entry)[0].lower()
        for entry in (*project["dependencies"], *project["optional-dependencies"]["dev"])
    }
    assert wanted - locked == set()


def test_every_fixture_folder_is_described() -> None:
    described = (ROOT / "fixtures" / "README.md").read_text(encoding="utf-8")
    held = {
        path.relative_to(ROOT / "fixtures").parts[0]
        for path in tracked()
        if ROOT / "fixtures" in path.parents
    } - {"README.md"}
    assert (
        sorted(
            name for name in held if f"]({name})" not in described and f"`{name}`" not in described
        )
        == []
    )


def test_every_module_says_its_reason_in_its_first_line() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path, text in texts()
        if path.suffix == ".py" and text.strip() and not text.startswith('"""')
    ]
    assert silent == []


def test_the_architecture_page_names_every_module() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = dict(re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page, re.MULTILINE))
    package = ROOT / "nsysmap"
    folders = {
        ".".join(path.parent.relative_to(package).parts): path.parent
        for path in package.rglob("*/__init__.py")
    }
    assert sorted(rooms) == sorted(folders)
    told = {name: set(re.findall(r"`(\w+)`", rooms[name])) for name in folders}
    held = {
        name: {path.stem for path in folder.glob("*.py")} - {"__init__"}
        for name, folder in folders.items()
    }
    assert {name: held[name] ^ told[name] for name in held if held[name] ^ told[name]} == {}


def test_a_class_name_means_one_thing() -> None:
    """The Python API's Analysis is the rooms' own, which also shows itself."""
    homes: dict[str, list[str]] = {}
    for path in sorted((ROOT / "nsysmap").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    del homes["Analysis"]
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def test_the_version_is_that_of_the_citation_and_forms_are_yaml() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(citation["version"]) == nsysmap.__version__
    for path in (ROOT / ".github").rglob("*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        if path.parent.name == "ISSUE_TEMPLATE" and path.stem != "config":
            assert {"name", "description", "body"} <= form.keys(), path


def test_pre_commit_runs_the_quick_checks_of_ci() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    entries = [hook["entry"] for repo in config["repos"] for hook in repo["hooks"]]
    for check in ("ruff check", "ruff format --check", "mypy", "lint-imports"):
        assert any(f"bin/{check}" in entry for entry in entries), check


def test_no_parameter_is_a_tuple_of_unlike_things() -> None:
    """Arguments have names; a pair of a mapping, as a key function gets it, is one thing."""
    found = []
    for path in sorted((ROOT / "nsysmap").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                found += [
                    f"{path.relative_to(ROOT)}: {node.name}({one.arg})"
                    for one in every
                    if one.annotation is not None and _unlike(one.annotation)
                ]
    assert found == ["nsysmap/output/json.py: _is_deep_pair(pair)"]


def _unlike(annotation: ast.expr) -> bool:
    """Whether it is a tuple of values of several types, or may be one."""
    if isinstance(annotation, ast.BinOp):
        return _unlike(annotation.left) or _unlike(annotation.right)
    if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "tuple"):
        return False
    held = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
    return len({ast.unparse(one) for one in held} - {"..."}) > 1
