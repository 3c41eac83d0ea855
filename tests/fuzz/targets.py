"""What is fuzzed: each target takes any bytes, and may end in an NsysmapError and in nothing
else.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random

from nsysmap.comparison.gate.budget import read_budget
from nsysmap.core.errors import NsysmapError
from nsysmap.core.schema import RULE_TABLES
from nsysmap.inputs.engine.dataflow import flow_of
from nsysmap.inputs.engine.reader import read_engines_in
from nsysmap.inputs.ncu.printed import parse_ncu_csv
from nsysmap.inputs.nsys.arrow_tables import folder_tables
from nsysmap.inputs.nsys.report_tables import read_report
from nsysmap.names.decode import (
    decode,
    layer_kind,
    normalized_range_text,
    split_layer_name,
    summary,
)
from nsysmap.network.tables import engine_tables
from nsysmap.rules.plain_yaml import plain_yaml
from nsysmap.rules.rule_file import read_rule
from nsysmap.rules.sandbox.limits import QueryError, Sandbox
from tests.sqlite_mutants import compared

CORPUS = Path(__file__).parent / "corpus"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _file(data: bytes, name: str) -> Path:
    path = Path(_folder().name) / name
    path.write_bytes(data)
    return path


def names(data: bytes) -> None:
    """The decoder reads any text: kernel, tactic and layer names."""
    name = data.decode("utf-8", "replace")
    found = decode(name)
    assert found.name == name
    summary(found)
    split_layer_name(name)
    layer_kind(name, None)
    assert normalized_range_text(normalized_range_text(name)) == normalized_range_text(name)


def engine(data: bytes) -> None:
    """An engine file in any form, and the tables that are made of it; serialized engines are
    TensorRT's to read.
    """
    if data[:4] in (b"ftrt", b"ptrt"):
        return
    try:
        for found in read_engines_in(_file(data, "engine.json")):
            flow_of(found)
            engine_tables([found])
    except NsysmapError:
        pass


def rule(data: bytes) -> None:
    """A rule file, up to its SQL."""
    with contextlib.suppress(NsysmapError):
        path = _file(data, "fuzzed.yaml")
        plain_yaml(path)  # as a stranger's: nsysmap's own are not held to be plain
        read_rule(path, None)


def pages(data: bytes) -> None:
    """An SQLite file: its pages are read as SQLite reads them, or left to it."""
    for outcome, where in compared(_file(data, "fuzzed.sqlite"), Random(0)):
        assert outcome != "wrong", where


def report(data: bytes) -> None:
    """A report, read by nsysmap itself."""
    with contextlib.suppress(NsysmapError):
        read_report(_file(data, "fuzzed.nsys-rep"))


def counters(data: bytes) -> None:
    """The printed output of Nsight Compute."""
    with contextlib.suppress(NsysmapError):
        parse_ncu_csv(data.decode("utf-8", "replace"), "fuzzed.csv")


def budget(data: bytes) -> None:
    """A budget file of `nsysmap gate`."""
    with contextlib.suppress(NsysmapError):
        read_budget(_file(data, "budget.toml"))


def parquet(data: bytes) -> None:
    """A table of an exported folder: all its columns, each as whole numbers or as texts."""
    folder = _file(b"", "table").with_name("exported")
    folder.mkdir(exist_ok=True)
    path = folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet"
    path.write_bytes(data)
    with contextlib.suppress(NsysmapError):
        tables = folder_tables(folder, "Parquet", {path.stem: path})
        tables.read(path.stem, ("start", "end"))
        tables.read(path.stem, (), ("name",))


@cache
def _sandbox() -> Sandbox:
    return Sandbox(RULE_TABLES, threads=1)


def statement(data: bytes) -> None:
    """The SQL of a stranger's rule: it is refused, or reads nothing but nsysmap's own tables."""
    with contextlib.suppress(QueryError):
        query = _sandbox().parse(data.decode("utf-8", "replace"))
        assert query.tables <= {spec.name for spec in RULE_TABLES}


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    "names": names,
    "engine": engine,
    "rule": rule,
    "pages": pages,
    "report": report,
    "counters": counters,
    "budget": budget,
    "parquet": parquet,
    "statement": statement,
}


def corpus(target: str) -> list[Path]:
    """The files that fuzzing a target begins with."""
    return sorted((CORPUS / target).iterdir())
