"""The page of a long trace in a real Chromium: its size, the time to the first paint and to all
figures, and how quickly it moves.

    python benchmarks/page.py 100000 1000000

makes a trace of that many kernels (benchmarks/make_trace.py), writes its page twice (as nsysmap
does, and with every kernel in it) and opens both.  Times are those of the browser's own clock on
this machine; a software renderer draws where there is no GPU.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from nsysmap.analysis import Analysis
from nsysmap.api import analyze
from nsysmap.output.build import report_of
from nsysmap.output.page.windows import MOST_KERNELS
from nsysmap.output.page.write import write_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# moves the timeline by an arrow key as often as the browser draws, for a second; returns how often,
# and the longest time between two
PAN = """async () => {
  const canvas = document.querySelector('#lanes canvas');
  canvas.focus();
  const times = [];
  const end = performance.now() + 1000;
  for (let key = 'd'; performance.now() < end; key = key === 'd' ? 'a' : 'd') {
    canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    times.push(+document.body.dataset.drawn);
  }
  times.sort((one, two) => one - two);
  return [times.length * 2, times[times.length >> 1], times[times.length - 1]];
}"""


def figures(chromium: Any, path: Path) -> str:
    """One line of what the browser measures of that page."""
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.goto(path.resolve().as_uri())
    page.wait_for_selector("body[data-ready]", timeout=120_000)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime")
    told = [
        f"{path.stat().st_size / 1e6:.2f} MB",
        f"first paint {paint:.0f} ms",
        f"figures {page.get_attribute('body', 'data-ready')} ms",
    ]
    for name, key in (("an inference", ""), ("whole trace", "0")):
        if key:
            page.keyboard.press(key)
        frames, median, most = page.evaluate(PAN)
        told.append(
            f"panning {name}: {frames} frames/s, drawing {median:.1f} ms (at most {most:.1f})"
        )
    page.close()
    return ", ".join([*told, *wrong])


def run(analysis: Analysis, folder: Path, chromium: Any) -> None:
    """Write and open both pages of an analysis."""
    report = report_of(analysis)
    kernels = len(analysis.tables.kernels)
    for most in dict.fromkeys((MOST_KERNELS, max(MOST_KERNELS, kernels))):
        path = folder / "page.html"
        begun = time.process_time()
        write_page(analysis, report, path, most_kernels=most)
        print(
            f"{kernels:,} kernels, at most {most:,} one by one: written in"
            f" {time.process_time() - begun:.1f} s, {figures(chromium, path)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kernels", type=int, nargs="+")
    found = next(path for name in BROWSERS if (path := shutil.which(name)))
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        chromium = driver.chromium.launch(
            executable_path=found, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        for kernels in parser.parse_args().kernels:
            export, engine = Path(folder) / "made.sqlite", Path(folder) / "made.json"
            subprocess.run(
                [
                    sys.executable,
                    Path(__file__).with_name("make_trace.py"),
                    str(kernels),
                    export,
                    engine,
                ],
                check=True,
            )
            run(analyze(export, engine), Path(folder), chromium)


if __name__ == "__main__":
    main()
