"""The gate's verdict as JUnit XML: a test case a limit."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, quoteattr

from nsysmap.gate.checks import BROKEN, KEPT, UNKNOWN, Verdict

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit_xml(verdict: Verdict) -> str:
    """One testsuite; a broken limit is a failure, one that cannot be told an error."""
    broken = sum(check.status == BROKEN for check in verdict.checks)
    unknown = sum(check.status == UNKNOWN for check in verdict.checks)
    counts = f'tests="{len(verdict.checks)}" failures="{broken}" errors="{unknown}"'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="nsysmap gate" {counts}>']
    lines.append(f'  <testsuite name={_quoted(verdict.source)} {counts} skipped="0" time="0">')
    for check in verdict.checks:
        section, _, name = check.name.partition(".")
        case = f'    <testcase classname={_quoted("budget." + section)} name={_quoted(name)} time="0"'
        if check.status == KEPT:
            lines.append(case + "/>")
            continue
        kind = "failure" if check.status == BROKEN else "error"
        message = f"{check.limit}, is {check.value}: {check.told}"
        lines += [
            case + ">",
            f"      <{kind} type={_quoted(check.status)} message={_quoted(message)}>{_text(message)}</{kind}>",
            "    </testcase>",
        ]
    notes = "\n".join(verdict.notes)
    lines += [*([f"    <system-out>{_text(notes)}</system-out>"] if notes else []), "  </testsuite>", "</testsuites>"]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return quoteattr(_NOT_XML.sub("�", text).replace("\n", " "))


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("�", text))
