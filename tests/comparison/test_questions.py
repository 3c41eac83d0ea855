"""What users ask with two captures in hand: the answer stands on the first screen, and is true."""

from __future__ import annotations

from functools import cache

import pytest

from nsysmap.comparison.compare import compare
from nsysmap.comparison.pages import comparison_text
from tests.places import FIXTURES

SCREEN = (30, 110)  # lines and columns
QUESTIONS = {
    "did the CUDA graph help, and how much": (
        "bert_trt10/sync.sqlite", "bert_trt10/graph.sqlite",
        ["FASTER: 330.7 µs → 281.6 µs", "95 % interval", "CUDA graph", "waiting for launches"],
    ),
    "does the trace of whole graphs tell that too": (
        "bert_trt10/sync.sqlite", "bert_trt10/graph_whole.sqlite",
        ["FASTER:", "traced as a whole", "the trace cannot separate them"],
    ),
    "it became slower: was it the application": (
        "bert_trt10/sync.sqlite", "bert_trt10/hostgap.nsys-rep",
        ["SLOWER: 330.7 µs → 1,18", "idle: host busy elsewhere"],
    ),
    "what do pageable copies cost": (
        "bert_split_trt10/sync.nsys-rep", "bert_split_trt10/pageable.nsys-rep",
        ["SLOWER:", "2, 2 that block the host", "idle: in blocking copies", "copies to the device"],
    ),
    "do two threads bring more, per inference of both": (
        "bert_split_trt10/sync.nsys-rep", "bert_split_trt10/threads.nsys-rep",
        ["FASTER:", "threads that run inferences (1 → 2)", "wall time divided by the inferences of all threads"],  # noqa: E501
    ),
    "TensorRT went from 8.5 to 10: is the network still the same": (
        "bert_trt85/sync.sqlite", "bert_trt10/sync.sqlite",
        ["FASTER:", "1 that became 55, moved out of regions"],
    ),
    "was it another GPU or profiler": (
        "bert_trt10/sync.sqlite", "newer/bert_sync.sqlite",
        # each kernel takes 0.27 µs longer: a factor of 1.001
        ["Not like for like (GPU). No difference beyond the noise",
         "GPU (NVIDIA H200 → NVIDIA H100 80GB HBM3)", "nsys (2023.4.4.54 → 2025.3",
         "Another version of the profiler"],
    ),
    "was the batch or the sequence another": (
        "bert_split_trt10/sync.nsys-rep", "bert_trt10/sync.sqlite",
        ["Not like for like (shapes of inputs and outputs", "input_ids 1x64", "input_ids 1x128", "A different amount of work"],  # noqa: E501
    ),
    "are these two captures of one thing": (
        "bert_trt10/sync.sqlite", "aux_streams/sync.nsys-rep",
        ["different networks", "streams with GPU work"],
    ),
    "is the same capture the same": ("bert_trt10/sync.sqlite", "bert_trt10/sync.sqlite", ["No difference beyond the noise", "0 ns more"]),  # noqa: E501
    "what did a graph do for several streams": (
        "aux_streams/sync.nsys-rep", "aux_streams/graph.nsys-rep",
        ["FASTER:", "CUDA graph", "idle: waiting for launches"],
    ),
    "PyTorch without an engine file, launched as a graph": (
        "torch_encoder/eager.nsys-rep", "torch_encoder/graph.nsys-rep",
        ["FASTER:", "CUDA graph", "idle: waiting for launches"],
    ),
}  # fmt: skip


@cache
def engines_of(report: str) -> list[str]:
    folder = (FIXTURES / report).parent
    return [
        str(path)
        for path in sorted(folder.glob("*engine.json"))
        if folder.name not in ("newer", "torch_encoder")
    ]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_stands_on_the_first_screen(question: str) -> None:
    before, after, words = QUESTIONS[question]
    found = compare(
        FIXTURES / before,
        FIXTURES / after,
        engine_before=engines_of(before),
        engine_after=engines_of(after),
    )
    lines, columns = SCREEN
    screen = " ".join(" ".join(comparison_text(found, columns).splitlines()[:lines]).split())
    assert [one for one in words if one not in screen] == []
