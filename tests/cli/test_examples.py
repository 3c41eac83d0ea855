"""The examples in every help text run as they stand, on files of the names that they use."""

from __future__ import annotations

import io
import shlex
import shutil
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import click
import pytest

from nsysmap.cli.main import cli
from tests.commands import run
from tests.places import FIXTURES, ROOT

BERT, SPLIT, NEWER, DECODE = (
    FIXTURES / name for name in ("bert_trt10", "bert_split_trt10", "newer", "decode_loop")
)
FILES = {
    "report.nsys-rep": BERT / "sync.sqlite", "engine.json": BERT / "engine.json",
    "profile.json": BERT / "profile.json",
    "old.nsys-rep": BERT / "sync.sqlite", "new.nsys-rep": BERT / "graph.sqlite",
    "old.json": BERT / "engine.json",
    "new.json": BERT / "engine.json", "old1.nsys-rep": BERT / "sync.sqlite",
    "old2.nsys-rep": NEWER / "bert_sync.sqlite",
    "new1.nsys-rep": BERT / "graph.sqlite", "new2.nsys-rep": NEWER / "bert_graph.sqlite",
    "old.engine.json": BERT / "engine.json",
    "old.profile.json": BERT / "profile.json", "new.profile.json": SPLIT / "profile.json",
    "new.engine.json": SPLIT / "engine.json",
    "budget.toml": ROOT / "examples" / "gate" / "budget.toml",
    "context.json": DECODE / "context.engine.json",
    "generation.json": DECODE / "generation.engine.json",
    "a.nsys-rep": BERT / "sync.sqlite", "a.json": BERT / "engine.json",
    "b.nsys-rep": BERT / "graph.sqlite", "b.json": BERT / "engine.json",
    "c.nsys-rep": SPLIT / "sync.nsys-rep", "c.json": SPLIT / "engine.json",
    "fp32.engine.json": FIXTURES / "real_trt" / "bert_fp32.engine.json",
    "fp16.engine.json": FIXTURES / "real_trt" / "bert_eager.engine.json",
    "fp8.engine.json": FIXTURES / "real_trt" / "bert_fp8.engine.json",
}  # fmt: skip
"""An export is read under any name: what a file is, its content says."""
ELSEWHERE = (
    "nsysmap record",
    "nsysmap fleet",
    "nsysmap mcp",
    "nsysmap fix",
    "nsysmap open",
    "nsys stats",
    "du",
    "echo",
)
"""Examples that want nsys, worker processes, a model, a browser or a shell's own start-up file.
They have tests of their own.
"""


def examples(command: click.Command) -> Iterator[str]:
    told = (command.help or "").split("Example", 1)[1].splitlines()[1:]
    yield from (line.strip() for line in told if line.strip())
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            yield from examples(inner)


def test_examples_are_found_in_every_help_text() -> None:
    assert len(list(examples(cli))) > 40


@pytest.mark.parametrize(
    "line", sorted({one for one in examples(cli) if not one.startswith(ELSEWHERE)})
)
def test_an_example_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, source in FILES.items():
        if name in line:
            shutil.copyfile(
                (
                    DECODE / "sync.nsys-rep"
                    if name == "report.nsys-rep" and "context.json" in line
                    else source
                ),
                tmp_path / name,
            )
    for build, folder in (("fp16", BERT), ("split", SPLIT)):
        (tmp_path / "builds" / build).mkdir(parents=True)
        for name in ("sync.nsys-rep", "engine.json"):
            shutil.copyfile(folder / name, tmp_path / "builds" / build / name)
    (tmp_path / "our-rules").mkdir()
    rule = (
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    )
    (tmp_path / "our-rules" / "long-memset.yaml").write_text(rule, encoding="utf-8")
    (tmp_path / "names.txt").write_text("__myl_AddSqr\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if "base.json" in line and "-o base.json" not in line:
        assert (
            run(capfd, "baseline", "report.nsys-rep", "engine.json", "-o", "base.json").status == 0
        )
    told = line.replace("~", str(tmp_path)).replace("COMMAND", "analyze")
    words = shlex.split(told, comments=True)
    ends = [words.index(sign) for sign in ("|", "<", ">") if sign in words]
    if "<" in words:
        monkeypatch.setattr(
            sys,
            "stdin",
            io.TextIOWrapper(io.BytesIO(Path(words[words.index("<") + 1]).read_bytes())),
        )
    arguments = words[1 : min(ends, default=len(words))]
    done = run(capfd, *arguments)
    assert done.status == 0, done.err
    written = [Path(name) for option, name in pairwise(arguments) if option in ("-o", "--trex")]
    assert all(path.exists() for path in written)
    # which is empty
    assert done.out or done.err or written or line.startswith("nsysmap cache list")
