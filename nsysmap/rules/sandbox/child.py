"""The process in which untrusted statements run (see `strangers`): requests come from standard
input, answers go to standard output.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from nsysmap.core.schema import RULE_TABLES
from nsysmap.rules.sandbox.limits import LimitError, QueryError, Sandbox
from nsysmap.rules.sandbox.strangers import plain, receive, statement

if TYPE_CHECKING:
    import pyarrow

_LARGEST = 1 << 40  # bytes of a request: the parent is to be trusted
# of processor time beyond a statement's limit on two threads: should nsysmap itself be gone
_CPU_S = 30


def _main(memory_bytes: int) -> int:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _limit_memory(memory_bytes)
    tables: dict[int, pyarrow.Table] = {}
    with Sandbox(RULE_TABLES) as sandbox:
        while (message := receive(sys.stdin.buffer, longest=_LARGEST)) is not None:
            request = json.loads(message)
            if request["do"] == "table":
                tables[request["number"]] = _table(receive(sys.stdin.buffer, longest=_LARGEST))
                continue
            _limit_processor(float(request.get("time_limit_s", 10)))
            try:
                answer = _answer(request, sandbox, tables)
            except QueryError as error:
                answer = {"error": str(error)}
            except LimitError as error:
                answer = {"limit": str(error)}
            except MemoryError:
                answer = {
                    "limit": (
                        f"needs more memory than a rule may have ({memory_bytes / (1 << 30):g} GiB)"
                    )
                }
            except RecursionError:
                answer = {"error": "is nested too deeply"}
            _send(answers, answer)
    return 0


def _answer(
    request: Mapping[str, Any], sandbox: Sandbox, tables: Mapping[int, pyarrow.Table]
) -> dict[str, object]:
    if request["do"] == "parse":
        return {"query": plain(sandbox.parse(request["sql"]))}
    if request["do"] == "columns":
        return {"columns": sandbox.columns(statement(request["query"]), request["parameters"])}
    if request["do"] == "start":
        return {}
    held = {name: tables[number] for name, number in request["tables"].items()}
    answer = sandbox.run(
        statement(request["query"]),
        held,
        request["parameters"],
        time_limit_s=request["time_limit_s"],
        max_rows=request["max_rows"],
    )
    return {
        "columns": answer.columns,
        "rows": [[_plain(value) for value in row] for row in answer.rows],
    }


def _plain(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return (
        {"decimal": str(value)} if isinstance(value, Decimal) else {"other": type(value).__name__}
    )


def _table(message: bytes | None) -> pyarrow.Table:
    import pyarrow as pa

    return pa.ipc.open_stream(message or b"").read_all()


def _send(answers: IO[bytes], answer: Mapping[str, object]) -> None:
    message = json.dumps(answer).encode()
    answers.write(len(message).to_bytes(8, "little"))
    answers.write(message)
    answers.flush()


def _limit_memory(memory_bytes: int) -> None:
    """Limits this process's memory where the system has such limits: Windows has none."""
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(
        resource.RLIMIT_AS,
        (memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard), hard),
    )
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_processor(seconds: float) -> None:
    """The system ends the process some time after the statement's limit, whatever it is doing."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + 2 * seconds) + _CPU_S, hard)
    )


if __name__ == "__main__":
    raise SystemExit(_main(int(sys.argv[1])))
