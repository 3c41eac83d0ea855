"""Analyses all reports of a fleet on Dask, so that a report that is slow, broken or killed fails
alone.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nsysmap.core.ending import descendants_noted
from nsysmap.core.errors import NsysmapError
from nsysmap.core.extras import need_extras
from nsysmap.core.marked_folder import marked_folder
from nsysmap.core.output_file import replacing
from nsysmap.core.records import dataclass
from nsysmap.fleet.child import ReportOutcome, run_task
from nsysmap.fleet.dataset import UNFINISHED, open_dataset, superseded, sweep
from nsysmap.fleet.sources import Source
from nsysmap.text.progress import PartDone
from nsysmap.text.terminal import inert_json

FAILURES = "failures.json"
_AHEAD = 4  # tasks waiting per thread of a worker
_KILLS = 2  # number of workers that a task may lose before it counts as failed
_CONNECT_S = 15  # to reach a scheduler, before the address is taken to be wrong
_WORKER_MEMORY = "1GiB"  # memory of a worker itself; reports are read in separate processes


@dataclass(frozen=True)
class Settings:
    """How the reports are analysed, and where."""

    folder: Path
    engines: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    scheduler: str | None = None  # its address; None for a cluster on this machine
    workers: int = 2  # of that
    timeout_s: float = 600.0  # for a report
    memory_bytes: int = 4 << 30  # for a report


@dataclass(frozen=True)
class FleetRun:
    """The outcomes of the reports, by name."""

    outcomes: tuple[ReportOutcome, ...]

    @property
    def failed(self) -> tuple[ReportOutcome, ...]:
        """The reports that could not be analysed."""
        return tuple(outcome for outcome in self.outcomes if outcome.failed is not None)


def run_fleet(
    sources: Sequence[Source], settings: Settings, tell: Callable[[str], None]
) -> FleetRun:
    """Analyses every report whose rows are not in the dataset; ``tell`` receives the progress.

    Raises NsysmapError if nothing can be run at all; what goes wrong with one report is in its
    outcome.
    """
    open_dataset(settings.folder)
    sweep(settings.folder)
    outcomes: list[ReportOutcome] = []
    failures = 0
    unfinished = settings.folder / f"{UNFINISHED}{os.getpid()}"
    with marked_folder(unfinished) as made, _client(settings) as client:
        for outcome in _outcomes(client, sources, settings, made):
            outcomes.append(outcome)
            failures += outcome.failed is not None
            told = f"{len(outcomes):,} of {len(sources):,} reports"
            told += f", {failures:,} failed" if failures else ""
            tell(PartDone("reports", told, len(outcomes), len(sources)))
    outcomes.sort(key=lambda outcome: outcome.name)
    superseded(
        settings.folder,
        {outcome.name: outcome.key for outcome in outcomes if outcome.key is not None},
    )
    failed = [
        {"report": outcome.name, "why": outcome.failed}
        for outcome in outcomes
        if outcome.failed is not None
    ]
    with replacing(settings.folder / FAILURES) as path:
        path.write_text(
            inert_json(json.dumps(failed, indent=1, ensure_ascii=False)) + "\n", encoding="utf-8"
        )
    return FleetRun(tuple(outcomes))


def _job(source: Source, settings: Settings, unfinished: Path) -> dict[str, Any]:
    return {
        "url": source.url,
        "name": source.named_from(settings.folder),
        "labels": dict(source.labels),
        "folder": str(settings.folder.absolute()),
        "unfinished": str(unfinished.absolute()),
        "engines": [str(Path(path).absolute()) for path in settings.engines],
        "rules": [str(Path(path).absolute()) for path in settings.rules],
    }


def _outcomes(
    client: Any, sources: Sequence[Source], settings: Settings, unfinished: Path
) -> Iterator[ReportOutcome]:
    """The outcomes as they arrive; the scheduler has only some of the tasks at a time, however many
    reports there are.
    """
    from distributed import as_completed
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    waiting = iter(sources)
    names: dict[str, str] = {}

    def submitted() -> Any:
        source = next(waiting, None)
        if source is None:
            return None
        job = _job(source, settings, unfinished)
        future = client.submit(
            run_task,
            job,
            timeout_s=settings.timeout_s,
            memory_bytes=settings.memory_bytes,
            pure=False,
        )
        names[future.key] = job["name"]
        return future

    room = max(1, sum(client.nthreads().values())) * _AHEAD
    first = [future for future in (submitted() for _ in range(room)) if future is not None]
    done = as_completed(first, loop=client.loop)
    for future in done:
        name = names.pop(future.key)
        try:
            yield future.result()
        except KilledWorker:
            yield ReportOutcome(name, None, False, f"its worker was killed, {_KILLS} times over")
        except (OSError, FutureCancelledError) as error:
            yield ReportOutcome(
                name, None, False, f"its worker could not run it ({type(error).__name__}: {error})"
            )
        more = submitted()
        if more is not None:
            done.add(more)


@contextmanager
def _client(settings: Settings) -> Iterator[Any]:
    """A client of the named scheduler, or of a cluster on this machine that ends with the
    client.
    """
    need_extras("nsysmap fleet", "distributed")
    import dask
    from distributed import Client, LocalCluster

    if settings.scheduler is not None:
        try:
            client = Client(settings.scheduler, timeout=_CONNECT_S, set_as_default=False)
        except (OSError, ValueError) as error:
            raise NsysmapError(
                settings.scheduler,
                f"no scheduler answers ({error})",
                "start one with: dask scheduler",
            ) from error
        with client:
            if not client.nthreads():
                raise NsysmapError(
                    settings.scheduler,
                    "has no workers",
                    f"start some with: dask worker {settings.scheduler}",
                )
            yield client
        return
    with (
        descendants_noted(),
        marked_folder(Path(tempfile.gettempdir()) / f"nsysmap-workers.{os.getpid()}") as scratch,
        dask.config.set(
            {
                "distributed.scheduler.allowed-failures": _KILLS - 1,
                "distributed.admin.log-format": "%(message)s",
                "temporary-directory": str(scratch),
            }
        ),
    ):
        cluster = LocalCluster(
            n_workers=settings.workers,
            threads_per_worker=1,
            memory_limit=_WORKER_MEMORY,
            dashboard_address=":0",
            silence_logs=50,
            local_directory=str(scratch),
        )
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client
