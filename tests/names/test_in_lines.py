"""Names inside lines of text: found where they tell who made them, and the rest of the line left as
it is.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.names.in_lines import is_name, names_in
from nsysmap.output.names import explained_line

GEMM = "ampere_sgemm_128x64_tn"
POINTWISE = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>,"
    " std::array<char*, 3> >(int)"
)
MYELIN = "__myl_AddSqr_0x66de86f8729ee2ce730714e00e66a781"


@pytest.mark.parametrize(
    "name", [GEMM, POINTWISE, MYELIN, "__myl_AddSqr_myl0_3", "generatedNativePointwise"]
)
@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("12.3%  1,234  ", " x"), ("see (", ")."), ("kernel='", "', 3"), ("[I] ", ": 3 ms")],
)
def test_a_name_is_found_whole_wherever_it_stands(name: str, before: str, after: str) -> None:
    line = before + name + after
    assert [line[found.start : found.end] for found in names_in(line)] == [name]


@pytest.mark.parametrize(
    "line",
    [
        "hello world",
        "kernel at /usr/lib/gemm/sm80_foo.so",
        "/bert/encoder/layer.0/attention/MatMul took 3 ms",
        "relu conv softmax Add",
        "",
        "foo(bar",
        "[TRT] [I] [MemUsageChange] Init CUDA: CPU +2, GPU +0, now: CPU 18, GPU 3100 (MiB)",
    ],
)
def test_words_paths_and_onnx_nodes_are_left_alone(line: str) -> None:
    assert explained_line(line) == line


def test_what_a_name_is_stands_behind_it() -> None:
    assert (
        explained_line(f"  7.1  {GEMM}\t{MYELIN}")
        == f"  7.1  {GEMM} [cublas gemm kernel: FP32, tile 128x64]\t{MYELIN} [myelin kernel: Add"
        " Sqrt]"
    )


@pytest.mark.parametrize(
    ("line", "one"),
    [(GEMM, True), (POINTWISE, True), ("kernel", True), ("conv1", True), ("hello world", False), (f"1 {GEMM}", False), ("Done", False),  # noqa: E501
     ("{", False), ("[I]", False), ("/usr/lib/libcuda.so", False)],
)  # fmt: skip
def test_a_line_that_is_one_name_is_told_from_a_line_with_names(line: str, one: bool) -> None:
    assert is_name(line) is one


@given(
    st.lists(
        st.sampled_from([GEMM, POINTWISE, MYELIN])
        | st.text(alphabet="ab _:<>(){}[],;'\"-/\t漢smgemv0189", max_size=20)
    )
)
def test_names_stand_in_order_and_nothing_of_the_line_is_lost(pieces: list[str]) -> None:
    line = " ".join([*pieces, GEMM])
    at = 0
    assert any(found.decoded.name.endswith(GEMM) for found in names_in(line))
    for found in names_in(line):
        assert at <= found.start < found.end <= len(line)
        assert found.decoded.name == line[found.start : found.end]
        at = found.end


def test_long_lines_take_time_in_proportion() -> None:
    assert list(names_in("f(" * 20_000)) == []
    assert len(list(names_in(f"{GEMM} " * 5_000))) == 5_000
