"""Completion for bash, zsh and fish, and manual pages: both made from the commands themselves."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from nsysmap.cli.main import cli
from nsysmap.cli.man import manual_pages
from tests.commands import run
from tests.places import ROOT

PAGES = dict(manual_pages(cli))


def completed(shell: str, words: str) -> list[str]:
    """What the shell is offered for the last of these words."""
    environment = {
        **os.environ,
        "_NSYSMAP_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": (
            words.rsplit(" ", maxsplit=1)[-1] if shell == "fish" else str(words.count(" "))
        ),
    }
    command = [sys.executable, "-c", "from nsysmap.cli.main import main; main()"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_options_choices_and_paths_are_completed(shell: str) -> None:
    assert any("analyze" in line for line in completed(shell, "nsysmap ana"))
    assert any("--fail-on" in line for line in completed(shell, "nsysmap analyze --fail"))
    assert any("warning" in line for line in completed(shell, "nsysmap analyze --fail-on warn"))
    for words in (
        "nsysmap analyze rep",
        "nsysmap graph eng",
        "nsysmap map -o out",
        "nsysmap sql rep",
        "nsysmap record --engine eng",
    ):
        assert any(re.match(r"file\b", line) for line in completed(shell, words)), words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_changes_rules_tables_edits_and_kinds_of_plot_are_completed(shell: str) -> None:
    for words, name in (
        ("nsysmap what-if run.nsys-rep --change cuda", "cuda-graph"),
        ("nsysmap rules show gap", "gap-between-graphs"),
        ("nsysmap plot run.nsys-rep engine.json id", "idle"),
        ("nsysmap sql run.nsys-rep engine.json memc", "memcpys"),
        ("nsysmap fix run.nsys-rep engine.json attention-n", "attention-not-fused"),
    ):
        assert any(name in line for line in completed(shell, words)), words
    assert any(re.match(r"file\b", line) for line in completed(shell, "nsysmap plot run"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str, capfd: pytest.CaptureFixture[str]) -> None:
    done = run(capfd, "completion", shell)
    assert done.status == 0
    assert f"_NSYSMAP_COMPLETE={shell}_complete" in done.out


WITH_THE_SCRIPT = {  # what each shell is told, and says, of the word that is begun
    "bash": (
        "source ./complete; COMP_WORDS=(nsysmap what); COMP_CWORD=1; _nsysmap_completion nsysmap;"
        ' echo "${COMPREPLY[@]}"'
    ),
    "zsh": (
        'compdef() { :; }; _describe() { print -l "${(@P)3}"; }; source ./complete; words=(nsysmap'
        " what); CURRENT=2; _nsysmap_completion"
    ),
    "fish": 'source ./complete; complete -C "nsysmap what"',
}


@pytest.mark.parametrize("shell", WITH_THE_SCRIPT)
def test_the_shell_itself_completes_with_the_script(
    shell: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    (tmp_path / "nsysmap").write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from nsysmap.cli.main import main; main()' \"$@\"\n"
    )
    (tmp_path / "nsysmap").chmod(0o755)
    (tmp_path / "complete").write_text(run(capfd, "completion", shell).out)
    quiet = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[shell]
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
    }
    command = [shell, quiet, "-c", WITH_THE_SCRIPT[shell]]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert re.match(r"what-if\b", done.stdout)
    assert len(done.stdout.splitlines()) == 1


def test_the_page_on_shells_says_how_for_each() -> None:
    page = (ROOT / "docs" / "shell.md").read_text()
    assert all(f"nsysmap completion {shell}" in page for shell in ("bash", "zsh", "fish"))


def every_command(
    command: click.Command, name: str = "nsysmap"
) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for word, inner in command.commands.items():
            yield from every_command(inner, f"{name}-{word}")


def test_every_command_has_a_page_with_its_options_and_examples() -> None:
    commands = dict(every_command(cli))
    assert set(PAGES) == set(commands)
    for name, command in commands.items():
        page = PAGES[name].replace("\\-", "-")
        assert ".SH EXAMPLES\n.nf\n" in page, name
        assert ".B -h, --help\n" in page, name
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.opts[-1] in page, (
                name,
                parameter.name,
            )


def test_no_line_of_a_page_is_a_request_that_is_not_ours() -> None:
    known = {".TH", ".SH", ".TP", ".B", ".PP", ".nf", ".fi"}
    for name, page in PAGES.items():
        assert [
            line
            for line in page.splitlines()
            if line.startswith((".", "'")) and line.split()[0] not in known
        ] == [], name
        assert "\b" not in page
        assert "\\" not in page.replace("\\-", "").replace("\\e", "").replace("\\&", "")


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_groff_formats_every_page_without_a_warning() -> None:
    for name, page in PAGES.items():
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-K", "utf8"],
            input=page,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == "", name
        assert "Wrong input" in " ".join(done.stdout.split())


def test_pages_are_printed_and_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(capfd, "man", "rules test").out == PAGES["nsysmap-rules-test"]
    assert run(capfd, "man", "-o", tmp_path / "man1").status == 0
    assert {path.stem for path in (tmp_path / "man1").iterdir()} == set(PAGES)
    assert (
        run(capfd, "man", "nothing").status,
        run(capfd, "man", "analyze", "-o", tmp_path).status,
    ) == (2, 2)
    (tmp_path / "file").touch()
    assert "cannot be written" in run(capfd, "man", "-o", tmp_path / "file").err
