"""`nsysmap open` hands one file to the Perfetto UI, once, and to nobody else."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner

from nsysmap.cli.main import cli
from nsysmap.core.errors import NsysmapError
from nsysmap.output.perfetto import local_server
from nsysmap.output.perfetto.local_server import UI, TraceServer


@pytest.fixture
def served(tmp_path: Path) -> Iterator[TraceServer]:
    trace = tmp_path / "a b.perfetto-trace"
    trace.write_bytes(b"the trace")
    with TraceServer(trace, port=0) as server:
        yield server


def _address(server: TraceServer) -> str:
    query = urlsplit(server.link).fragment.partition("?")[2]
    (address,) = parse_qs(query)["url"]
    return address


def test_the_ui_gets_the_file_and_the_server_ends(served: TraceServer) -> None:
    ended: list[bool] = []
    waiting = threading.Thread(target=lambda: ended.append(served.serve(limit_s=30)))
    waiting.start()
    with urllib.request.urlopen(served.link.partition("url=")[2]) as answer:
        assert answer.read() == b"the trace"
        assert answer.headers["Access-Control-Allow-Origin"] == UI
    waiting.join(timeout=30)
    assert ended == [True]


def test_browsers_may_ask_first(served: TraceServer) -> None:
    waiting = threading.Thread(target=served.handle_request)
    waiting.start()
    asked = urllib.request.Request(served.link.partition("url=")[2], method="OPTIONS")
    with urllib.request.urlopen(asked) as answer:
        assert answer.headers["Access-Control-Allow-Private-Network"] == "true"
    waiting.join(timeout=30)
    assert not served.fetched


@pytest.mark.parametrize("path", ["/", "/x/a%20b.perfetto-trace", "/../../etc/passwd"])
def test_no_other_address_has_anything(served: TraceServer, path: str) -> None:
    waiting = threading.Thread(target=served.handle_request)
    waiting.start()
    host = "http://127.0.0.1:" + str(served.server_address[1])
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(host + path)
    waiting.join(timeout=30)
    assert not served.fetched


def test_two_servers_have_different_addresses_and_only_this_machine_reaches_them(
    served: TraceServer,
) -> None:
    with TraceServer(served.path, port=0) as other:
        assert urlsplit(_address(other)).path != urlsplit(_address(served)).path
        assert other.server_address[0] == "127.0.0.1"


def test_a_port_in_use_is_an_error_that_says_what_to_do(served: TraceServer) -> None:
    taken = served.server_address[1]
    assert isinstance(taken, int)
    with pytest.raises(NsysmapError) as told:
        TraceServer(served.path, port=taken)
    assert UI in str(told.value)


def test_nobody_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "a.perfetto-trace"
    trace.touch()
    monkeypatch.setattr(local_server.TraceServer, "timeout", 0.05)
    monkeypatch.setattr(local_server, "PORT", 0)
    done = CliRunner().invoke(
        cli, ["open", str(trace), "--no-browser", "--wait", "0.1"], standalone_mode=False
    )
    assert done.return_value == 1
    assert done.output.startswith(f"{UI}/#!/?url=http://127.0.0.1:")


@pytest.mark.parametrize("name", ["missing.perfetto-trace", "report.nsys-rep"])
def test_what_is_no_trace_is_refused(tmp_path: Path, name: str) -> None:
    done = CliRunner().invoke(cli, ["open", str(tmp_path / name)], standalone_mode=False)
    assert isinstance(done.exception, NsysmapError)
