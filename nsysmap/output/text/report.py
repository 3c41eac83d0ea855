"""The report on a terminal: the answer on one screen, followed by all the details if requested."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.answer.model import Answer
from nsysmap.output.text.screen import screen
from nsysmap.text.lines import WHOLE, rendered, styled

NARROWEST = 80  # columns


def report_text(
    report: Answer,
    *,
    width: int | None = None,
    full: bool = False,
    colour: bool = False,
    given: Sequence[str] = (),
) -> str:
    """The answer on one screen, or with ``full`` everything, as lines of at most ``width`` columns
    (none: nothing is cut).

    ``given`` are the paths of the report and its engine files for the commands on it; without them
    it has their names.
    """
    room = WHOLE if width is None else max(NARROWEST, width)
    lines = screen(report, room)
    if full:  # the first screen needs nothing of these modules
        from nsysmap.output.answers import whole_answer
        from nsysmap.output.sections import sections_of
        from nsysmap.text.page_lines import section_lines

        for section in (*whole_answer(report, given), *sections_of(report, room)):
            lines += [styled(""), *section_lines(section, room)]
    return rendered(lines, colour=colour)
