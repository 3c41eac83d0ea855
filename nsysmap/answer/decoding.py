"""Loops that make tokens one by one: how long the first takes, and each of the others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby, pairwise
from statistics import fmean

from nsysmap.advice.program import TENSORRT_LLM, Program
from nsysmap.answer.model import Decoding
from nsysmap.core.table import MISSING, Row, Table

_LEAST_STEPS = 3  # after each pass over a prompt, of which it is a loop
_LEAST_REQUESTS = 2  # one prompt alone does not show what repeats
# of tensors that only a decoder has: its cache of keys and values
_CACHE = re.compile(
    r"past_key|key_value|kv_cache|cache_(k|v|key|value)|present[._]\d", re.IGNORECASE
)


def decoding(tables: Mapping[str, Table], program: Program) -> Decoding | None:
    """The times of a loop in which each request's pass over its prompt is followed by steps; None
    where nothing shows that this is what ran, or where two requests were not seen whole.
    """
    if program.kind != TENSORRT_LLM and not _has_cache(tables):
        return None
    rows = sorted(tables["inferences"], key=lambda row: row.integer("start_ns"))
    if len({(row.integer("process"), row.integer("thread")) for row in rows}) != 1:
        return None
    return _of_runs(rows)


def _has_cache(tables: Mapping[str, Table]) -> bool:
    names = tables["tensors"].text("name").where(lambda name: bool(_CACHE.search(name)))
    return bool(names.any())


def _of_runs(rows: list[Row]) -> Decoding | None:
    runs = [list(mine) for _, mine in groupby(rows, key=_kind)]
    prompts = {_kind(run[0]) for run in runs if len(run) == 1}
    first_ns, step_ns = [], []
    for prompt, steps in pairwise(runs):
        if len(prompt) != 1 or len(steps) < _LEAST_STEPS or _kind(steps[0]) in prompts:
            continue
        first_ns.append(steps[0].integer("start_ns") - prompt[0].integer("start_ns"))
        ends = [step.integer("end_ns") for step in steps]
        step_ns += [later - sooner for sooner, later in pairwise(ends)]
    if len(first_ns) < _LEAST_REQUESTS or len(prompts) != 1:
        return None
    return Decoding(
        round(fmean(first_ns)), round(fmean(step_ns)), requests=len(first_ns), steps=len(step_ns)
    )


def _kind(row: Row) -> tuple[int, int]:
    engine = row.maybe_integer("engine")
    sequence = row.maybe_integer("kernel_sequence")
    return (MISSING if engine is None else engine, -1 if engine is not None else sequence or 0)
