"""How decoded names are shown: on a terminal, as JSON, from standard input, and the reference
page.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.names.decode import decode
from nsysmap.names.families import FAMILY_ROWS
from nsysmap.names.myelin_tables import OPS, PATTERNS
from nsysmap.names.reference import explain, page
from nsysmap.output.names import names_json, names_text, printable
from tests.places import ROOT

LAYERNORM = "__myl_AddCastMeanSubMulMeanAddSqrtDivMulCastMulAdd_0x1f_com_vec"


def _run(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [
        sys.executable,
        "-c",
        "from nsysmap.cli.main import main; main()",
        "decode",
        *arguments,
    ]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, cwd=ROOT)


def test_decode_prints_what_a_name_is_its_ops_and_patterns() -> None:
    out = _run(LAYERNORM).stdout.decode()
    assert out.startswith(LAYERNORM + "\n")
    assert "Add Cast ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Cast Mul Add" in " ".join(
        out.split()
    )
    assert "layernorm (ops 2-13)" in out
    assert "\x1b" not in out


def test_decode_reads_one_name_a_line_and_skips_empty_lines() -> None:
    done = _run(
        "--json", stdin=LAYERNORM.encode() + b"\r\n\n" + b"ampere_sgemm_128x64_tn\n\xff\xfe\n"
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["family"] for row in rows] == ["myelin", "cublas", "unknown"]
    assert rows[0]["name"] == LAYERNORM
    assert rows[0]["ops"][2] == {
        "code": "Mean",
        "op": "ReduceMean",
        "class": "reduction",
        "evidence": "confirmed",
    }
    assert rows[0]["fields"]["hash"] == "0x1f"
    assert rows[0]["rest"] == ""


def test_json_has_all_that_is_known() -> None:
    shown = names_json(decode(LAYERNORM))
    assert set(shown) == {
        "name",
        "family",
        "kind",
        "summary",
        "generation",
        "ops",
        "patterns",
        "fields",
        "tensor_cores",
        "pieces",
        "rest",
    }


def test_control_characters_are_shown_as_escapes() -> None:
    text = names_text(decode("a\x1b[31m\x07b\nc\u202ed"), colour=False)
    assert text.startswith(r"a\x1b[31m\x07b\nc\u202ed")
    assert "\x1b" not in text


def test_colour_is_for_terminals() -> None:
    assert "\x1b[" in names_text(decode(LAYERNORM), colour=True)
    assert "\x1b[" not in names_text(decode(LAYERNORM), colour=False)


def test_what_is_not_confirmed_is_marked_and_the_marks_are_explained() -> None:
    text = names_text(decode("__myl_SinZorkCums_0x1f"), colour=False)
    assert "Sin~  Zork??  CumSum?" in text
    assert "~ likely, not confirmed; ? a guess; ?? unknown" in text
    assert "Zork  (not understood)" in text


@given(st.text(), st.integers(40, 200))
def test_lines_fit_and_hold_nothing_that_a_terminal_obeys(name: str, width: int) -> None:
    lines = names_text(decode(name), colour=False, width=width).split("\n")
    assert all(len(line) <= width for line in lines)
    assert all(printable(line) == line for line in lines)


def test_long_names_wrap_on_a_terminal_and_are_whole_in_a_pipe() -> None:
    name = (
        "void at::native::vectorized_elementwise_kernel<(int)4, "
        + "ns::Functor<float, " * 40
        + "int"
        + ">" * 40
        + ">(int)"
    )
    assert (
        max(len(line) for line in names_text(decode(name), colour=False, width=80).split("\n"))
        <= 80
    )
    done = _run("--", name)
    assert done.stdout.decode().splitlines()[0] == name
    assert all(line[2:19].strip() for line in done.stdout.decode().splitlines()[1:]), (
        "one line an entry"
    )


def test_explain_prints_one_entry() -> None:
    out = _run("--explain", "Sqr").stdout.decode()
    assert out.startswith("Sqrt or Sqr: Myelin op code\n")
    assert "confirmed" in out


@pytest.mark.parametrize("word", ["layernorm", "xmma", "Con", "Concat", "ffma", "MAXR"])
def test_codes_operations_patterns_families_and_words_are_explained(word: str) -> None:
    assert explain(word)


def test_an_unknown_word_is_one_line_that_names_the_nearest() -> None:
    done = _run("--explain", "layernrm")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().count("\n") == 1
    assert "layernorm" in done.stderr.decode()


def test_the_reference_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "names.md").read_text(encoding="utf-8") == page()


def test_the_reference_page_lists_every_code_pattern_and_family() -> None:
    text = page()
    for entry in [
        *(row.code4 or row.code3 for row in OPS),
        *(row.name for row in PATTERNS),
        *(row.name for row in FAMILY_ROWS),
    ]:
        assert f"| {entry} |" in text


@pytest.mark.parametrize("row", FAMILY_ROWS, ids=lambda row: row.name)
def test_every_family_is_the_family_of_its_example(row: object) -> None:
    assert decode(str(getattr(row, "example", ""))).family == getattr(row, "name", "")


def test_decode_starts_without_the_heavy_libraries() -> None:
    code = (
        "import sys; from nsysmap.names.decode import decode; import nsysmap.output.names;"
        " decode('x'); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, cwd=ROOT
    ).stdout.split()
    assert not {
        "numpy",
        "pandas",
        "pyarrow",
        "duckdb",
        "matplotlib",
        "yaml",
        "networkx",
        "rich",
    } & set(loaded)


def test_a_name_that_says_only_whose_it_is_has_what_its_family_is() -> None:
    told = names_text(decode("generatedNativePointwise"), colour=False)
    assert "PWN(...)" in told and "nsysmap layers ENGINE REPORT" in told
    assert "family" not in names_text(
        decode("__myl_AddMulMeanAddSqrtDivMulMul_0x" + "a" * 32), colour=False
    )
