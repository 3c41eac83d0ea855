"""What is said of engine files that did not run, or of which that is open: which figures, how bad,
and when nothing is said.
"""

from __future__ import annotations

import numpy as np
import pytest

from nsysmap.core.note import Note
from nsysmap.core.result_schema import ENGINE_FITS
from nsysmap.core.table import MISSING, Table, Text
from nsysmap.mapping.engine_match import _NO_TENSORRT, Explained, Whose, fit_notes
from tests.figures import figures

RAN, NOT, OPEN = "ran", "did-not-run", "cannot-tell"


def notes(engine: list[int], **row: object) -> tuple[Note, ...]:
    """Those of one file, of inferences with these engines (-1 for none)."""
    return notes_of(engine, row)


def notes_of(
    engine: list[int],
    row: dict[str, object],
    *,
    shown: list[bool] | None = None,
    elsewhere: int = 0,
) -> tuple[Note, ...]:
    """The same where not all inferences are shown, or some are of another engine."""
    made = {
        "engine": 0, "source": "a.json", "verdict": RAN, "inferences": 8, "how": "it is so", **row,
    }  # fmt: skip
    fits = Table.of_rows(ENGINE_FITS, [made])
    of = np.array([MISSING if one < 0 else one for one in engine], np.int64)
    explained = (Explained(0, 0, 0, elsewhere, 0, 0, 0, 0, 0, 0, ()),)
    whose = Whose(of, Text.same(None, len(of)), np.zeros(0, np.bool_), explained)
    return fit_notes(fits, whose, np.array(shown or [True] * len(of), np.bool_))


def test_of_a_file_that_fits_nothing_is_said() -> None:
    assert notes([0] * 8) == ()
    assert notes([0] * 8, compared=9, known=9, tactics=5, tactics_ran=5, lacking=0) == ()


@pytest.mark.parametrize(
    ("engine", "shown", "refused", "without"),
    [
        ([0, 0, -1, -1, -1], None, 0, 3),
        ([0, 0, -1, -1, -1], [True, True, True, True, False], 0, 2),  # of one nothing is shown
        ([0, 0, -1, -1, -1], None, 2, 1),  # of the refused ones another note tells
        ([0, 0, -1, -1, -1], None, 3, 0),
        ([-1, -1, -1], None, 0, 0),  # none has an engine: nothing says that files are lacking
    ],
)
def test_inferences_of_no_file_are_counted_once(
    engine: list[int], shown: list[bool] | None, refused: int, without: int
) -> None:
    told = notes_of(engine, {}, shown=shown, elsewhere=refused)
    assert [(one.level, figures(one.text)[:2]) for one in told] == (
        [("info", [str(without), "5"])] if without else []
    )


def test_a_file_that_did_not_run_is_an_error_with_a_layer_of_each() -> None:
    [told] = notes([0], verdict=NOT)
    assert (told.level, "a.json" in str(told.brief)) == ("error", True)
    assert "names" not in told.text
    [both] = notes([0], verdict=NOT, trace_layer="conv", engine_layer="pool")
    assert "conv" in both.text
    assert "pool" in both.text
    assert notes([0], verdict=NOT, trace_layer="conv") == (told,)
    assert notes([0], verdict=NOT, engine_layer="pool") == (told,)
    [absent] = notes([0], verdict=NOT, how=_NO_TENSORRT)
    assert absent.level == "error"
    assert absent.brief != told.brief
    assert "give" not in absent.text  # no other file would do


def test_where_it_is_open_whether_a_file_ran_that_is_a_warning() -> None:
    [told] = notes([0], verdict=OPEN, compared=4)
    assert (told.level, "a.json" in str(told.brief)) == ("warning", True)
    assert notes([0], verdict=OPEN) == ()  # nothing could be compared
    assert notes([0], verdict=RAN, compared=4, known=4) == ()


@pytest.mark.parametrize(
    ("row", "level", "numbers"),
    [
        ({"in_doubt": 3, "against": "x"}, "warning", ["3", "8"]),
        ({"refused": 2, "against": "x"}, "warning", ["2", "4"]),
        ({"other_kernels": 5}, "info", ["5", "8"]),
        ({"compared": 9, "known": 7}, "warning", ["2", "9"]),
        ({"tactics": 6, "tactics_ran": 5}, "warning", ["1", "6"]),
        ({"lacking": 4}, "warning", ["4"]),
    ],
)
def test_what_speaks_against_a_file_is_counted(
    row: dict[str, object], level: str, numbers: list[str]
) -> None:
    [told] = notes_of([0] * 4, row)
    assert told.level == level
    assert figures(told.text)[: len(numbers)] == numbers
    assert (told.about == "another-build") == bool({"compared", "tactics", "lacking"} & row.keys())
    if row.keys() & {"compared", "tactics", "lacking"}:  # of a file that did not run that is less
        assert notes_of([0] * 4, {"compared": 9, **row, "verdict": OPEN}) != (told,)


def test_a_figure_that_is_not_known_is_no_difference() -> None:
    assert notes([0] * 4, compared=9, known=None) == ()
    assert notes([0] * 4, tactics=None, tactics_ran=3) == ()
    several = notes([0] * 4, in_doubt=1, refused=1, other_kernels=1, against="x", lacking=1)
    assert [one.level for one in several] == ["warning", "warning", "warning", "info"]
