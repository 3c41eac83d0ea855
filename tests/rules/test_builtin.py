"""The rules that come with nsysmap: each answers its own cases, and the documentation says what
they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import duckdb
import pytest

from nsysmap.advice.conditions import advice_to
from nsysmap.advice.program import (
    CUDA,
    ONNX_RUNTIME,
    PYTORCH,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_ENGINES,
    TORCH_TENSORRT,
    Program,
)
from nsysmap.core.schema import RULE_TABLES
from nsysmap.core.trace_schema import OTHER_HOST, PYTHON
from nsysmap.output.rules import pages
from nsysmap.rules.cases import run_case
from nsysmap.rules.packs import builtin_rules_dir, load_rules, rule_paths
from nsysmap.rules.ready_rules import (
    READY_RULES,
    ReadyRule,
    own_values,
    ready_rules,
    ready_text,
)
from nsysmap.rules.rule_file import Rule, read_rule
from nsysmap.rules.sandbox.limits import Sandbox
from nsysmap.timing.peak_rates import CORES, TENSOR
from tests.places import ROOT
from tests.trtexec_options import lacking

ASKED_FOR = {
    "capture": (
        """whole-graph-trace no-layer-ranges names-only-engine engine-mismatch warm-up-included profiler-overhead unstable-time
        impossible-rows"""  # noqa: E501
    ),
    "launch": (
        """launch-bound enqueue-bound tiny-kernels cuda-graph-would-help cuda-graph-would-not-help graph-blockers default-stream
        gap-between-graphs"""  # noqa: E501
    ),
    "host": (
        """blocking-sync idle-between-inferences allocation-in-loop module-load-in-loop one-thread-many-contexts lock-contention"""  # noqa: E501
    ),
    "copy": (
        """pageable-copy blocking-copy copy-not-overlapped many-small-copies blocking-memset weights-streamed"""  # noqa: E501
    ),
    "fusion": (
        """attention-not-fused norm-split softmax-split epilogue-missed pointwise-chain qkv-not-merged data-movement cast-chain
        fragmented-myelin parallel-small-kernels split-inside-region"""  # noqa: E501
    ),
    "reformat": (
        """reformat-cost reformat-ping-pong reformat-at-input reformat-at-output dtype-converting-reformat"""  # noqa: E501
    ),
    "precision": (
        """fp32-engine fp32-in-reduced-engine tensor-cores-missed channel-alignment int8-with-float-output unfused-quantize
        fp16-norm quantized-latency-bound"""  # noqa: E501
    ),
    "hotspot": (
        """hot-layer hot-region under-filled-gpu memory-bound compute-bound time-not-in-kernels"""
    ),
    "counters": (
        """clock-fell gpu-used-by-others tensor-cores-idle memory-traffic-above-tensors idle-sms-at-kernel-end"""  # noqa: E501
    ),
}


LARGE = {"kernels", "gaps", "api_calls", "nvtx_ranges"}
NOTHING_TO_CHECK = {"cuda-graph-would-not-help", "fp16-norm"}
"""Rules whose advice changes nothing that a second capture would show."""


@cache
def rules() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_rules([builtin_rules_dir()])}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(RULE_TABLES) as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "case"), [(name, case.name) for name, rule in rules().items() for case in rule.cases]
)
def test_a_rule_answers_its_case(name: str, case: str, sandbox: Sandbox) -> None:
    rule = rules()[name]
    result = run_case(rule, next(one for one in rule.cases if one.name == case), sandbox)
    assert result.wrong is None


@pytest.mark.parametrize(
    ("name", "group"),
    [(name, group) for group, names in ASKED_FOR.items() for name in names.split()],
)
def test_every_rule_asked_for_is_there_in_its_group(name: str, group: str) -> None:
    assert rules()[name].group == group


@pytest.mark.parametrize("name", rules())
def test_a_rule_has_a_case_for_the_false_alarm_that_it_must_not_raise(name: str) -> None:
    silent = [case for case in rules()[name].cases if case.skips is None and not case.finds]
    assert len({str(case.given) for case in silent}) >= 2, (
        "one case of nothing wrong, and one of what looks wrong and is not"
    )
    assert all(any(case.given.values()) for case in silent), (
        "a rule finds nothing in no rows anyway"
    )


@pytest.mark.parametrize("name", rules())
def test_a_rule_says_what_its_cost_stands_for_and_how_to_check_that_the_advice_helped(
    name: str,
) -> None:
    rule = rules()[name]
    assert re.search(r"[Tt]he\s+cost(\s+is|,)\s", rule.why)
    said = " ".join(" ".join(part.text.split()) for part in rule.advice)
    assert ("To check that it helped:" in said) == (name not in NOTHING_TO_CHECK)


@pytest.mark.parametrize("name", rules())
def test_a_share_always_means_the_same(name: str) -> None:
    assert "share" not in rules()[name].columns


@pytest.mark.parametrize("name", rules())
def test_a_rule_reads_no_more_columns_of_large_tables_than_it_names(name: str) -> None:
    assert not [
        query.sql
        for query in rules()[name].queries
        if query.columns is None and query.tables & LARGE
    ]


@cache
def unchecked() -> dict[str, Rule]:
    return {rule.name: rule for rule in load_rules([builtin_rules_dir()], check_own=False)}


@pytest.mark.parametrize("name", rules())
def test_an_unchecked_rule_is_the_checked_one_but_for_what_only_the_check_needs(name: str) -> None:
    quick, whole = unchecked()[name], rules()[name]
    kept = replace(
        quick,
        query=whole.query,
        requires=whole.requires,
        clean_if=whole.clean_if,
        columns=whole.columns,
        cases=whole.cases,
        checked=True,
    )
    assert kept == whole
    assert [one.reason for one in quick.requires] == [one.reason for one in whole.requires]


@pytest.mark.parametrize("name", rules())
def test_an_unchecked_rule_is_given_every_table_and_column_that_it_reads(name: str) -> None:
    for quick, whole in zip(unchecked()[name].queries, rules()[name].queries, strict=True):
        assert (quick.sql, quick.parameters) == (whole.sql, whole.parameters)
        assert quick.tables >= whole.tables
        assert quick.columns is None or (
            whole.columns is not None and quick.columns >= whole.columns
        )
        assert quick.columns is not None or not quick.tables & LARGE, "all columns of a large table"


@pytest.mark.parametrize("name", rules())
def test_an_unchecked_rule_answers_the_cases_of_the_checked_one(
    name: str, sandbox: Sandbox
) -> None:
    for case in rules()[name].cases:
        assert run_case(unchecked()[name], case, sandbox).wrong is None


@pytest.mark.parametrize("name", rules())
def test_advice_for_tensorrt_11_does_not_ask_for_what_it_does_by_itself(name: str) -> None:
    said = advice_to(Program(TENSORRT, (11, 1)), rules()[name].advice)
    assert "--useCudaGraph" not in said
    assert "--separateProfileRun" not in said


@pytest.mark.parametrize(
    "version", [(7, 0), (8, 0, 1), (8, 2), (8, 5, 3), (8, 6, 1), (9, 3), (10, 3), (10, 14), (11, 1)]
)
@pytest.mark.parametrize("name", rules())
def test_advice_asks_trtexec_for_no_option_that_the_version_lacks(
    name: str, version: tuple[int, ...]
) -> None:
    assert not lacking(advice_to(Program(TENSORRT, version), rules()[name].advice), version)


@pytest.mark.parametrize("kind", [TENSORRT_LLM, ONNX_RUNTIME, TORCH_TENSORRT, PYTORCH, CUDA])
@pytest.mark.parametrize("name", rules())
def test_advice_sends_nobody_to_trtexec_who_cannot_run_it(name: str, kind: str) -> None:
    said = advice_to(Program(kind), rules()[name].advice)
    assert "trtexec" not in said
    assert "enqueueV" not in said


@pytest.mark.parametrize("name", rules())
def test_engines_of_tensorrt_for_rtx_are_sent_neither_to_trtexec_nor_to_flags_for_types(
    name: str,
) -> None:
    for host in (None, PYTHON, OTHER_HOST):
        said = advice_to(Program(rtx=True, host=host), rules()[name].advice)
        assert not re.search(
            r"trtexec|--fp16|--int8|--best|--layerPrecisions|From TensorRT \d|Before TensorRT", said
        ), said


@pytest.mark.parametrize("name", rules())
def test_who_calls_tensorrt_himself_is_not_told_how_to_run_trtexec(name: str) -> None:
    for host in (PYTHON, OTHER_HOST):
        said = advice_to(Program(TENSORRT, (10, 3), host=host), rules()[name].advice)
        assert not re.search(
            r"--useCudaGraph|--infStreams|--warmUp|trtexec --shapes|Enqueue Time", said
        ), said


@pytest.mark.parametrize("name", ["cuda-graph-would-help", "launch-bound", "enqueue-bound"])
def test_who_runs_pytorch_is_told_pytorchs_way_first(name: str) -> None:
    said = advice_to(Program(TORCH_ENGINES), rules()[name].advice)
    assert said.index("torch.cuda.graph") < said.index("trtexec") < said.index("cudaGraphLaunch()")
    assert "torch.cuda.graph" not in advice_to(Program(), rules()[name].advice)


def test_a_rule_that_others_stand_for_says_what_it_is_about_or_means_its_whole_device() -> None:
    superseded = {other for rule in rules().values() for other in rule.supersedes}
    assert {name for name in superseded if "about" not in rules()[name].columns} == {
        "enqueue-bound"
    }


def test_tf32_is_said_to_be_as_many_times_as_fast_as_fp32_as_the_peak_rates_have_it() -> None:
    (case,) = re.findall(
        r"CASE WHEN compute_major.*?END", rules()["fp32-without-tf32"].query.sql, re.DOTALL
    )
    for (major, minor), rates in TENSOR.items():
        if "TF32" in rates:
            device = f"SELECT {major} AS compute_major, {minor} AS compute_minor, 'a board' AS name"
            found = duckdb.connect().execute(f"SELECT {case} FROM ({device})").fetchall()
            assert found == [(rates["TF32"] // CORES[major, minor]["FP32"],)], (major, minor)


def test_only_what_makes_the_whole_report_unreliable_is_an_error() -> None:
    assert {rule.name for rule in rules().values() if rule.severity == "error"} == {
        "whole-graph-trace",
        "engine-mismatch",
    }


def test_the_pages_of_docs_rules_are_those_of_the_rules() -> None:
    made = pages(tuple(rules().values()))
    written = {
        path.name: path.read_text(encoding="utf-8")
        for path in (ROOT / "docs" / "rules").glob("*.md")
    }
    assert set(made) == set(written), "run python docs/make_rules.py"
    assert [name for name, text in made.items() if written[name] != text] == [], (
        "run python docs/make_rules.py"
    )


def test_the_example_of_the_documentation_is_a_sound_rule(tmp_path: Path) -> None:
    index = pages(tuple(rules().values()))["README.md"]
    (tmp_path / "slow-softmax.yaml").write_text(
        index.split("```yaml\n")[1].split("```")[0], encoding="utf-8"
    )
    (rule,) = load_rules([tmp_path])
    with Sandbox(RULE_TABLES) as sandbox:
        assert [run_case(rule, case, sandbox).wrong for case in rule.cases] == [None, None]


def test_the_ready_rules_are_what_the_yaml_of_each_rule_says() -> None:
    folder = builtin_rules_dir()
    assert (folder / READY_RULES).read_text(encoding="utf-8") == ready_text(rule_paths(folder)), (
        "run python docs/make_rules.py"
    )


def test_a_rule_whose_yaml_has_changed_is_parsed(tmp_path: Path) -> None:
    ready = ready_rules(builtin_rules_dir())
    source = next(path for path in rule_paths(builtin_rules_dir()) if path.stem == "hot-layer")
    text = source.read_text(encoding="utf-8")
    (path := tmp_path / source.name).write_text(text, encoding="utf-8")
    held = {"hot-layer": ReadyRule(crc32=ready["hot-layer"]["crc32"], says="this")}
    assert own_values(path, held) == "this"
    path.write_text(text.replace("min_share: 0.1,", "min_share: 0.2,"), encoding="utf-8")
    assert read_rule(path, None, held).params["min_share"] == 0.2
