"""A budget: the limits for a capture, read from a TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.rules.parameters import read_toml

SECTIONS = ("time", "idle", "layers", "coverage", "findings")
_UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_AMOUNT = re.compile(
    r"(?P<more>\+?)\s*(?P<number>[0-9]{1,18}(?:\.[0-9]{1,18})?)\s*(?P<unit>ns|us|µs|ms|s|%)"
)
_TIME_LIMITS = ("per_inference", "recorded")
_LIMITS = 1_000  # of one file, which people write by hand
_MOST_FINDINGS = 1_000_000_000  # a limit that nothing can reach is a mistake
_EXPECTED = (
    'write a time ("350 us"), a share ("12 %"), or an increase over the baseline ("+2 %", "+5 us")'
)


@dataclass(frozen=True)
class Limit:
    """One limit. A share refers to the time per inference (in [coverage] to the kernel time); an
    increase is over the baseline.
    """

    section: str
    # what is limited: a cause, a layer's name or pattern, a rule or severity; per_inference
    name: str
    kind: str  # time, share, more-time, more-share or count
    value: float  # ns, share or number

    @property
    def relative(self) -> bool:
        """Whether it is relative to a baseline."""
        return self.kind in ("more-time", "more-share")

    @property
    def of_share(self) -> bool:
        """Whether it is a share, or more of one."""
        return self.kind in ("share", "more-share")


def read_budget(path: str | Path) -> tuple[Limit, ...]:
    """The limits in a budget file. Raises NsysmapError if it cannot be read or a limit makes no
    sense.
    """
    file = Path(path)
    document = read_toml(file, "docs/gate.md shows a budget")
    found = [
        limit for section, held in document.items() for limit in _section(str(file), section, held)
    ]
    if not found:
        raise NsysmapError(str(file), "has no limits", "docs/gate.md shows a budget")
    if len(found) > _LIMITS:
        raise NsysmapError(
            str(file),
            f"has more than {_LIMITS:,} limits",
            "use patterns for layers, such as 'encoder.layer.*'",
        )
    return tuple(found)


def _section(file: str, section: str, held: object) -> list[Limit]:
    if section not in SECTIONS:
        raise NsysmapError(
            file, f"has a section [{section}]", f"the sections are {', '.join(SECTIONS)}"
        )
    if not isinstance(held, Mapping):
        raise NsysmapError(
            file, f"{section} is not a section", f"write [{section}] above its limits"
        )
    return [
        limit for name, value in held.items() for limit in _limits(file, section, str(name), value)
    ]


def _limits(file: str, section: str, name: str, value: object) -> list[Limit]:
    if section == "time" and name not in _TIME_LIMITS:
        raise NsysmapError(file, f"[time] has {name}", f"it can have {' and '.join(_TIME_LIMITS)}")
    if section == "coverage" and name != "mapped":
        raise NsysmapError(file, f"[coverage] has {name}", "it can have mapped")
    if isinstance(value, list):
        return [limit for one in value for limit in _limits(file, section, name, one)]
    if section == "findings":
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not 0 <= value <= _MOST_FINDINGS
        ):
            raise NsysmapError(
                file,
                f"findings.{name} is not a number of findings",
                "write the maximum number, such as 0",
            )
        return [Limit(section, name, "count", float(value))]
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise NsysmapError(file, f"{section}.{name} is not a limit", _EXPECTED)
    share = match["unit"] == "%"
    amount = float(match["number"]) * (0.01 if share else _UNITS[match["unit"]])
    kind = ("more-" if match["more"] else "") + ("share" if share else "time")
    if section == "coverage" and kind != "share":
        raise NsysmapError(
            file,
            f"coverage.{name} is not a share",
            'write the minimum share of kernel time with a layer, such as "99 %"',
        )
    if section == "time" and kind == "share":
        raise NsysmapError(
            file,
            f"time.{name} is a share of itself",
            'write a time, or an increase over the baseline: "+2 %"',
        )
    return [Limit(section, name, kind, amount)]
