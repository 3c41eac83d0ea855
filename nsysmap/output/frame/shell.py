"""Fills in the frame: the templates of a page, its tabs, and the files of its style and script."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nsysmap.core.records import dataclass
from nsysmap.text.page_lines import code_lines
from nsysmap.text.terminal import escaped

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

HERE = Path(__file__).parent
_PICTURE = HERE.parent / "picture"
STYLES = (_PICTURE / "theme.css", HERE / "frame.css")
SCRIPTS = (_PICTURE / "elements.js", *(HERE / name for name in ("words.js", "frame.js")))
"""The scripts of every page in the frame, in order; a page's own files follow."""
TABLES_SCRIPT = HERE / "tables_page.js"
"""The last script of a page that has tables and pictures only."""


@dataclass(frozen=True)
class Tab:
    """One tab: the id of its panel, its name, and how many things it lists."""

    key: str
    words: str
    count: int | None = None


def _code(command: str) -> Markup:
    """Returns a line to paste as HTML, in the lines in which it is read; an arrow is not broken."""
    from markupsafe import Markup, escape

    lines = "\n".join(str(escape(line)) for line in code_lines(escaped(command)))
    return Markup(lines.replace("-&gt;", "<span>-&gt;</span>"))


def environment(folder: Path) -> Environment:
    """The templates of a folder and those of the frame; what they fill in is escaped, whatever it
    contains.
    """
    import jinja2

    loader = jinja2.FileSystemLoader((folder, HERE), encoding="utf-8")
    made = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True
    )
    made.filters["plain"] = escaped
    made.filters["code"] = _code
    return made
