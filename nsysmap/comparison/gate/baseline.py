"""The measurements of a capture, in a small JSON file, for comparison with later captures."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nsysmap.comparison.noise import Mean
from nsysmap.comparison.pace import Pace
from nsysmap.comparison.side import Side
from nsysmap.core.errors import NsysmapError
from nsysmap.core.json_record import Declared, keys, record
from nsysmap.core.records import dataclass
from nsysmap.network.titles import called
from nsysmap.timing.idle.causes import CAUSES

SCHEMA = "nsysmap/baseline/1"
_MOST_BYTES = 64 << 20  # some 200,000 layers
_FIELDS = ("value", "error", "freedom", "count", "effective", "drift")
_REMEDY = "make it with nsysmap baseline REPORT [ENGINE]... -o base.json"


@dataclass(frozen=True)
class Baseline:
    """The figures of one capture; times in nanoseconds per inference, without the profiler unless
    ``profiled`` gives a reason, or if ``whole_graphs``.
    """

    source: str
    gpu: str | None
    tensorrt_version: str | None
    cuda_graph: bool
    profiled: str
    time: Mean
    recorded: Mean
    idle: Mapping[str, float]  # by cause
    layers: Mapping[str, Mean]  # kernel time by name
    mapped: float | None  # share of the kernel time that has a layer
    findings: Mapping[str, int]  # by rule; rules that were skipped are not in it
    titles: Mapping[str, str] = field(default_factory=dict)  # what layers are called, by name
    # CUDA graphs were traced as a whole: times are as recorded
    whole_graphs: bool = False

    def is_called(self, layer: str, pattern: str) -> bool:
        """Whether a layer's name or title is this one, or fits this pattern."""
        return any(
            one == pattern or fnmatchcase(one, pattern)
            for one in (layer, self.titles.get(layer, layer))
        )


def baseline_of(side: Side) -> Baseline:
    """The baseline made from a capture."""
    from nsysmap.comparison.joined import layer_means

    pace = side.pace
    devices = side.tables["devices"]
    version = next(
        (engine.tensorrt_version for engine in side.engines if engine.tensorrt_version), None
    )
    return Baseline(
        source=side.source,
        gpu=next(
            (row.text("name") for row in devices if row.integer("device") == pace.device), None
        ),
        tensorrt_version=version or side.tables["capture"].only().maybe_text("tensorrt_version"),
        cuda_graph=side.cuda_graphs,
        profiled=pace.profiled,
        time=pace.noise,
        recorded=pace.recorded_noise,
        idle=_idle(pace),
        layers=layer_means(side),
        mapped=_mapped(side),
        findings={one.rule: len(one.findings) for one in side.outcomes if one.skipped is None},
        titles={row.text("name"): called(row) for row in side.tables["layers"]},
        whole_graphs=pace.hidden,
    )


def _idle(pace: Pace) -> dict[str, float]:
    return (
        {cause: float(pace.parts[pace.kinds.idle(cause)]) for cause in CAUSES}
        if pace.known and not pace.hidden
        else {}
    )


def _mapped(side: Side) -> float | None:
    coverage = side.tables["coverage"]
    if not len(coverage):
        return None
    none = coverage.text("method").equals("none")
    return 1.0 - float(coverage.floats("share_of_kernel_time")[none].sum())


_KEYS: Declared = {
    Baseline: keys(
        "source gpu tensorrt_version cuda_graph profiled time recorded idle layers mapped findings "
        "titles whole_graphs"
    ),
    Mean: keys(" ".join(_FIELDS)),
}
"""The objects in the JSON of a baseline."""


def baseline_json(baseline: Baseline) -> dict[str, Any]:
    """The baseline as JSON values; null if there is no value."""
    values: dict[str, Any] = record(baseline, _KEYS)
    values["layers"] = {name: _mean_json(mean) for name, mean in baseline.layers.items()}
    values["time"], values["recorded"] = _mean_json(baseline.time), _mean_json(baseline.recorded)
    values["idle"] = {cause: round(value, 1) for cause, value in baseline.idle.items()}
    return {"schema": SCHEMA, **values}


def _mean_json(mean: Mean) -> dict[str, float | None]:
    values = {name: getattr(mean, name) for name in _FIELDS}
    return {name: None if math.isnan(value) else round(value, 3) for name, value in values.items()}


def read_baseline(path: str | Path) -> Baseline:
    """The baseline in a file; raises NsysmapError if it is not one."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            raw = opened.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise NsysmapError(str(file), f"is larger than {_MOST_BYTES >> 20} MiB", _REMEDY)
        values = json.loads(raw.decode("utf-8"), parse_constant=_none)
    except FileNotFoundError:
        raise NsysmapError(str(file), "there is no such file", _REMEDY) from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError):
        raise NsysmapError(str(file), "is not a baseline", _REMEDY) from None
    if not isinstance(values, dict) or values.get("schema") != SCHEMA:
        raise NsysmapError(str(file), f"is not a baseline in the format {SCHEMA}", _REMEDY)
    try:
        return Baseline(
            source=str(values["source"]),
            gpu=_text(values["gpu"]),
            tensorrt_version=_text(values["tensorrt_version"]),
            cuda_graph=bool(values["cuda_graph"]),
            profiled=str(values["profiled"]),
            time=_mean(values["time"]),
            recorded=_mean(values["recorded"]),
            idle={str(cause): _finite(value) for cause, value in values["idle"].items()},
            layers={str(name): _mean(value) for name, value in values["layers"].items()},
            mapped=None if values["mapped"] is None else _finite(values["mapped"]),
            findings={str(rule): _count(number) for rule, number in values["findings"].items()},
            titles={str(name): str(title) for name, title in values.get("titles", {}).items()},
            # a baseline without the key has no idle time if its graphs were traced as a whole
            whole_graphs=bool(
                values.get("whole_graphs", values["cuda_graph"] and not values["idle"])
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise NsysmapError(
            str(file), "is a baseline that was edited or truncated", _REMEDY
        ) from None


def _none(constant: str) -> float:
    """NaN and Infinity are not JSON: nothing could be worse than such a baseline."""
    raise ValueError(constant)


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number


def _count(value: Any) -> int:
    if int(value) < 0:
        raise ValueError(value)
    return int(value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _mean(value: Mapping[str, Any]) -> Mean:
    numbers = {name: math.nan if value[name] is None else _finite(value[name]) for name in _FIELDS}
    known = not math.isnan(numbers["error"])
    below = any(numbers[name] < 0 for name in _FIELDS if name != "freedom")
    if below or (known and not numbers["freedom"] >= 1):
        # no times have such a mean; a test against it would pass or fail by chance
        raise ValueError(value)
    return Mean(
        numbers["value"],
        numbers["error"],
        numbers["freedom"],
        int(numbers["count"]),
        numbers["effective"],
        numbers["drift"],
    )
