"""What kind of program ran, from its trace and its engine files."""

from __future__ import annotations

import pytest

from nsysmap.advice.program import (
    CUDA,
    ONNX_RUNTIME,
    OTHER,
    PYTORCH,
    TENSORRT,
    TENSORRT_LLM,
    TORCH_ENGINES,
    TORCH_TENSORRT,
    Program,
    Version,
    program_of,
    version_of,
)
from nsysmap.core.columns import flag, integer, text
from nsysmap.core.table import Spec, Table
from nsysmap.core.trace_schema import OTHER_HOST, PYTHON, TENSORRT_RTX, TRTEXEC
from tests.reports import analysis


@pytest.mark.parametrize(
    ("folder", "report", "engines", "program"),
    [
        ("torch_mixed", "sync.nsys-rep", False, Program(TORCH_TENSORRT, since=(10,), host=PYTHON)),
        ("torch_mixed", "nonvtx.nsys-rep", False, Program(TORCH_ENGINES, since=(10,), host=PYTHON)),
        ("torch_encoder", "eager.nsys-rep", False, Program(PYTORCH, host=PYTHON)),
        (
            "decode_loop",
            "nonvtx.nsys-rep",
            False,
            Program(TENSORRT_LLM, since=(10,), host=OTHER_HOST),
        ),
        ("bert_trt85", "sync.nsys-rep", True, Program(TENSORRT, before=(10,), host=OTHER_HOST)),
        ("real_trt", "llama-sync.nsys-rep", False, Program(TENSORRT, rtx=True, host=PYTHON)),
        (
            "real_trt",
            "googlenet-sync_nonvtx.nsys-rep",
            False,
            Program(TENSORRT, rtx=True, host=PYTHON),
        ),
        ("bert_trt10", "sync.nsys-rep", False, Program(TENSORRT, since=(10,), host=OTHER_HOST)),
    ],
)
def test_a_capture_tells_its_program(
    folder: str, report: str, engines: bool, program: Program
) -> None:
    assert program_of(analysis(folder, report, engine=engines).tables.by_name()) == program


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (
            (
                "void onnxruntime::cuda::_UnaryElementWise<float>(float*)",
                "__myl_Fc_0x0123456789abcdef0123456789abcdef",
            ),
            ONNX_RUNTIME,
        ),
        (
            (
                "void tensorrt_llm::kernels::generalRmsNorm<__half>(int)",
                "__myl_Fc_0x0123456789abcdef0123456789abcdef",
            ),
            TENSORRT_LLM,
        ),
        (
            ("void tensorrt_llm::kernels::generalRmsNorm<__half>(int)",),
            CUDA,
        ),  # other programs took these kernels over
        (("my_kernel(float*)",), CUDA),
        (("my_kernel",), OTHER),  # C, Fortran, OpenCL, or a string that Python compiled
        (("nvkernel_push__F1L664_1_", "copy(float*)"), OTHER),  # OpenMP of nvfortran
        (
            ("gpu_fill_kernel_(CompilerMetadata<DynamicSize, DynamicCheck, void>)", "my_kernel"),
            OTHER,
        ),
        (("julia_add_(CuDeviceArray<float, (int)1, (int)1>)",), OTHER),
        (("cudapy::__main__::add(Array<float, 1>)",), OTHER),
        (("cupy_add__float32_float32_float32",), OTHER),
        (("__omp_offloading_10303_2ab_main_l12",), OTHER),
        ((), TENSORRT),
    ],
)
def test_kernels_tell_the_program(names: tuple[str, ...], kind: str) -> None:
    assert program_of(tables(kernels=names)).kind == kind


def test_kernels_that_python_launches_are_no_program_in_cpp() -> None:
    assert program_of(tables(kernels=("k(int)",), host="python")).kind == OTHER
    assert program_of(tables(kernels=("k(int)",), host="other")).kind == CUDA


@pytest.mark.parametrize(
    ("kernels", "host", "command"),
    [
        (("k(int)",), None, "./PROGRAM"),
        (("k(int)",), "other", "./PROGRAM"),
        (("k(int)",), "python", "python PROGRAM.py"),
        (("julia_add_(CuDeviceArray<float, (int)1, (int)1>)",), "other", "julia PROGRAM.jl"),
    ],
)
def test_a_line_to_paste_starts_the_program_as_this_one_was(
    kernels: tuple[str, ...], host: str | None, command: str
) -> None:
    assert program_of(tables(kernels=kernels, host=host)).command == command


def tables(  # each is a column of some table
    *,
    kernels: tuple[str, ...] = (),
    layers: tuple[str, ...] = (),
    version: str | None = None,
    environment: str | None = None,
    host: str | None = None,
    tactic: str | None = None,
) -> dict[str, Table]:
    """Of a trace without TensorRT's ranges, with these kernels and these layers of an engine file
    that ran.
    """
    family = ["myelin" if "__myl" in name else "cuda" for name in kernels]
    facts = dict.fromkeys(("has_pytorch", "has_tensorrt_ranges", "has_layer_ranges"), False)
    texts = ("tensorrt_version", "environment_tensorrt", "host")
    capture = Spec(
        "capture",
        "",
        (*(flag(name, "") for name in facts), *(text(name, "", null=True) for name in texts)),
    )
    return {
        "capture": Table.of_rows(
            capture,
            [
                {
                    **facts,
                    "tensorrt_version": version,
                    "environment_tensorrt": environment,
                    "host": host,
                }
            ],
        ),
        "kernels": Table.of_rows(
            Spec("kernels", "", (text("name", ""),)), [{"name": name} for name in kernels]
        ),
        "names": Table.of_rows(
            Spec("names", "", (text("family", ""),)), [{"family": name} for name in family]
        ),
        "layers": Table.of_rows(
            Spec(
                "layers",
                "",
                (text("name", ""), integer("engine", "", null=True), text("tactic", "", null=True)),
            ),
            [{"name": name, "engine": 0, "tactic": tactic} for name in layers],
        ),
    }


def test_layers_tell_the_program() -> None:
    conv = "[CONVOLUTION]-[aten_ops.convolution.default]-[/features/0/convolution]"
    assert program_of(tables(kernels=("k",), layers=(conv,))).kind == TORCH_TENSORRT
    assert (
        program_of(
            tables(kernels=("k",), layers=("/layers/0/attention/PLUGIN_V2_GPTAttention_0",))
        ).kind
        == TENSORRT_LLM
    )
    assert program_of(tables(kernels=("k",), layers=("/conv1/Conv",))).kind == TENSORRT


def test_a_version_that_a_file_tells_is_the_version_and_of_two_none_is() -> None:
    assert program_of(tables(kernels=("k",), version="8.6.1")) == Program(TENSORRT, (8, 6, 1))
    assert program_of(tables(kernels=("__myl_bb0_1_Mov",))) == Program(TENSORRT, before=(10,))
    assert program_of(tables(kernels=("__myl_bb0_1_Mov",), version="8.5.1")) == Program(
        TENSORRT, (8, 5, 1)
    )


HASHED = "__myl_Fc_0x0123456789abcdef0123456789abcdef"
GENERATED = "cudnn_generated_fort_native_sm80_matMul_knob_24_splitk_5_64x64x32_5_0"


def test_engines_of_tensorrt_for_rtx_are_told_by_their_stubs_or_by_the_kernels_that_run_for_them() -> (  # noqa: E501
    None
):
    assert program_of(tables(layers=("/fc/MatMul_myl0_1",), tactic="__myelin_CASK_STUB")).rtx
    assert program_of(tables(kernels=(HASHED, GENERATED))) == Program(TENSORRT, rtx=True)
    assert program_of(tables(kernels=("k", HASHED), host=TENSORRT_RTX)).rtx
    # TensorRT 10 has such names of Myelin's kernels too, and the names of the kernels that it chose
    assert not program_of(tables(kernels=(HASHED,))).rtx
    assert not program_of(
        tables(
            layers=("/fc/MatMul_myl0_1",),
            tactic="sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize96x128x32",
        )
    ).rtx
    assert not program_of(tables(kernels=(GENERATED,))).rtx  # cuDNN's in some other program


def test_the_version_in_the_environment_is_believed_where_tensorrt_ran_and_nothing_tells_another() -> (  # noqa: E501
    None
):
    assert program_of(tables(kernels=("__myl_bb0_1_Mov",), environment="8.2.1")) == Program(
        TENSORRT, (8, 2, 1)
    )
    assert program_of(tables(kernels=("__myl_bb0_1_Mov",), environment="10.3")) == Program(
        TENSORRT, before=(10,)
    )
    assert program_of(
        tables(kernels=("__myl_bb0_1_Mov",), environment="8.2.1", version="8.6.1")
    ).tensorrt == (8, 6, 1)
    assert program_of(tables(kernels=(HASHED, GENERATED), environment="10.3")) == Program(
        TENSORRT, rtx=True
    )
    assert program_of(tables(kernels=("k(int)",), environment="10.3")) == Program(CUDA)


def test_a_tool_runs_engines_for_nobody_who_calls_the_api_himself() -> None:
    assert Program(host=TRTEXEC).trtexec
    assert not Program(host=TRTEXEC).own_calls
    assert Program(host=PYTHON).own_calls
    # it can, for it is TensorRT's engine; whether it does is another thing
    assert Program(host=PYTHON).trtexec
    assert not Program(rtx=True).trtexec
    assert not Program(ONNX_RUNTIME, host=PYTHON).own_calls


def test_of_a_file_that_did_not_run_nothing_is_told() -> None:
    wrong = tables(kernels=("k(int)",), layers=("/conv1/Conv",))
    verdict = Table.of_rows(
        Spec("engine_fits", "", (integer("engine", ""), text("verdict", ""))),
        [{"engine": 0, "verdict": "did-not-run"}],
    )
    assert program_of({**wrong, "engine_fits": verdict}).kind == CUDA


@pytest.mark.parametrize(
    ("program", "version", "newer"),
    [
        (Program(tensorrt=(10, 9)), (10, 14), False),
        (Program(tensorrt=(10, 14, 1)), (10, 14), True),
        (Program(since=(10,)), (8, 6), True), (Program(since=(10,)), (10, 3), None),
        (Program(before=(10,)), (10,), False),
        (Program(before=(10,)), (8, 6), None), (Program(), (8, 6), None),
    ],
)  # fmt: skip
def test_a_version_is_compared_as_numbers_and_known_where_its_bounds_decide(
    program: Program, version: Version, newer: bool | None
) -> None:
    assert program.at_least(version) is newer


@pytest.mark.parametrize(
    ("told", "version"),
    [("10.14.1.48", (10, 14, 1, 48)), ("8.6", (8, 6)), ("", None), (None, None), ("unknown", None)],
)
def test_a_version_is_its_numbers(told: str | None, version: Version | None) -> None:
    assert version_of(told) == version


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (Program(before=(10,)), "before 10"),
        (Program(since=(10,)), "10 or later"),
        (Program(tensorrt=(8, 6), before=(10,)), None),  # the version itself is told
        (Program(), None),
    ],
)
def test_of_an_unknown_version_its_bounds_are_told(program: Program, said: str | None) -> None:
    assert program.bound == said


@pytest.mark.parametrize(
    "name",
    ["ncclDevKernel_AllReduce_Sum_f16_RING_LL(x)", "ncclKernel_AllGather_RING_LL_Sum_int8_t"],
)
def test_trtexec_cannot_run_engines_that_exchange_data(name: str) -> None:
    found = program_of(tables(kernels=("__myl_Fc_0x0123456789abcdef0123456789abcdef", name)))
    assert (found.kind, found.collectives, found.trtexec) == (TENSORRT, True, False)
    assert program_of(tables(kernels=("__myl_Fc_0x0123456789abcdef0123456789abcdef", "k"))).trtexec
