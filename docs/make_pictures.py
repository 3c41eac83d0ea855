"""Makes what the README and the notebook show out of a report of fixtures/: python
docs/make_pictures.py

docs/pictures/screen.svg is the first screen as a terminal shows it, docs/pictures/page.png the top
of the page in a browser (with playwright and a Chromium), the other drawings there are those of
`nsysmap plot` that docs/gallery.md shows, and examples/analysis.ipynb gets the outputs of its cells
(with nbclient).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from playwright.sync_api import sync_playwright

from nsysmap import Analysis, analyze
from nsysmap.output.plots.write import KINDS, write_plot
from nsysmap.output.text.screen import screen
from nsysmap.text.lines import Line
from nsysmap.text.terminal import columns

ROOT = Path(__file__).parent.parent
CAPTURE = ROOT / "fixtures" / "bert_trt10"
COMMAND = "nsysmap sync.nsys-rep engine.json"
WIDTH = 80
_CELL, _LINE, _MARGIN = 8.43, 19, 16  # pixels
_FILLS = {"": "#d6deeb", "bold": "#ffffff", "dim": "#8796b0", "yellow": "#e6c35c", "red": "#ff6b6b"}
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    """Replace the pictures, and the outputs of the notebook."""
    pictures = Path(__file__).parent / "pictures"
    pictures.mkdir(exist_ok=True)
    found = analyze(CAPTURE / "sync.nsys-rep", CAPTURE / "engine.json")
    (pictures / "screen.svg").write_text(terminal_svg(screen(found.summary, WIDTH)), "utf-8")
    _page(found, pictures / "page.png")
    for kind in KINDS:
        write_plot(found, kind, pictures / f"{kind}.svg")
    _notebook(ROOT / "examples" / "analysis.ipynb")


def terminal_svg(lines: Sequence[Line]) -> str:
    """These lines as a terminal shows them, below the command."""
    shown: list[Line] = [(("$ ", "dim"), (COMMAND, "bold")), *lines]
    width = round(WIDTH * _CELL + 2 * _MARGIN)
    height = len(shown) * _LINE + 2 * _MARGIN
    rows = "\n".join(_row(line, number) for number, line in enumerate(shown))
    style = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:14px;white-space:pre"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}">\n'
        f'<rect width="{width}" height="{height}" rx="8" fill="#0d1420"/>\n'
        f'<g style="{style}">\n{rows}\n</g>\n</svg>\n'
    )


def _row(line: Line, number: int) -> str:
    """The pieces of a line, each where its column is, whatever font there is."""
    at, pieces = 0, []
    for text, style in line:
        lead = len(text) - len(text.lstrip())
        if text.strip():
            x, long = _MARGIN + (at + lead) * _CELL, columns(text.strip()) * _CELL
            weight = ' font-weight="bold"' if style == "bold" else ""
            pieces.append(
                f'<tspan x="{x:.1f}" textLength="{long:.1f}" fill="{_FILLS[style]}"{weight}>'
                f"{escape(text.strip())}</tspan>"
            )
        at += columns(text)
    return f'<text y="{_MARGIN + (number + 0.75) * _LINE:.1f}">{"".join(pieces)}</text>'


def _page(found: Analysis, path: Path) -> None:
    browser = next((one for name in _BROWSERS if (one := shutil.which(name))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        found.write(Path(folder) / "report.html")
        chromium = play.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": 1440, "height": 900})
        page.goto((Path(folder) / "report.html").as_uri())
        page.wait_for_timeout(1000)
        page.screenshot(path=str(path))
        chromium.close()


def _notebook(path: Path) -> None:
    os.environ["PYTHONPATH"] = str(ROOT)
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook.cells:  # when each ran says nothing
        cell.get("metadata", {}).pop("execution", None)
    notebook.metadata.pop("language_info", None)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
