"""Each thing to do has a line to paste, or a sentence, that is right for the program that ran and
for its version of TensorRT.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from nsysmap.advice.paste import (
    CHANGES,
    COMPILE_THE_REST,
    COPY_AHEAD,
    EACH_ENGINE,
    ENGINE_FILE,
    KEEP_ON_GPU,
    PYTHON_BETWEEN,
    RULES,
    TWO_GRAPHS,
    WAIT_FOR_RANKS,
    WITH_DATA_LOADER,
    code_of_the_host,
    nothing_to_prepare,
    python_alone,
)
from nsysmap.advice.program import (
    CUDA,
    KINDS,
    ONNX_RUNTIME,
    OTHER,
    PYTORCH,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_ENGINES,
    TORCH_TENSORRT,
    Program,
    Version,
)
from nsysmap.advice.ways import ByEvidence, How, how
from nsysmap.answer.actions import RULE_GROUPS
from nsysmap.core.trace_schema import HOSTS, OTHER_HOST, PYTHON, TENSORRT_RTX, TRTEXEC
from nsysmap.rules.packs import builtin_rules_dir, load_rules
from nsysmap.whatif.change import CHANGE_NAMES
from tests.trtexec_options import OPTIONS, lacking

VERSIONS: tuple[Version | None, ...] = (
    (7, 0),
    (7, 2, 3),
    (8, 0, 1),
    (8, 2),
    (8, 5, 3),
    (8, 6, 1),
    (9, 3),
    (10, 3),
    (10, 14),
    (11, 1),
    None,
)
BY_EVIDENCE = {
    f"{rule}, {name}": change
    for rule, one in RULES.items()
    if isinstance(one, ByEvidence)
    for name, change in (*one.changes.items(), ("otherwise", one.otherwise))
}
EVERYTHING = {
    **CHANGES,
    **RULES,
    **BY_EVIDENCE,
    "python-between": PYTHON_BETWEEN,
    "python-alone": python_alone(),
    "each-engine": EACH_ENGINE,
    "with-data-loader": WITH_DATA_LOADER,
    "nothing-to-prepare": nothing_to_prepare(),
    "few-samples": nothing_to_prepare(osrt=True, sampled=True),
    "sampled": code_of_the_host(),
    "wait-for-ranks": WAIT_FOR_RANKS,
    "two-graphs": TWO_GRAPHS,
    "compile-the-rest": COMPILE_THE_REST,
    "copy-ahead": COPY_AHEAD,
    "keep-on-gpu": KEEP_ON_GPU,
    "engine-file": ENGINE_FILE,
}
# of some programs
ONLY_SOME = (
    "python-between",
    "compile-the-rest",
    "python-alone",
    "with-data-loader",
    "engine-file",
)
_LINE, _SENTENCE = 78, 66  # columns of 80 that are left for a line to paste, and for a sentence
_SINCE = re.compile(r"# from TensorRT ([\d.]+) on$")
_RELEASE = re.compile(r"# from (TensorRT-LLM|Torch-TensorRT) [\d.]+")


def said(made: How) -> list[str]:
    return [text for text in (made.paste, made.paste_pytorch, made.change) if text]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [name for name in EVERYTHING if name not in ONLY_SOME])
def test_each_thing_to_do_has_a_line_or_a_sentence_in_every_program_and_version(
    name: str, kind: str
) -> None:
    for version in VERSIONS:
        made = how(EVERYTHING[name], Program(kind, version))
        assert (made.paste is None) != (made.change is None), (kind, version)
        assert "nsysmap rules show" not in "".join(said(made))


@pytest.mark.parametrize("name", EVERYTHING)
def test_no_line_has_an_option_that_the_version_lacks(name: str) -> None:
    for kind in KINDS:
        for version in VERSIONS:
            for text in said(how(EVERYTHING[name], Program(kind, version))):
                since = _SINCE.search(text)
                later = since or _RELEASE.search(text)
                # where it is known, a line that it does not have yet is not given
                assert version is None or later is None, text
                told = tuple(map(int, since.group(1).split("."))) if since else (10, 0)
                assert not lacking(text, version or told), (kind, version, text)
                options = (
                    re.findall(r"trtexec .*?--(\w+)", text) if text.startswith("trtexec") else []
                )
                assert set(options) <= set(OPTIONS), text


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_line_says_whose_configuration_it_sets_the_builders_or_the_runtimes(name: str) -> None:
    for program in (*(Program(kind, (10, 14)) for kind in KINDS), Program(TENSORRT, rtx=True)):
        for host in (None, *HOSTS):
            made = how(EVERYTHING[name], replace(program, host=host))
            for text in (*said(made), made.paste_brief or ""):
                assert not re.search(r"\bconfig(\.|->| = )", text), text


@pytest.mark.parametrize("name", EVERYTHING)
def test_what_matters_most_of_a_long_line_or_sentence_takes_one_line_of_a_terminal(
    name: str,
) -> None:
    for kind in KINDS:
        for host in (None, *HOSTS):
            made = how(EVERYTHING[name], Program(kind, (11, 1), host=host))
            for whole, brief in (
                (made.paste, made.paste_brief),
                (made.change, made.change_brief),
            ):
                if brief is not None:
                    assert whole is not None and len(brief) < len(whole)
            shell = (made.paste_brief or "").startswith("trtexec")  # goes on after a backslash
            most = 140 if shell or "bindings" in (made.paste_brief or "") else _LINE
            assert len(made.paste_brief or "") <= most
            assert len(made.change_brief or "") <= _SENTENCE * 2  # of two findings


@pytest.mark.parametrize("name", EVERYTHING)
def test_what_a_person_must_fill_in_is_in_capitals(name: str) -> None:
    for kind in KINDS:
        for version in VERSIONS:
            for text in said(how(EVERYTHING[name], Program(kind, version))):
                assert not re.search(r"\bmodel\.(?:onnx|plan)|/program|\bprogram\.py", text)


def test_an_option_that_a_version_lacks_is_noticed() -> None:
    assert lacking("trtexec --infStreams=2 --fp16", (8, 5)) == {"infStreams"}
    assert lacking("trtexec --infStreams=2 --fp16", (11, 0)) == {"fp16"}
    assert not lacking("trtexec --infStreams=2 --fp16", (8, 6))


@pytest.mark.parametrize("kind", [PYTORCH, CUDA, OTHER, TENSORRT_LLM, TORCH_TENSORRT])
@pytest.mark.parametrize("name", EVERYTHING)
def test_who_does_not_run_trtexecs_engines_gets_no_line_of_trtexec_or_onnx(
    name: str, kind: str
) -> None:
    for version in VERSIONS:
        text = " ".join(
            line
            for line in (how(EVERYTHING[name], Program(kind, version))).__dict__.values()
            if line
        )
        assert not text.startswith("trtexec")
        assert "onnx.export" not in text
        assert "enqueueV" not in text


def test_a_rule_that_can_be_an_action_has_a_title_of_its_own() -> None:
    priced = {rule.name for rule in load_rules([builtin_rules_dir()]) if rule.group in RULE_GROUPS}
    assert not priced - set(RULES)
    assert set(CHANGES) == set(CHANGE_NAMES)
    titles = [change.title for change in {**CHANGES, **RULES}.values()]
    assert not [title for title in titles if title in priced or len(title) > 60]


@pytest.mark.parametrize(
    ("change", "program", "line"),
    [
        (
            "two-in-flight",
            Program(TENSORRT, (8, 5, 1)),
            "trtexec --loadEngine=MODEL.plan --streams=2 --threads",
        ),
        (
            "two-in-flight",
            Program(TENSORRT, (8, 6)),
            "trtexec --loadEngine=MODEL.plan --infStreams=2 --threads",
        ),
        (
            "two-in-flight",
            Program(TENSORRT),
            "trtexec --loadEngine=MODEL.plan --infStreams=2 --threads",
        ),
        (
            "two-in-flight",
            Program(TENSORRT, before=(10,)),
            "trtexec --loadEngine=MODEL.plan --infStreams=2 --threads  # from TensorRT 8.6 on",
        ),
        (
            "cuda-graph",
            Program(TENSORRT, (10, 14)),
            "trtexec --loadEngine=MODEL.plan --useCudaGraph",
        ),
        (
            "cuda-graph",
            Program(TORCH_TENSORRT, (10, 3)),
            "torch_tensorrt.runtime.set_cudagraphs_mode(True)",
        ),
        (
            "cuda-graph",
            Program(TORCH_TENSORRT, (8, 6)),
            "with torch.cuda.graph(graph): out = model(x)",
        ),
        (
            "cuda-graph",
            Program(TORCH_TENSORRT, since=(10,)),
            "torch_tensorrt.runtime.set_cudagraphs_mode(True)  # from Torch-TensorRT 2.5 on",
        ),
        (
            "cuda-graph",
            Program(PYTORCH),
            'model = torch.compile(model, mode="reduce-overhead")  # from PyTorch 2 on',
        ),
        (
            "cuda-graph",
            Program(ONNX_RUNTIME, (8, 6)),
            'providers=[("TensorrtExecutionProvider", {"trt_cuda_graph_enable": True})]',
        ),
        (
            "cuda-graph",
            Program(TENSORRT_LLM, (9, 3)),
            "GenerationSession(model_config, engine, mapping, cuda_graph_mode=True)",
        ),
        (
            "join-kernels",
            Program(TENSORRT, (8, 6)),
            'torch.onnx.export(model, inputs, "MODEL.onnx", opset_version=17)',
        ),
    ],
)
def test_the_line_to_paste_is_of_the_version_and_of_what_runs(
    change: str, program: Program, line: str
) -> None:
    made = how(CHANGES[change], program)
    assert made == How(line, paste_brief=made.paste_brief)
    assert made.paste_brief is None or "# from" not in made.paste_brief


def test_tensorrt_11_makes_cuda_graphs_in_trtexec_by_itself_so_the_line_is_for_ones_own_program() -> (  # noqa: E501
    None
):
    assert (how(CHANGES["cuda-graph"], Program(TENSORRT, (11, 0))).paste or "").startswith(
        "cudaStreamBeginCapture("
    )


def test_where_pytorch_and_engines_run_and_either_may_run_the_engine_both_lines_are_given() -> None:
    graph = how(CHANGES["cuda-graph"], Program(TORCH_ENGINES, (10, 3)))
    assert (graph.paste or "").startswith("trtexec ")
    assert graph.paste_pytorch == "with torch.cuda.graph(graph): out = model(x)"
    assert how(RULES["pointwise-chain"], Program(TORCH_ENGINES, (10, 3))).paste_pytorch is None


@pytest.mark.parametrize("name", EVERYTHING)
def test_who_builds_engines_with_a_program_of_its_own_releases_is_told_the_release_of_that(
    name: str,
) -> None:
    for kind, release in ((TENSORRT_LLM, "TensorRT-LLM"), (TORCH_TENSORRT, "Torch-TensorRT")):
        for program in (Program(kind), Program(kind, since=(10,)), Program(kind, before=(10,))):
            told = " ".join(said(how(EVERYTHING[name], program)))
            assert "# from TensorRT " not in told
            assert "  # from " not in told or f"  # from {release} " in told


def test_a_graph_of_tensorrt_llm_has_the_release_that_the_user_can_check() -> None:
    line = how(CHANGES["cuda-graph"], Program(TENSORRT_LLM, since=(10,))).paste or ""
    assert line.endswith("  # from TensorRT-LLM 0.16 (1.0: tensorrt_llm._tensorrt_engine.LLM)")
    assert "# from" not in (how(CHANGES["cuda-graph"], Program(TENSORRT_LLM, (10, 7))).paste or "")


def test_what_a_version_cannot_do_is_a_sentence_of_what_it_can() -> None:
    # its parser has no LayerNormalization
    assert how(CHANGES["join-kernels"], Program(TENSORRT, (8, 5))).paste is None
    assert "before 8.6" in (how(CHANGES["aux-streams"], Program(TENSORRT, (8, 5))).change or "")
    assert "in this version" in (
        how(RULES["split-inside-region"], Program(TENSORRT, (8, 6))).change or ""
    )
    assert "in this version" in (
        how(RULES["split-inside-region"], Program(TENSORRT, before=(10,))).change or ""
    )
    assert "--exportLayerInfo" in (
        how(RULES["split-inside-region"], Program(TENSORRT, (10, 3))).paste or ""
    )
    assert how(RULES["split-inside-region"], Program(TENSORRT)).paste is None


@pytest.mark.parametrize("rule", ["under-filled-gpu", "copy-not-overlapped"])
def test_the_line_for_a_program_of_pytorch_is_pytorchs_where_it_is_about_the_program_around_the_engine(  # noqa: E501
    rule: str,
) -> None:
    torch = how(RULES[rule], Program(PYTORCH, (10, 3))).paste or ""
    assert "torch" in torch
    assert "torch" not in (how(RULES[rule], Program(TENSORRT, (10, 3))).paste or "")
    assert how(RULES[rule], Program(TORCH_ENGINES, (10, 3))) == How(torch)


def test_what_findings_ask_for_is_said_by_their_evidence() -> None:
    fold = RULES["unfused-quantize"]
    program = Program(TENSORRT, (8, 6))
    one = how(fold, program, [{"cause": "residual"}, {"cause": "residual"}]).change or ""
    assert "both branches of each Add" in one
    assert "; " not in one
    two = (
        how(
            fold, program, [{"cause": "residual"}, {"cause": "product"}, {"cause": "plugin"}]
        ).change
        or ""
    )
    assert two.startswith(one)
    assert "symmetric" in two
    assert "plugin" not in two
    assert "Add" not in (how(fold, program, [{"cause": "unknown"}]).change or "")


def test_attention_as_an_operator_is_advised_under_the_conditions_that_the_engine_shows() -> None:
    fuse = RULES["attention-not-fused"]
    plain = how(fuse, Program(TENSORRT, (10, 14)), [{"operator": "plain"}])
    assert (plain.paste or "").endswith(
        "opset_version=23, dynamo=True)  # not for attention in a branch of If"
    )
    masked = how(fuse, Program(TENSORRT, (10, 14)), [{"operator": "mask"}, {"operator": "plain"}])
    assert (masked.change or "").endswith("if the mask is of type bool or of Q's")
    wide = how(fuse, Program(TENSORRT, (10, 14)), [{"operator": "wide"}])
    assert "at most 256 channels" in (wide.change or "")
    single = how(fuse, Program(TENSORRT, (10, 14)), [{"operator": "float"}])
    assert (single.change or "").startswith("cast Q, K and V to FP16 or BF16, and export")
    assert "cache concatenated" in (
        how(fuse, Program(TENSORRT, (10, 16)), [{"operator": "cache"}]).change or ""
    )
    assert "of the branch" in (how(fuse, Program(TENSORRT), [{"operator": "branch"}]).change or "")
    for operator in ("plain", "mask", "cache", "branch"):  # a version without the operator
        assert (
            how(fuse, Program(TENSORRT, (10, 3)), [{"operator": operator}]).paste or ""
        ).startswith("polygraphy surgeon")


def test_a_product_of_integers_without_tensor_cores_is_not_sent_to_half_precision() -> None:
    cores = RULES["tensor-cores-missed"]
    assert "fp16" in (how(cores, Program(TENSORRT, (8, 6)), [{"cause": "fp32"}]).paste or "")
    for cause in ("input", "channels", "builder", "unknown"):
        made = how(cores, Program(TENSORRT, (8, 6)), [{"cause": cause}])
        assert made.paste is None
        assert "autocast" not in (made.change or "")


def test_causes_that_decide_what_to_do_are_those_that_the_rules_give() -> None:
    rules = {rule.name: rule for rule in load_rules([builtin_rules_dir()])}
    for name, change in RULES.items():
        if isinstance(change, ByEvidence):
            assert change.column in rules[name].columns
            texts = (
                set(re.findall(r"'([a-z0-9 ]+)'", rules[name].query.sql))
                | {"True", "False"}
                | {"residual", "producer", "plugin"}
            )
            assert set(change.changes) <= texts


def test_who_has_no_allowed_formats_is_not_told_of_them() -> None:
    for rule in ("reformat-at-input", "reformat-at-output"):
        for kind in KINDS:
            told = " ".join(said(how(RULES[rule], Program(kind, (10, 3)))))
            assert ("setAllowedFormats" in told) == (kind in (TENSORRT, TORCH_ENGINES)), kind
    assert "--logits_dtype=float16" in (
        how(RULES["reformat-at-output"], Program(TENSORRT_LLM)).paste or ""
    )


def test_where_the_version_is_not_known_half_precision_has_both_ways() -> None:
    made = how(RULES["fp32-in-reduced-engine"], Program(TENSORRT))
    assert made.paste is None
    assert "before TensorRT 11" in (made.change or "")
    assert (
        how(RULES["fp32-in-reduced-engine"], Program(TENSORRT, (10, 13))).paste
        == "python -m modelopt.onnx.autocast --onnx_path MODEL.onnx"
    )


@pytest.mark.parametrize("name", EVERYTHING)
def test_programs_in_other_languages_than_cuda_cpp_get_no_line_of_it(name: str) -> None:
    text = " ".join(said(how(EVERYTHING[name], Program(OTHER))))
    assert not re.search(r"cuda[A-Z]\w+\(|<<<|std::|;$", text), text
    assert "ONNX" not in text
    assert "setAllowedFormats" not in text


@pytest.mark.parametrize("kind", [TENSORRT, TORCH_ENGINES])
@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_no_line_runs_an_engine_that_exchanges_data_with_trtexec(name: str, kind: str) -> None:
    for version in (None, (8, 5), (8, 6), (10, 3), (11,)):
        told = said(how(EVERYTHING[name], Program(kind, version, collectives=True)))
        assert not [text for text in told if text.startswith("trtexec")]
        assert told or name in (
            "two-in-flight",
            "two-graphs",
            "python-between",
            "compile-the-rest",
            "python-alone",
            "with-data-loader",
        )


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_who_calls_tensorrt_himself_gets_lines_of_his_language_and_none_of_a_tool_that_he_does_not_run(  # noqa: E501
    name: str,
) -> None:
    for version in VERSIONS:
        for kind in (TENSORRT, TORCH_ENGINES):
            python = " ".join(said(how(EVERYTHING[name], Program(kind, version, host=PYTHON))))
            other = " ".join(said(how(EVERYTHING[name], Program(kind, version, host=OTHER_HOST))))
            assert "--loadEngine" not in python + other
            assert "execute_async" not in other
            assert not re.search(r"->|;  //", python) or name in (
                "one-graph",
                "copy-not-overlapped",
            ), python


@pytest.mark.parametrize("host", [None, *HOSTS])
@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_for_engines_of_tensorrt_for_rtx_no_line_is_one_of_trtexec(
    name: str, host: str | None
) -> None:
    for kind in (TENSORRT, TORCH_ENGINES, ONNX_RUNTIME):
        text = " ".join(said(how(EVERYTHING[name], Program(kind, rtx=True, host=host))))
        assert text or name in ONLY_SOME
        assert not re.search(
            r"trtexec|--fp16|--useCudaGraph|BuilderFlag|from TensorRT \d|\btrt_|before 8.2|"
            r"TensorrtExecutionProvider",
            text,
        ), text


@pytest.mark.parametrize(
    ("program", "begin"),
    [
        (
            Program(TENSORRT, (10, 3), host=TRTEXEC),
            "trtexec --loadEngine=MODEL.plan --useCudaGraph",
        ),
        (
            Program(TENSORRT, (10, 3), host=PYTHON),
            "with torch.cuda.graph(graph): context.execute_async_v3(",
        ),
        (
            Program(TENSORRT, (8, 2), host=PYTHON),
            "with torch.cuda.graph(graph): context.execute_async_v2(",
        ),
        (
            Program(TENSORRT, (10, 3), host=OTHER_HOST),
            "cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); context->enqueueV3(",
        ),
        (
            Program(TENSORRT, (8, 2, 1), host=OTHER_HOST),
            "cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal); context->enqueueV2(",
        ),
        (
            Program(TENSORRT, rtx=True, host=PYTHON),
            "runtime_config = engine.create_runtime_config(); runtime_config.cuda_graph_strategy =",
        ),
        (
            Program(TENSORRT, rtx=True, host=TENSORRT_RTX),
            "tensorrt_rtx --loadEngine=MODEL.plan --rtxCudaGraphStrategy=wholeGraph",
        ),
        (
            Program(ONNX_RUNTIME, rtx=True, host=PYTHON),
            'providers=[("NvTensorRTRTXExecutionProvider", {"enable_cuda_graph": True})]',
        ),
        (
            Program(TENSORRT, rtx=True),
            "tensorrt_rtx --loadEngine=MODEL.plan --rtxCudaGraphStrategy=wholeGraph",
        ),
    ],
)
def test_a_cuda_graph_is_made_by_what_runs_the_engine(program: Program, begin: str) -> None:
    assert (how(CHANGES["cuda-graph"], program).paste or "").startswith(begin)


def test_a_server_with_tensorrt_llm_that_is_not_python_gets_no_line_of_python() -> None:
    for name in ("two-in-flight", "async", "no-host-gap", "cuda-graph"):
        for version in VERSIONS:
            told = " ".join(
                said(how(CHANGES[name], Program(TENSORRT_LLM, version, host=OTHER_HOST)))
            )
            assert not re.search(r"llm\.generate|LLM\(|GenerationSession|True", told), told
    assert "llm.generate_async" in (
        how(CHANGES["async"], Program(TENSORRT_LLM, host=PYTHON)).paste or ""
    )
