"""What holds for every command: quiet failures of one line, exit statuses, a help text that shows
an example.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import click
import pytest

from nsysmap import __version__
from nsysmap.api import analyze
from nsysmap.cli.main import COMMAND_GROUPS, COMMANDS, cli
from tests.places import FIXTURES


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from nsysmap.cli.main import main; main()", *arguments]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(("nsysmap", *path)), command
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from commands(inner, (*path, name))


def test_the_version_names_nsysmap_first_and_then_what_is_installed() -> None:
    lines = run("--version").stdout.splitlines()
    assert lines[0] == f"nsysmap, version {__version__}"
    assert lines[1].startswith("Python 3.")
    assert f"duckdb {version('duckdb')}" in lines[2]
    assert any(line.startswith("optional") and "tensorrt" in line for line in lines)


def test_the_command_ends_at_once_after_what_waits_for_its_end_and_with_its_status() -> None:
    script = """
import atexit, sys
class Freed:
    def __del__(self):
        print("freed")
kept = Freed()
kept.itself = kept
from nsysmap.cli import start, main
main.main = lambda: (atexit.register(print, "at the end"), print("said"), {end})
start.main()
"""
    for end, status in (("sys.exit(3)", 3), ("sys.exit()", 0), ("None", 0)):
        ran = subprocess.run(
            [sys.executable, "-c", script.format(end=end)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ran.stdout, ran.returncode) == ("said\nat the end\n", status)
    failed = subprocess.run(
        [sys.executable, "-c", script.format(end="1 / 0")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert "ZeroDivisionError" in failed.stderr


def test_each_command_is_listed_once_by_what_it_is_for() -> None:
    listed = [name for names in COMMAND_GROUPS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)
    text = run("--help").stdout
    assert all(f"\n{purpose}:\n" in text for purpose in COMMAND_GROUPS)


@pytest.mark.parametrize("name", [name for name, _ in commands(cli)])
def test_every_command_s_help_shows_an_example_and_says_what_it_does(name: str) -> None:
    command = dict(commands(cli))[name]
    assert command.help
    assert "Example" in command.help, f"{name} --help has no example"
    assert "nsysmap" in command.help.split("Example", 1)[1]
    for parameter in command.params:
        assert (
            not isinstance(parameter, click.Option)
            or parameter.help
            or parameter.name in ("help", "version")
        ), parameter.name


@pytest.mark.parametrize(
    "arguments", [("--version",), ("--help",), ("cache", "path"), ("decode", "x")]
)
def test_start_up_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    code = (
        "import sys\n"
        "from nsysmap.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'jsonschema', 'pandas', 'pyarrow', 'duckdb', 'matplotlib', 'networkx'}\n"
        "heavy |= {'rich', 'jinja2', 'yaml', 'sqlite_utils'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_a_wrong_option_is_exit_status_2() -> None:
    done = run("--no-such-option")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--no-such-option" in done.stderr


def test_a_user_s_mistake_is_one_line_and_exit_status_2(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    done = run("cache", "clear", NSYSMAP_CACHE=str(tmp_path / "file"))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"nsysmap: {tmp_path / 'file'}: ")


def test_an_analysis_with_rules_leaves_nothing_on_standard_error() -> None:
    """Libraries complain at the end of a process whose objects they find alive."""
    done = run("analyze", str(FIXTURES / "bert_trt10" / "sync.sqlite"), "--no-cache", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_error() -> None:
    script = "set -o pipefail; \"$1\" -c 'from nsysmap.cli.main import main; main()' --help | true"
    for _ in range(3):
        done = subprocess.run(
            ["bash", "-c", script, "bash", sys.executable],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stderr == ""
        assert done.returncode in (0, 1)


def test_the_cache_is_listed_and_cleared(tmp_path: Path) -> None:
    cached = tmp_path / f"{'0' * 32}-2023.4.4.54-f1.sqlite"
    cached.write_bytes(b"12345")
    listed = run("cache", "list", NSYSMAP_CACHE=str(tmp_path)).stdout
    assert "2023.4.4.54" in listed
    assert cached.name in listed
    assert run("cache", "path", NSYSMAP_CACHE=str(tmp_path)).stdout == f"{tmp_path}\n"
    assert run("cache", "clear", NSYSMAP_CACHE=str(tmp_path)).stdout == "removed 1 file, 5 bytes\n"
    assert list(tmp_path.iterdir()) == []


FIXTURE = FIXTURES / "bert_trt10" / "sync.sqlite"


def shell(line: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """A shell line in which `$NSYSMAP` is nsysmap."""
    told = {
        "NSYSMAP": f"{sys.executable} -c 'from nsysmap.cli.main import main; main()'",
        "REPORT": str(FIXTURE),
        **environment,
    }
    line = line.replace("$NSYSMAP", told["NSYSMAP"])
    return subprocess.run(
        ["bash", "-c", line],
        capture_output=True,
        env={**os.environ, **told},
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "command", ["--help", "decode x", "cache path", 'map "$REPORT"', 'map "$REPORT" -o -']
)
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_failure(command: str, closed: str) -> None:
    done = shell(f"$NSYSMAP {command} {closed}")
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)


def test_no_names_on_a_closed_standard_input() -> None:
    done = shell("$NSYSMAP decode <&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", ["--help", "decode x", 'map "$REPORT" -o -'])
def test_a_full_disk_behind_standard_output_is_one_line(command: str) -> None:
    done = shell(f"$NSYSMAP {command} >/dev/full")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert done.stderr.startswith(
        b"nsysmap: standard output: cannot be written (No space left on device); "
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_failure_that_nobody_can_be_told_is_still_exit_status_2() -> None:
    assert shell("$NSYSMAP map none.sqlite 2>/dev/full").returncode == 2


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_characters_that_the_terminal_lacks_are_escaped(encoding: str) -> None:
    done = shell("$NSYSMAP decode 漢", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    # click writes UTF-8 in place of ASCII
    assert done.stdout.startswith(b"\\u6f22" if encoding == "latin-1" else "漢".encode())


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
@pytest.mark.parametrize(
    "inside",
    [
        "nsysmap.rules.packs.load_rules",
        "nsysmap.rules.sandbox.limits.Sandbox.run",
        "nsysmap.output.json.write_json",
    ],
)
def test_an_interrupt_is_quiet_even_where_a_library_makes_an_error_of_its_own_of_it(
    number: int, status: int, inside: str, tmp_path: Path
) -> None:
    """The signal comes while nsysmap is at work in there, and is turned into a RuntimeError, as
    DuckDB does.
    """
    module, _, name = inside.removesuffix(".run").rpartition(".")
    target = f"{module}.{name}.run" if inside.endswith(".run") else inside
    code = (
        f"import os, {module}\n"
        "from nsysmap.cli.main import main\n"
        "def interrupted(*_, **__):\n"
        f"    try:\n        os.kill(os.getpid(), {int(number)})\n"
        "    except KeyboardInterrupt:\n        raise RuntimeError('Query interrupted') from None\n"
        f"{target} = interrupted\n"
        "main()"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "analyze",
        str(FIXTURE),
        "-o",
        str(tmp_path / "out.json"),
    ]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_an_ignored_interrupt_stays_ignored() -> None:
    """As under nohup."""
    code = (
        "import os, signal, nsysmap.inputs.nsys.export\n"
        "from nsysmap.cli.main import main\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "nsysmap.inputs.nsys.export.cached = lambda: os.kill(os.getpid(), signal.SIGINT) or []\n"
        "main()"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code, "cache", "list"], timeout=60, check=False
        ).returncode
        == 0
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("foo",), "nsysmap: no such command 'foo'; see nsysmap --help"),
        (
            ("analyze",),
            "nsysmap: analyze: missing argument 'REPORT [ENGINE]...'; see nsysmap analyze --help",
        ),
        (
            ("analyze", "--bogus", "x"),
            "nsysmap: analyze: no such option '--bogus'; see nsysmap analyze --help",
        ),
        (
            ("sql", "--csv"),
            "nsysmap: sql: --csv, --json and -o need a SELECT; see nsysmap sql --help",
        ),
        (
            ("plot", "layers", "-o", "x.png"),
            "nsysmap: plot: missing argument 'REPORT [ENGINE]...'; see nsysmap plot --help",
        ),
        (
            ("rules", "lst"),
            "nsysmap: rules: no such command 'lst'. Did you mean 'list'? see nsysmap rules --help",
        ),
    ],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    if "Did you mean" not in line:  # which older releases of click do not say
        assert done.stderr.strip() == line


@pytest.mark.parametrize(
    ("arguments", "heading"),
    [((), "Why is it slow:\n"), (("rules",), "Commands:\n"), (("cache",), "Commands:\n")],
)
def test_a_group_alone_shows_its_commands(arguments: tuple[str, ...], heading: str) -> None:
    assert heading in "".join((run(*arguments).stdout, run(*arguments).stderr))


@pytest.mark.parametrize("report", ["bert_trt85/sync.sqlite", "bert_trt85/sync.nsys-rep"])
def test_decode_explains_every_kernel_of_a_report_the_costliest_first(report: str) -> None:
    done = run("decode", "--json", FIXTURES / report, "__myl_Add")
    assert (done.returncode, done.stderr) == (0, "")
    names = [json.loads(line)["name"] for line in done.stdout.splitlines()]
    told = analyze(FIXTURES / report, rules=[]).tables.kernel_totals
    spent = {row.text("name"): row.integer("time_ns") for row in told}
    assert names.pop() == "__myl_Add"
    assert set(names) == set(spent)
    assert [spent[name] for name in names] == sorted(spent.values(), reverse=True)


def test_decode_copies_a_log_as_it_is_but_for_the_names_in_it() -> None:
    log = b"# a log\n\n\xff 1.2  ampere_sgemm_128x64_tn\r\nlast \x1b[1mline"
    done = subprocess.run(
        [sys.executable, "-c", "from nsysmap.cli.main import main; main()", "decode", "--filter"],
        input=log,
        capture_output=True,
        check=True,
    )
    assert (
        done.stdout
        == b"# a log\n\n\xff 1.2  ampere_sgemm_128x64_tn [cublas gemm kernel: FP32, tile"
        b" 128x64]\r\nlast \x1b[1mline"
    )
    assert shell("printf 'ampere_sgemm_128x64_tn\\n' | $NSYSMAP decode").stdout.startswith(
        b"ampere_sgemm_128x64_tn\n  is "
    )
    assert shell("printf 'a b ampere_sgemm_128x64_tn\\n' | $NSYSMAP decode").stdout.endswith(
        b"[cublas gemm kernel: FP32, tile 128x64]\n"
    )


def test_a_process_that_asked_duckdb_ends_without_a_word_on_standard_error() -> None:
    capture = FIXTURES / "bert_trt10"
    done = run(
        "sql", capture / "sync.sqlite", capture / "engine.json", "SELECT count(*) AS n FROM kernels"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "   n\n2800\n", "")
