"""Advice fits the program: PyTorch's way to who runs PyTorch, and the flags of the TensorRT that ran."""

from __future__ import annotations

import pytest

from nsysmap.rules.advice import Part, Reader, advice_to, version_of

PARTS = (
    Part("torch.cuda.graph()", "pytorch"),
    Part("--useCudaGraph", "tensorrt < 11"),
    Part("nothing: it is the default", "tensorrt >= 11"),
    Part("capture\n  enqueueV3()"),
)


@pytest.mark.parametrize(
    ("reader", "said"),
    [
        (Reader((10, 3), pytorch=False), ["--useCudaGraph", "capture enqueueV3()"]),
        (Reader((11, 0, 1), pytorch=False), ["nothing: it is the default", "capture enqueueV3()"]),
        (Reader((10, 14), pytorch=True), ["torch.cuda.graph()", "--useCudaGraph", "capture enqueueV3()"]),
        (
            Reader(None, pytorch=False),
            ["Before TensorRT 11: --useCudaGraph", "From TensorRT 11 on: nothing: it is the default", "capture enqueueV3()"],
        ),
    ],
)
def test_advice_is_for_the_program_at_hand(reader: Reader, said: list[str]) -> None:
    assert advice_to(reader, PARTS).splitlines() == said


@pytest.mark.parametrize(
    ("text", "version"), [("10.14.1.48", (10, 14, 1, 48)), ("8.6", (8, 6)), ("", None), (None, None), ("unknown", None)]
)
def test_a_version_is_its_numbers(text: str | None, version: tuple[int, ...] | None) -> None:
    assert version_of(text) == version


def test_versions_are_compared_as_numbers() -> None:
    part = (Part("new", "tensorrt >= 10.14"),)
    assert advice_to(Reader((10, 9)), part) == ""
    assert advice_to(Reader((10, 14, 1)), part) == "new"
