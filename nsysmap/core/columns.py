"""Functions that declare columns, and the columns that several tables share."""

from __future__ import annotations

from nsysmap.core.table import Column


def integer(name: str, comment: str, unit: str = "", *, null: bool = False) -> Column:
    """A declared column of int64."""
    return Column(name, "int", comment, unit, null)


def row_in(name: str, table: str, comment: str = "", *, null: bool = False) -> Column:
    """A declared column of int64 that names a row of another table by its key."""
    return Column(
        name, "int", f"row in {table}" + (f": {comment}" if comment else ""), "", null, table
    )


def of_engine(*, null: bool = False) -> Column:
    """The declared column ``engine``."""
    return Column("engine", "int", "which engine file, from 0", "", null, "engines")


def real(name: str, comment: str, unit: str = "", *, null: bool = False) -> Column:
    """A declared column of float64."""
    return Column(name, "float", comment, unit, null)


def text(name: str, comment: str, *, null: bool = False, row_of: str = "") -> Column:
    """A declared column of dictionary-coded text; ``row_of`` is the table whose key it repeats."""
    return Column(name, "text", comment, "", null, row_of)


def flag(name: str, comment: str) -> Column:
    """A declared column of true and false."""
    return Column(name, "bool", comment)


WHEN = (integer("start_ns", "when it began", "ns"), integer("end_ns", "when it ended", "ns"))
WHERE = (
    integer("device", "CUDA device ordinal"),
    integer("context", "CUDA context id within its process", null=True),
    integer("stream", "CUDA stream id within its context"),
    integer("process", "nsys globalPid of the process that launched it"),
    integer("pid", "process id"),
)
LAUNCHED = (
    integer("correlation", "CUPTI correlation id, unique only within a process", null=True),
    integer("launch", "row in api_calls of the call that launched it", null=True),
    integer("launch_start_ns", "when that call began", "ns", null=True),
    integer("launch_end_ns", "when that call returned", "ns", null=True),
    integer("thread", "nsys globalTid of the launching thread", null=True),
)
