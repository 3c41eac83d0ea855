"""The optional packages: what each is for, which are not installed, and the line to install them.

They are only looked up here; who uses one imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass


@dataclass(frozen=True)
class ExtraPackage:
    """A package that some commands need and most do not."""

    package: str  # as pip names it
    module: str
    allows: str
    without: str  # what is not possible
    least: int = 0  # the oldest major version that will do
    also: tuple[str, ...] = ()  # other packages that have the module


EXTRA_PACKAGES = (
    ExtraPackage(
        "onnx",
        "onnx",
        "--onnx MODEL names the nodes of the model that run inside opaque regions",
        "no --onnx MODEL, and no nsysmap fix",
    ),
    ExtraPackage("onnx-ir", "onnx_ir", "nsysmap fix edits ONNX models", "no nsysmap fix"),
    ExtraPackage(
        "onnxruntime",
        "onnxruntime",
        "nsysmap fix --apply compares what the edited model computes",
        "no nsysmap fix --apply",
        also=("onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino"),
    ),
    ExtraPackage(
        "distributed", "distributed", "nsysmap fleet reads many reports at once", "no nsysmap fleet"
    ),
    ExtraPackage(
        "fsspec", "fsspec", "nsysmap fleet reads reports in other file systems", "no nsysmap fleet"
    ),
    ExtraPackage("mcp", "mcp", "nsysmap mcp answers coding agents", "no nsysmap mcp", least=2),
)


def missing_extras(packages: Sequence[str]) -> list[ExtraPackage]:
    """The packages among these that are not installed."""
    return [one for one in EXTRA_PACKAGES if one.package in packages and not _found(one.module)]


def need_extras(what: str, *packages: str) -> None:
    """Raises NsysmapError, about ``what``, if one of its packages is not installed: it has all of
    them, and one line that installs them.
    """
    if missing := missing_extras(packages):
        raise extras_error(what, missing)


def extras_error(what: str, missing: Sequence[ExtraPackage]) -> NsysmapError:
    """The error that ``what`` needs packages that are not installed."""
    names = [one.package for one in missing]
    told = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    are = "s" if len(names) > 1 else ""
    return NsysmapError(
        what,
        f"needs the package{are} {told}, which {'are' if are else 'is'} not installed",
        f"install {'them' if are else 'it'}: {install_line(missing)}",
    )


def install_line(packages: Sequence[ExtraPackage]) -> str:
    """The command to paste, which installs them."""
    asked = (f"'{one.package}>={one.least}'" if one.least else one.package for one in packages)
    return f"pip install {' '.join(asked)}"


def extra_package(name: str) -> ExtraPackage:
    """The package of that name."""
    return next(one for one in EXTRA_PACKAGES if one.package == name)


def _found(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # hidden, or half of it is there
        return False
