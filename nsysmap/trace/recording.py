"""What a report says about its own recording: versions, what was traced, and nsys's warnings.

These tables also have the environment, the command line and the names of user and host: only what
is named here leaves this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field

from nsysmap.core.records import dataclass
from nsysmap.core.table import Text
from nsysmap.inputs.nsys.record import PERMISSION
from nsysmap.inputs.nsys.tables import ENVIRONMENT_VARIABLE, NsysTables
from nsysmap.trace.program_output import ProgramOutput

_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,10}){0,4}")
_INSTALLED = re.compile(r"nsight[- ]systems(?:-cli)?[-/ \\]+(20\d\d\.\d+(?:\.\d+)*)", re.IGNORECASE)
# the only variable whose value is read; between the variables of the machine nsys writes 0 or ;
# (seen in 2023.4 and 2025.3)
_TENSORRT = re.compile(r"(?:^|[\0;])TENSORRT_VERSION=\"?(?P<version>\d{1,2}(?:\.\d{1,6}){1,3})")
_GRAPH_MODE = re.compile(r"(?:PROCESS_\d+:)?CUDA_GRAPH_TRACE_OPTIONS:MODE")
# What nsys writes into DIAGNOSTIC_EVENT (from schema 3.11 on) that concerns what is missing, and
# what we say of it.
_WARNINGS = tuple(
    (re.compile(pattern, re.IGNORECASE), sentence)
    for pattern, sentence in (
        (
            r"not all CUDA events might have been collected",
            "not all CUDA events may have been collected",
        ),
        (
            r"some CUPTI events might be missing",
            "GPU events may be missing, because the program ended before they were written",
        ),
        (
            r"not all NVTX events might have been collected",
            "not all NVTX ranges may have been collected",
        ),
        (
            r"CUDA profiling might have not been started correctly",
            "CUDA tracing may not have started correctly",
        ),
        (r"no CUDA events collected", "no CUDA events were collected"),
        (
            r"Installed CUDA driver version .* is not supported by this build",
            "the CUDA driver was newer than that version of nsys supports",
        ),
        (r"ActivityFlushAll returned \d+", "CUPTI could not deliver its GPU records"),
        (
            r"(?:events?|records?|samples?|buffers?)\b.*\b(?:dropped|lost|discarded)\b|\b(?:dropped|lost|discarded)\b.*\bevents?",
            "events were lost",
        ),
    )
)
_SAMPLED_HZ = "GPU_METRICS_OPTIONS:SAMPLING_FREQUENCY"
# What nsys writes if it cannot sample hardware counters (seen in nsys 2023.4 and 2025.3: "GPU
# Metrics [0]: …"), and what to do.
_NO_COUNTERS = tuple(
    (re.compile(pattern, re.IGNORECASE), sentence)
    for pattern, sentence in (
        (
            (
                r"permission to access NVIDIA .*Performance"
                r" Counters|ERR_NVGPUCTRPERM|insufficient.privilege"
            ),
            (
                "the user was not allowed to read the GPU's performance counters"
                f" (ERR_NVGPUCTRPERM); {PERMISSION}"
            ),
        ),
        (
            r"sampling hardware unit is already in use",
            (
                "another tool was using the GPU's performance counters (DCGM, Nsight Compute, a"
                " second nsys, also in another container); end it, or pause DCGM with `dcgmi"
                " profile --pause`"
            ),
        ),
        (
            r"Confidential Compute|Protected Memory mode",
            (
                "the GPU is in confidential computing mode, in which its performance counters"
                " cannot be read"
            ),
        ),
        (
            r"single MIG enabled GPU is not supported",
            "another nsys was sampling another MIG instance of this GPU; only one can",
        ),
        (
            r"GPU Metrics.*(?:not supported|unsupported (?:driver|chip|gpu|device))",
            (
                "that nsys cannot sample this GPU or driver; it needs Turing or newer, and an nsys"
                " as new as the driver"
            ),
        ),
    )
)


@dataclass(frozen=True)
class Recording:
    """How a trace was recorded, as far as it says."""

    form: str = "SQLite"  # of the file, see NsysTables.form
    # of the nsys that captured it, else of the one that exported it
    nsys_version: str | None = None
    exported_by: str | None = None
    schema_version: str | None = None
    # nsys's event types (Cuda, NvtxEvents, OSRuntime, …); empty if it does not say
    traced: frozenset[str] = frozenset()
    cuda_graph_trace: str | None = None  # node or graph, as nsys was told to
    wsl: bool = False  # captured under WSL2
    warnings: tuple[str, ...] = ()  # what nsys warned of, in our words
    began_at_ns: int | None = None  # when the session began, since 1970
    counters_asked_for: bool = False  # nsys was told to sample hardware counters
    no_counters: str | None = None  # why it could not
    # TENSORRT_VERSION of the program, as containers of NVIDIA have it
    environment_tensorrt: str | None = None
    output: ProgramOutput = field(default_factory=ProgramOutput)  # what the program wrote


def recording_of(tables: NsysTables) -> Recording:
    """Reads what the file says about its own recording."""
    export = _exported(tables)
    exported_by = _number(export.get("EXPORT_PRODUCT_VERSION"))
    traced, graph_modes, sampled, variables = set(), set(), False, []
    for name, value in _pairs(tables, "META_DATA_CAPTURE", ("name", "value")):
        if name == "CAPTURE_EVENT_TYPE":
            traced.add(value)
        elif _GRAPH_MODE.fullmatch(name):
            graph_modes.add(value.lower())
        elif name.endswith(ENVIRONMENT_VARIABLE):
            variables.append(value)
        sampled |= name.endswith(_SAMPLED_HZ)
    environment = dict(_pairs(tables, "TARGET_INFO_SYSTEM_ENV", ("name", "value")))
    variables.append(environment.get("DeviceEnvironment", ""))
    installed = _INSTALLED.search(environment.get("TargetInstallDir", ""))
    captured_by = tables.written_by or (installed.group(1) if installed else None)
    if captured_by is None or (exported_by or "").startswith(f"{captured_by}."):
        captured_by = exported_by
    mode = graph_modes.pop() if len(graph_modes) == 1 else None
    return Recording(
        form=tables.form,
        nsys_version=captured_by,
        exported_by=exported_by,
        schema_version=_number(export.get("EXPORT_SCHEMA_VERSION")),
        traced=frozenset(traced),
        cuda_graph_trace=mode if mode in ("graph", "node") else None,
        wsl="microsoft" in environment.get("SoftwareReleaseVersion", "").lower(),
        warnings=tuple(_reported(tables, _WARNINGS)),
        began_at_ns=_began_at(tables),
        counters_asked_for=sampled,
        no_counters=next(_reported(tables, _NO_COUNTERS), None),
        environment_tensorrt=next(
            (found.group("version") for text in variables if (found := _TENSORRT.search(text))),
            None,
        ),
    )


def _began_at(tables: NsysTables) -> int | None:
    held = tables.read("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))["utcEpochNs"].tolist()
    return held[0] if held and held[0] > 0 else None


def _exported(tables: NsysTables) -> Mapping[str, str]:
    return {
        key: held
        for key, held in _pairs(tables, "META_DATA_EXPORT", ("name", "value"))
        if key.startswith("EXPORT_")
    }


def _reported(
    tables: NsysTables, patterns: tuple[tuple[re.Pattern[str], str], ...]
) -> Iterator[str]:
    """Our sentences for what nsys reported."""
    texts: Text = tables.read("DIAGNOSTIC_EVENT", (), ("text",))["text"]
    for pattern, sentence in patterns:
        if any(pattern.search(text) for text in texts.values):
            yield sentence


def _pairs(tables: NsysTables, table: str, columns: tuple[str, str]) -> list[tuple[str, str]]:
    """The rows of two text columns that both have a value."""
    if not all(tables.has(table, column) for column in columns):
        return []
    raw = tables.read(table, (), columns)
    names, values = raw[columns[0]].list(), raw[columns[1]].list()
    return [
        (name, value)
        for name, value in zip(names, values, strict=True)
        if name is not None and value is not None
    ]


def _number(text: str | None) -> str | None:
    found = _VERSION.match(text or "")
    return found.group() if found else None
