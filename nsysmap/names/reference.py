"""The reference of the name decoder: every op code, pattern, family and word of its tables; writes
docs/names.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from nsysmap.core.errors import NsysmapError
from nsysmap.names.families import FAMILY_ROWS
from nsysmap.names.model import KernelName
from nsysmap.names.myelin_tables import OPS, PATTERNS, SOURCES, PatternRow
from nsysmap.names.tactic_words import ARCHITECTURES, FIELD_ROWS, WORD_ROWS


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the reference."""

    title: str
    text: str
    evidence: str
    source: str
    example: str


def explain(word: str) -> list[Entry]:
    """The entries of an op code, an operation, a family, a pattern or a word of a tactic's name.

    Raises NsysmapError if the tables have none.
    """
    wanted = word.strip().lower()
    entries = [
        *_op_entries(wanted),
        *_pattern_entries(wanted),
        *_family_entries(wanted),
        *_word_entries(wanted),
    ]
    if not entries:
        near = _near(wanted)
        raise NsysmapError(
            word,
            "no such op code, pattern, family or word",
            f"see docs/names.md{'; did you mean ' + near + '?' if near else ''}",
        )
    return entries


def _near(wanted: str) -> str:
    import difflib

    words = (
        [code for row in OPS for code in (row.code3, row.code4, row.op)]
        + [row.name for row in PATTERNS]
        + [row.name for row in FAMILY_ROWS]
    )
    found = difflib.get_close_matches(wanted, [word.lower() for word in words if word], n=3)
    return " or ".join(dict.fromkeys(found))


def _op_entries(wanted: str) -> list[Entry]:
    entries = []
    for row in OPS:
        if wanted not in (row.code3.lower(), row.code4.lower(), row.op.lower()):
            continue
        codes = " or ".join(code for code in dict.fromkeys((row.code4, row.code3)) if code)
        since = ", ".join(
            f"{code}: {evidence}"
            for code, evidence in ((row.code4, row.evidence4), (row.code3, row.evidence3))
            if code
        )
        where = {
            (True, False): "TensorRT 10.9 and later",
            (False, True): "TensorRT up to 10.8",
        }.get((bool(row.code4), bool(row.code3)), "")
        if row.code3 and row.code4 and row.code3 != row.code4:
            where = f"{row.code4} from TensorRT 10.9 on, {row.code3} before"
        entries.append(
            Entry(
                f"{codes}: Myelin op code",
                f"{row.op} ({row.cls}){'; ' + where if where else ''}",
                since,
                row.source,
                row.example,
            )
        )
    return entries


def _pattern_entries(wanted: str) -> list[Entry]:
    return [
        Entry(
            f"{row.name}: pattern of Myelin ops",
            f"{row.text}.  Ops: {row.expression}",
            row.evidence,
            "",
            row.example,
        )
        for row in PATTERNS
        if row.name == wanted
    ]


def _family_entries(wanted: str) -> list[Entry]:
    return [
        Entry(f"{row.name}: family", row.text, "", "", row.example)
        for row in FAMILY_ROWS
        if row.name == wanted
    ]


def _word_entries(wanted: str) -> list[Entry]:
    return [
        Entry(
            f"{row.word}: word of a tactic's name",
            f"{row.role or 'no field of its own'}{': ' + row.value if row.value else ''}",
            "",
            "",
            row.example,
        )
        for row in WORD_ROWS
        if row.word.lower() == wanted
    ]


def field_words(decoded: KernelName) -> list[tuple[str, str, str]]:
    """What a name contains: each field's title, its value, and the meaning (empty if the first two
    suffice).
    """
    known = {row.field: row for row in FIELD_ROWS}
    order = [row.field for row in FIELD_ROWS if row.field in decoded.fields]
    order += [field for field in decoded.fields if field not in known]
    found = []
    for field in order:
        value = str(decoded.fields[field])
        if value == "unknown":
            continue
        label, means = (
            (known[field].label, known[field].means)
            if field in known
            else (field.replace("_", " "), "")
        )
        found.append((label, value, _meaning(field, value, means)))
    return found


def _meaning(field: str, value: str, means: str) -> str:
    if field == "arch":
        number = value.removeprefix("sm").rstrip("af")
        name = ARCHITECTURES.get(number)
        return f"compute capability {number[:-1]}.{number[-1]}: {name}" if name else means
    if field == "transpose":
        return ", ".join(
            f"{matrix} {'transposed' if letter == 't' else 'not'}"
            for matrix, letter in zip("ABCD", value.lower(), strict=False)
        )
    return means


def page() -> str:
    """The reference page, docs/names.md."""
    lines = [
        "# Names: every code, family and pattern that the decoder knows",
        "",
        (
            "Generated from the tables of the decoder by `python -m nsysmap.names.reference >"
            " docs/names.md`; do not edit."
        ),
        (
            "`nsysmap decode NAME` decodes a name, `nsysmap decode --explain Sqr` prints one entry"
            " of this page."
        ),
        "",
        (
            "Evidence: **confirmed**, TensorRT's own metadata or NVIDIA's own text names the"
            " operation; **aligned**, the code"
        ),
        (
            "stands in the same place of the same fused pattern as a confirmed one of the other"
            " generation; **likely**, the"
        ),
        "context of a model fits and nothing contradicts; **guess**, plausible only.",
        "",
        "## Families",
        "",
        "| family | is | example |",
        "|---|---|---|",
        *(f"| {row.name} | {_cell(row.text)} | `{_cell(row.example)}` |" for row in FAMILY_ROWS),
        "",
        "## Myelin op codes",
        "",
        (
            "Codes have up to four letters since TensorRT 10.9 and three before.  A list longer"
            " than 88 letters is cut and ends in `Etc`."
        ),
        "",
        "| from 10.9 | to 10.8 | operation | class | evidence | source | example |",
        "|---|---|---|---|---|---|---|",
    ]
    for op in OPS:
        evidence = (
            op.evidence4
            if op.evidence4 == op.evidence3 or not op.code3
            else f"{op.evidence4 or '–'} / {op.evidence3}"
        )
        codes = f"| {op.code4 or '–'} | {op.code3 or '–'} "
        example = f"`{_cell(op.example)}`" if op.example else "not seen yet"
        lines.append(f"{codes}| {op.op} | {op.cls} | {evidence} | {_cell(op.source)} | {example} |")
    lines += [
        "",
        (
            "Traps: `Con` is concat, never convolution; `Res` is reshape, never residual or resize;"
            " `Sqr` is square root;"
        ),
        (
            "`Max` is a reduction or elementwise up to 10.8 and elementwise only from 10.9 on,"
            " where the reduction is `Maxr`;"
        ),
        "`Fc` hides what its epilogue does.",
        "",
        "Sources: " + "; ".join(f"**{short}** {long}" for short, long in SOURCES) + ".",
        "",
        "## Patterns",
        "",
        (
            "Over four-letter codes: `?` optional, `*` any number, `( | )` choice, `^` and `$`"
            " begin and end of the list,"
        ),
        "`>` must follow but is not covered.",
        "",
        "| pattern | is | ops | evidence | example |",
        "|---|---|---|---|---|",
        *(_pattern_row(row) for row in PATTERNS),
        "",
        (
            "Beside these, a name of data movement only is `pure-data-movement`, one of casts only"
            " `pure-cast`, one of both"
        ),
        "`data-movement-and-cast`.",
        "",
        "## Fields of tactic and library kernel names",
        "",
        "| field | shown as | means |",
        "|---|---|---|",
        *(f"| {field.field} | {field.label} | {field.means or '–'} |" for field in FIELD_ROWS),
        "",
        "## Words of tactic and library kernel names",
        "",
        "| word | field | value | example |",
        "|---|---|---|---|",
        *(
            f"| `{row.word}` | {row.role or '–'} | {_cell(row.value) or '–'} |"
            f" `{_cell(row.example)}` |"
            for row in WORD_ROWS
        ),
        "",
    ]
    return "\n".join(lines)


def _pattern_row(row: PatternRow) -> str:
    return (
        f"| {row.name} | {_cell(row.text)} | `{_cell(row.expression)}` | {row.evidence} |"
        f" `{_cell(row.example)}` |"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    import sys

    sys.stdout.write(page())
