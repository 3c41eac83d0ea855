"""Lists the other tools that are installed on this machine, and what they enable: what `nsysmap
doctor` shows.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from nsysmap.core.errors import NsysmapError
from nsysmap.core.extras import EXTRA_PACKAGES, ExtraPackage, install_line
from nsysmap.core.records import dataclass
from nsysmap.core.system import is_root
from nsysmap.inputs.nsys.export_cache import cache_folder
from nsysmap.inputs.nsys.program import installed_nsys
from nsysmap.inputs.nsys.record import PERMISSION
from nsysmap.text.lines import rendered, table
from nsysmap.text.terminal import escaped

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_DRIVER = Path("/proc/driver/nvidia")
_TOLD = {"yes": "ok", "no": "--", "unknown": "?"}

_NEEDED = ("duckdb", "pyarrow", "numpy", "pandas", "networkx", "matplotlib", "click")
_TENSORRT = ("tensorrt", "tensorrt_rtx")
_CALLED = {"distributed": "Dask"}  # packages that are better known by another name

State = Literal["yes", "no", "unknown"]


@dataclass(frozen=True)
class ToolFound:
    """One thing that was looked for."""

    thing: str
    state: State
    what: str  # what was found, or what is missing
    allows: str  # what it allows, or what is not possible without it and how to get it


def doctor() -> tuple[ToolFound, ...]:
    """Everything that was looked for, in the order in which a user meets it."""
    extras = map(_extra, EXTRA_PACKAGES)
    return (*_nsys(), _tensorrt(), _trtexec(), *extras, _browser(), *_gpu(), _cache())


def doctor_text(found: Sequence[ToolFound], *, width: int = 100) -> str:
    """One paragraph per tool: whether it is there, what was found, and what it enables."""
    rows = [
        row
        for one in found
        for row in ((_TOLD[one.state], one.thing, escaped(one.what)), ("", "", escaped(one.allows)))
    ]
    return rendered(table(("", "", ""), rows, max(60, width), "kkw", indent=0), colour=False)


def version_text(own: str) -> str:
    """The version of nsysmap, of Python, of the packages that it uses and of nsys, a line each, for
    a bug report. Packages are only looked up, not imported.
    """
    lines = [
        f"nsysmap, version {own}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        ", ".join(f"{name} {_version(name) or 'missing'}" for name in _NEEDED),
        _nsys_version(),
    ]
    found = {name: _version(name) for name in _TENSORRT}
    found |= {one.package: _extra_version(one) for one in EXTRA_PACKAGES}
    there = [f"{name} {told}" for name, told in found.items() if told]
    absent = [name for name, told in found.items() if not told]
    if there:
        lines.append(f"optional: {', '.join(there)}")
    if absent:
        lines.append(f"optional, not installed: {', '.join(absent)}")
    return "".join(f"{line}\n" for line in lines)


def doctor_json(found: Sequence[ToolFound]) -> list[dict[str, object]]:
    """The same facts as JSON; ``found`` is null if unknown."""
    known = {"yes": True, "no": False, "unknown": None}
    return [
        {"thing": one.thing, "found": known[one.state], "what": one.what, "allows": one.allows}
        for one in found
    ]


def _nsys_version() -> str:
    try:
        return f"nsys {next(iter(installed_nsys())).version}"
    except NsysmapError:
        return "nsys: none found"


def _nsys() -> Iterator[ToolFound]:
    try:
        first = True
        for nsys in installed_nsys():
            used = (
                "used first: exports reports up to this version, and captures for `nsysmap record`"
            )
            yield ToolFound(
                "nsys",
                "yes",
                f"{nsys.version} ({_shown(nsys.path)})",
                used if first else "used for reports of newer versions",
            )
            first = False
    except NsysmapError as error:
        without = (
            "Reports can be opened without it: nsysmap reads them itself. `nsysmap record` needs"
            " nsys"
        )
        yield ToolFound(
            "nsys",
            "no",
            f"{error.where}: {error.what}",
            f"{without}: {error.remedy}.",
        )


def _tensorrt() -> ToolFound:
    for package in (
        "tensorrt",
        "tensorrt_rtx",
        "tensorrt-cu12",
        "tensorrt-cu13",
        "tensorrt-rtx-cu12-bindings",
        "tensorrt-rtx-cu13-bindings",
    ):
        if told := _version(package):
            allows = (
                "opens .engine and .plan files built by this version, on a GPU like the one they"
                " were built for"
            )
            return ToolFound("TensorRT", "yes", f"{told} (Python package {package})", allows)
    without = (
        ".engine and .plan files cannot be opened: give the file of trtexec --exportLayerInfo, or"
        " pip install the tensorrt version"
    )
    return ToolFound(
        "TensorRT",
        "no",
        "the Python package tensorrt is not installed",
        f"{without} that built the engine.",
    )


def _trtexec() -> ToolFound:
    path = shutil.which("trtexec")
    if path is None:
        without = (
            "not needed to read captures made elsewhere; it comes with TensorRT and exports an"
            " engine's layers (--exportLayerInfo)"
        )
        return ToolFound("trtexec", "no", "is not on PATH", without)
    allows = (
        "exports an engine's layers: trtexec --loadEngine=FILE --exportLayerInfo=engine.json"
        " --profilingVerbosity=detailed"
    )
    return ToolFound("trtexec", "yes", _shown(path), allows)


def _extra(extra: ExtraPackage) -> ToolFound:
    thing = _CALLED.get(extra.package, extra.package)
    told = _extra_version(extra)
    if told is None:
        what = f"the Python package {extra.package} is not installed"
    elif _major(told) < extra.least:
        what = f"{told} (Python package {extra.package}) is older than {extra.least}"
    else:
        return ToolFound(thing, "yes", f"{told} (Python package {extra.package})", extra.allows)
    return ToolFound(thing, "no", what, f"{extra.without}: {install_line((extra,))}")


def _major(told: str) -> int:
    first = told.partition(".")[0]
    return int(first) if first.isdecimal() else 0


def _extra_version(extra: ExtraPackage) -> str | None:
    versions = map(_version, (extra.package, *extra.also))
    return next((found for found in versions if found), None)


def _browser() -> ToolFound:
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if path is None:
        return ToolFound(
            "chromium",
            "no",
            "is not on PATH",
            "pages (.html) open in any browser, here or elsewhere; only their tests need this one",
        )
    return ToolFound("chromium", "yes", _shown(path), "opens pages (.html), and runs their tests")


def _gpu() -> Iterator[ToolFound]:
    driver = _text(_DRIVER / "version")
    if driver is None:
        yield ToolFound(
            "GPU",
            "no",
            "no NVIDIA driver is loaded",
            "not needed to read captures made elsewhere; `nsysmap record` needs one",
        )
        return
    told = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", driver)
    yield ToolFound(
        "GPU",
        "yes",
        f"NVIDIA driver {told.group(1) if told else 'of an unknown version'}",
        "programs can be captured here",
    )
    params = _text(_DRIVER / "params")
    restricted = (
        None
        if params is None
        else re.search(r"^RmProfilingAdminOnly:\s*(\d)", params, re.MULTILINE)
    )
    may = "hardware counters can be sampled: nsysmap record --gpu-metrics"
    if restricted is None:
        yield ToolFound(
            "counters",
            "unknown",
            "the driver does not say who may read them",
            f"{may}, if permitted",
        )
    elif restricted.group(1) == "0" or is_root():
        whom = (
            "every user"
            if restricted.group(1) == "0"
            else "root (you are root); a container may still forbid it"
        )
        yield ToolFound("counters", "yes", f"may be read by {whom}", may)
    else:
        yield ToolFound(
            "counters",
            "no",
            "may be read only by root (ERR_NVGPUCTRPERM)",
            f"no --gpu-metrics as this user: {PERMISSION}",
        )


def _cache() -> ToolFound:
    folder = cache_folder()
    place = next(place for place in (folder, *folder.parents) if place.exists())
    if place.is_dir() and os.access(place, os.W_OK):
        return ToolFound(
            "cache", "yes", _shown(folder), "exports are kept: nsys exports each report only once"
        )
    return ToolFound(
        "cache",
        "no",
        f"{_shown(folder)} cannot be written",
        "set NSYSMAP_CACHE to a folder that can, or give the export of a report",
    )


def _shown(path: str | Path) -> str:
    """The path with ~ for the user's home: the user's name does not belong in an answer that is
    pasted.
    """
    try:
        return str("~" / Path(path).relative_to(Path.home()))
    except (ValueError, RuntimeError):  # not in it, or there is none
        return str(path)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
