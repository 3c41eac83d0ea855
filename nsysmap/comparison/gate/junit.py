"""The gate's verdict as JUnit XML, one test case per limit, valid against Ant's schema, the
strictest.
"""

from __future__ import annotations

from collections import Counter
from xml.sax.saxutils import escape, quoteattr

from nsysmap.comparison.gate.checks import BROKEN, KEPT, UNKNOWN, Verdict
from nsysmap.text.terminal import escaped


def junit_xml(verdict: Verdict) -> str:
    """One test suite: an exceeded limit is a failure, an undetermined one an error."""
    broken = sum(check.status == BROKEN for check in verdict.checks)
    unknown = sum(check.status == UNKNOWN for check in verdict.checks)
    counts = f'tests="{len(verdict.checks)}" failures="{broken}" errors="{unknown}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites>"]
    when = f'timestamp="{verdict.day.isoformat()}T00:00:00" hostname="localhost"'
    lines.append(
        f'  <testsuite id="0" package="nsysmap.gate" name={_quoted(verdict.source)} {when} {counts}'
        ' time="0">'
    )
    lines.append("    <properties/>")
    limits = Counter(check.name for check in verdict.checks)
    for check in verdict.checks:
        section, _, name = check.name.partition(".")
        name += f": {check.limit}" if limits[check.name] > 1 else ""
        case = (
            f'    <testcase classname={_quoted("budget." + section)} name={_quoted(name)} time="0"'
        )
        if check.status == KEPT:
            lines.append(case + "/>")
            continue
        kind = "failure" if check.status == BROKEN else "error"
        message = f"{check.limit}, is {check.value}: {check.told}"
        lines += [
            case + ">",
            (
                f"      <{kind} type={_quoted(check.status)}"
                f" message={_quoted(message)}>{_text(message)}</{kind}>"
            ),
            "    </testcase>",
        ]
    notes = "\n".join(map(_text, verdict.notes))
    lines += [
        f"    <system-out>{notes}</system-out>",
        "    <system-err/>",
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return quoteattr(escaped(text))


def _text(text: str) -> str:
    return escape(escaped(text))
