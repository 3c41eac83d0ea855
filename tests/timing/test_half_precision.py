"""What half precision saves at most follows from the GPU's two rates, and never from more."""

from __future__ import annotations

import pytest

from nsysmap.timing.half_precision import saved_share
from nsysmap.timing.peak_rates import CORES, TENSOR, Capability

GEMV = (
    "sm50_xmma_cublas_gemvx_f32f32_f32_f32_tn_n_int32_unit_n_launch_param4x32x32_strided_unit_s"
    "tride_execute_kernel_trt"
)
CONVOLUTION = "trt_ampere_scudnn_128x64_relu_small_nn_v1"


def share(name: str, gpu: Capability | None, *, tensor_cores: str = "no") -> float | None:
    return saved_share(
        work="product", datatype="FP32", tensor_cores=tensor_cores, name=name, gpu=gpu
    )


@pytest.mark.parametrize(
    ("gpu", "saved"), [((8, 6), 3 / 4), ((7, 5), 7 / 8), ((8, 0), 15 / 16), ((9, 0), 15 / 16)]
)
def test_a_convolution_on_cuda_cores_saves_what_the_two_rates_leave(
    gpu: Capability, saved: float
) -> None:
    assert share(CONVOLUTION, gpu) == saved


def test_a_matrix_times_a_vector_saves_half_its_bytes() -> None:
    assert share(GEMV, (9, 0)) == 0.5


def test_tensor_cores_take_half_precision_at_twice_the_rate_of_tf32() -> None:
    assert share(CONVOLUTION, (9, 0), tensor_cores="yes") == 0.5


def test_of_an_unknown_gpu_none_saves_more() -> None:
    unknown = share(CONVOLUTION, None)
    assert unknown is not None
    assert unknown == max(share(CONVOLUTION, gpu) or 0 for gpu in TENSOR if gpu in CORES)


@pytest.mark.parametrize("datatype", ["FP16", "INT8", None])
def test_what_does_not_compute_in_32_bits_is_not_told(datatype: str | None) -> None:
    found = saved_share(
        work="product", datatype=datatype, tensor_cores="no", name=CONVOLUTION, gpu=(9, 0)
    )
    assert found is None
