"""What to capture or export next, where the trace or the lack of an engine file leaves something open."""

from __future__ import annotations

from collections.abc import Mapping

from nsysmap.base.table import Table
from nsysmap.engine.program import Program
from nsysmap.summary.model import NextStep
from nsysmap.summary.paste import ENGINE_FILE
from nsysmap.summary.ways import how
from nsysmap.trace.lacking import NOTHING_RECORDED


def _nothing_recorded(tables: Mapping[str, Table]) -> bool:
    """Whether CUDA was traced, and the program did nothing of it."""
    return any(row.text("text").startswith(NOTHING_RECORDED) for row in tables["notes"])


def next_steps(tables: Mapping[str, Table], program: Program) -> tuple[NextStep, ...]:
    """What to capture or export for what the trace, or the lack of an engine file, leaves open."""
    capture, steps = tables["capture"].only(), []
    gpu_work = any(capture.integer(name) for name in ("kernels", "memcpys", "memsets", "cuda_graph_traces", "graph_launches"))
    if capture.text("cuda_graph_trace") == "graph" and gpu_work:
        steps.append(
            NextStep(
                "capture again, because the kernels inside CUDA graphs are hidden",
                "nsys profile --cuda-graph-trace=node -t cuda,nvtx,osrt -o report ./program",
            )
        )
    elif not gpu_work and (capture.flag("has_api_calls") or _nothing_recorded(tables)):
        pass  # a note says why, and another capture like this would not help
    elif not gpu_work:
        steps.append(NextStep("capture again, because the trace has no GPU work", "nsys profile -t cuda,nvtx,osrt -o report ./program"))
    elif not len(tables["inferences"]):
        found = "capture a loop of the same inference, because none was recognised"
        why = found if program.shows_engine else "capture a loop, because nothing repeats"
        steps.append(NextStep(why, "nsysmap record -- ./program"))
    if program.shows_engine and not len(tables["engines"]) and (export := how(ENGINE_FILE, program).paste) is not None:
        steps.append(NextStep(ENGINE_FILE.title, export))
    return tuple(steps)
