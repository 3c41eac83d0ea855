"""What the trace or the lack of an engine file leaves open, and what to capture or export next for
it.
"""

from __future__ import annotations

from collections.abc import Mapping

from nsysmap.advice.paste import ENGINE_FILE
from nsysmap.advice.program import Program
from nsysmap.advice.ways import how
from nsysmap.answer.model import NextStep, Summary
from nsysmap.answer.words import NOT_ABOUT_THIS, in_its_words
from nsysmap.core.table import Table
from nsysmap.text.units import counted
from nsysmap.trace.lacking import NOTHING_RECORDED

_NOT_SAMPLED = "no hardware counters were sampled ("


def _nothing_recorded(tables: Mapping[str, Table]) -> bool:
    """Whether CUDA was traced, and the program did nothing of it."""
    return any(row.text("text").startswith(NOTHING_RECORDED) for row in tables["notes"])


def next_steps(tables: Mapping[str, Table], program: Program) -> tuple[NextStep, ...]:
    """What to capture or export for what the trace, or the lack of an engine file, leaves open."""
    capture, steps = tables["capture"].only(), []
    gpu_work = any(
        capture.integer(name)
        for name in ("kernels", "memcpys", "memsets", "cuda_graph_traces", "graph_launches")
    )
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
        steps.append(
            NextStep(
                "capture again, because the trace has no GPU work",
                "nsys profile -t cuda,nvtx,osrt -o report ./program",
            )
        )
    elif not len(tables["inferences"]):
        found = "capture a loop of the same inference, because none was recognised"
        why = found if program.shows_engine else "capture a loop, because nothing repeats"
        steps.append(NextStep(why, "nsysmap record -- ./program"))
    if (
        program.shows_engine
        and not len(tables["engines"])
        and (export := how(ENGINE_FILE, program).paste) is not None
    ):
        steps.append(NextStep(ENGINE_FILE.title, export))
    return tuple(steps)


def doubts(summary: Summary, where: str = " (--full lists all)") -> str:
    """What could not be determined, in a sentence or two; rules on hardware counters are counted
    separately, because few captures have any.

    ``where`` says where everything is listed.
    """
    skipped = [one for one in summary.rules if one.outcome == "skipped"]
    sampled = not any(_NOT_SAMPLED in doubt.reason for doubt in summary.doubts)
    optional = set() if sampled else {one.rule for one in skipped if one.group == "counters"}
    rules = len(skipped) - len(optional)
    changes = sum(
        1 for doubt in summary.doubts for name in doubt.what if name.startswith("what-if ")
    )
    parts = [f"{rules} of {counted(len(summary.rules), 'rule')}"] if rules else []
    parts += [counted(changes, "what-if change")] if changes else []
    counters = (
        f"{counted(len(optional), 'rule')} would need hardware counters (nsys profile"
        " --gpu-metrics-devices)"
        if optional
        else ""
    )
    if not parts:
        return counters and f"{counters}{where}"
    reasons = {
        doubt.reason: sum(name not in optional for name in doubt.what) for doubt in summary.doubts
    }
    graph = summary.graph.reason
    # reasons shown in a row of their own, or that name a table's column, say least
    largest = max(
        reasons,
        key=lambda reason: (
            not (graph and graph in reason),
            not reason.startswith("no value in "),
            reasons[reason],
        ),
    )
    _, _, because = (
        largest.partition(": ") if largest.startswith("no rows in ") else ("", "", largest)
    )
    share = reasons[largest] / (rules + changes)
    several = "" if share == 1 else "mostly because " if share > 0.5 else "for example because "
    because = (
        NOT_ABOUT_THIS if "engine file" in largest and not summary.tensorrt else because or largest
    )
    told = f"{' and '.join(parts)} could not tell: {several}{in_its_words(summary, because)}"
    return f"{told}; {counters}{where}" if counters else f"{told}{where}"
