"""The answer on one terminal screen: at most twenty lines, in the order in which it is read."""

from __future__ import annotations

from nsysmap.answer import first
from nsysmap.answer.model import Answer
from nsysmap.output.first import Amount, first_sections, fitting
from nsysmap.text.lines import Line, heading, rendered, styled
from nsysmap.text.page_lines import BESIDE, close_lines
from nsysmap.text.terminal import columns

MOST_LINES, MOST_WORDS = 20, 180
"""Of the screen, at 80 columns and wider."""
USUAL_LINES = 15
"""A longer screen leaves out the least important parts."""
_NARROW = 80  # columns for which sentences are chosen, so that every width says the same


def screen(answer: Answer, width: int) -> list[Line]:
    """The answer in lines of at most ``width`` columns, as much of it as fits the screen."""

    def fits(amount: Amount) -> bool:
        lines = _laid_out(answer, _NARROW, amount)
        words = len(rendered(lines, colour=False).split())
        return len(lines) <= MOST_LINES and words <= MOST_WORDS

    def short(amount: Amount) -> bool:
        return len(_laid_out(answer, _NARROW, amount)) <= USUAL_LINES

    return _laid_out(answer, width, fitting(fits, short))


def _laid_out(answer: Answer, width: int, amount: Amount) -> list[Line]:
    forms = first.headlines(answer, width)
    told = next((one for one in forms if columns(one) <= width), forms[-1])
    lines = heading(told, width)
    if answer.selected:
        lines.append(styled(answer.selected))
    for section in first_sections(answer, amount, _NARROW - BESIDE):
        lines += close_lines(section, width)
    return lines
