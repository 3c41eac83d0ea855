"""What rules price beside what making the change saved, on engines that TensorRT built.

    python benchmarks/findings.py [CAPTURES]

CAPTURES (fixtures/real_trt unless given) holds findings.tsv: the report, the rule, the change that
was made, and what an inference took before and after it, without nsys or (where it says so) under
nsys.  A rule's price is what may be saved at most, of the time in kernels: it holds if the measured
saving is not above it by more than 10 %, and it is of use if at least a third of it was saved.  A
change that saved nothing (less than 1 %) must have no finding.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from nsysmap.api import analyze

ROOT = Path(__file__).parents[1]
NOTHING = 0.01
ABOVE = 1.1
OF_USE = 1 / 3


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0]) if arguments else ROOT / "fixtures" / "real_trt"
    with (folder / "findings.tsv").open(encoding="utf-8", newline="") as opened:
        rows = list(csv.DictReader(opened, delimiter="\t"))
    print(f"{'report':<20}{'rule':<25}{'at most':>9}{'saved':>9}  verdict             change")
    verdicts = []
    for row in rows:
        priced_ns = price_ns(folder, row["report"], row["rule"])
        before, after = float(row["before_us"]), float(row["after_us"])
        verdicts.append(verdict(priced_ns, (before - after) * 1000, before * 1000))
        told = "none" if priced_ns is None else f"{priced_ns / 1000:.1f}"
        change = row["change"] + (
            "" if row["measured"] == "without nsys" else f" ({row['measured']})"
        )
        print(
            f"{row['report']:<20}{row['rule']:<25}{told:>9}{before - after:>9.1f} "
            f" {verdicts[-1]:<20}{change}"
        )
    right = sum(one.startswith("true") for one in verdicts)
    print(f"{len(rows)} findings: {right} true; prices and savings in µs per inference")
    return 0


def price_ns(folder: Path, report: str, rule: str) -> float | None:
    """What a rule prices an inference's findings at; none if it finds nothing."""
    analysis = analyze(
        folder / f"{report}.nsys-rep", folder / f"{report.rsplit('-', 1)[0]}.engine.json"
    )
    told = analysis.query(
        "SELECT sum(f.cost_ns) AS cost_ns, count(*) AS findings, (SELECT sum(inferences) FROM"
        f" steady_state) AS inferences FROM findings f WHERE f.rule = '{rule}'"
    )
    (only,) = told.to_dict("records")
    return float(only["cost_ns"]) / float(only["inferences"]) if only["findings"] else None


def verdict(priced_ns: float | None, saved_ns: float, before_ns: float) -> str:
    nothing = saved_ns < NOTHING * before_ns
    if priced_ns is None:
        return "true: no finding" if nothing else "MISSED"
    if nothing:
        return "FALSE"
    if saved_ns > ABOVE * priced_ns:
        return "PRICE TOO LOW"
    return "true" if saved_ns >= OF_USE * priced_ns else "true, far below"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
