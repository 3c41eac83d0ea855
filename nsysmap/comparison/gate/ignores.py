"""Findings that a budget ignores, each with a reason and an expiry date."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.core.records import dataclass
from nsysmap.rules.finding import Finding
from nsysmap.rules.parameters import read_toml


@dataclass(frozen=True)
class Ignore:
    """One rule, or one rule for one layer, that is ignored until a date."""

    rule: str
    place: str = ""  # a layer's name or title, or a pattern with *
    reason: str = ""
    until: datetime.date | None = None

    def covers(self, finding: Finding, today: datetime.date) -> bool:
        """Whether this finding is ignored on that date."""
        places = (finding.layer or "", finding.layer_title or "")
        on_it = fnmatchcase(finding.rule, self.rule) and (
            not self.place or any(fnmatchcase(one, self.place) for one in places)
        )
        return on_it and not self.expired(today)

    def expired(self, today: datetime.date) -> bool:
        """Whether it has expired."""
        return self.until is not None and today > self.until


def parsed(texts: Iterable[str]) -> list[Ignore]:
    """The ignores of --ignore RULE[:PLACE]."""
    found = []
    for text in texts:
        rule, _, place = text.partition(":")
        if not rule.strip():
            raise NsysmapError(
                f"--ignore {text}", "does not name a rule", "write RULE or RULE:LAYER"
            )
        found.append(Ignore(rule.strip(), place.strip(), "--ignore"))
    return found


def read_ignores(path: str | Path) -> list[Ignore]:
    """The ignores of a file: TOML with [[ignore]] tables, each with rule, reason, and optionally
    place and until (a date).
    """
    file = Path(path)
    document = read_toml(file, "docs/gate.md shows an ignore file")
    rows = document.get("ignore")
    if set(document) != {"ignore"} or not isinstance(rows, list):
        raise NsysmapError(
            str(file),
            "has no [[ignore]], or has other sections",
            "docs/gate.md shows an ignore file",
        )
    return [_ignore(str(file), row) for row in rows]


def _ignore(file: str, row: object) -> Ignore:
    if not isinstance(row, dict) or not set(row) <= {"rule", "place", "reason", "until"}:
        raise NsysmapError(
            file,
            "an [[ignore]] has a key other than rule, place, reason and until",
            "docs/gate.md shows one",
        )
    rule, reason, place, until = (row.get(key) for key in ("rule", "reason", "place", "until"))
    if not isinstance(rule, str) or not rule or not isinstance(reason, str) or not reason.strip():
        raise NsysmapError(
            file, "an [[ignore]] lacks its rule or its reason", 'write rule = "…" and reason = "…"'
        )
    if place is not None and not isinstance(place, str):
        raise NsysmapError(file, f"the place of {rule} is not text", "write the layer's name")
    if until is not None and (
        isinstance(until, datetime.datetime) or not isinstance(until, datetime.date)
    ):
        raise NsysmapError(
            file, f"until of {rule} is not a date", "write it as 2027-01-31, without quotes"
        )
    return Ignore(rule, place or "", reason, until)
