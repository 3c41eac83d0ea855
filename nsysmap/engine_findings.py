"""What the rules about the inside of an engine find in its file alone, without a trace; times come from trtexec's --exportProfile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nsysmap.engine import layers_table
from nsysmap.engine_tables import engine_tables
from nsysmap.layer_times import profiled_layer_times
from nsysmap.limits import limits_table
from nsysmap.model import Engine, Outcome
from nsysmap.precision import engine_precision_table
from nsysmap.rules import builtin_rules_dir, load_rules, run_rules
from nsysmap.schema import DEVICES, KERNELS, LAYERS
from nsysmap.tables import Table

if TYPE_CHECKING:
    from nsysmap.rule_file import Rule

GROUPS = frozenset({"fusion", "reformat", "precision", "hotspot"})
"""The groups of rules that look at the engine rather than at the trace."""


def engine_tables_with_profile(engine: Engine) -> dict[str, Table]:
    """The tables of one engine by name, with the times of its profile, if it has one, in layers and layer_times (one inference)."""
    times = profiled_layer_times([engine])
    layers = layers_table([engine])
    ids = times.ints("layer_id")
    share = np.full(len(layers), np.nan)
    share[ids] = times.floats("share")
    time_ns = layers.ints("time_ns").copy()
    time_ns[ids] = times.ints("total_ns")
    layers = layers.with_columns(LAYERS, {"time_ns": time_ns, "share": share})
    tables = engine_tables([engine])
    tables |= {"layers": layers, "layer_times": times, "precision": engine_precision_table(engine)}
    tables["limits"] = limits_table(layers, tables["work"], Table.empty(DEVICES), Table.empty(KERNELS))
    return tables


def engine_outcomes(engine: Engine, *, rules: Sequence[Rule] | None = None) -> tuple[Outcome, ...]:
    """What the rules of GROUPS answer; costs are of one inference.  Those that need a trace, or times, are skipped with the reason."""
    chosen = load_rules([builtin_rules_dir()], check_own=False) if rules is None else rules
    return run_rules([rule for rule in chosen if rule.group in GROUPS], engine_tables_with_profile(engine))
