"""Engine files of very many layers: what is read in a short way is what the long way reads."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.records import replaced
from nsysmap.inputs.engine.layer_info import documents_of, engine_of, onnx_nodes
from nsysmap.inputs.engine.model import Layer, Tensor
from nsysmap.names.decode import decode
from nsysmap.network.operations import operations
from tests.places import FIXTURES

PIECES = st.lists(
    st.sampled_from(
        (
            "[ONNX Layer: ",
            "]",
            "\x1f",
            "\x1e",
            "/a/MatMul",
            "b",
            " ",
            "][",
            "] [",
            "[",
            "]\x1f[ONNX Layer: ",
        )
    ),
    max_size=12,
).map("".join)


def long_way(text: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    text = re.sub(r"\]\s*\[", "]\x1f[", text)
    for part in text.replace("\x1e", "\x1f").split("\x1f"):
        piece = part.strip()
        found = re.match(r"\[[A-Za-z][\w .-]*? Layer: (.*)\](?:__\w+)?$", piece, re.DOTALL)
        if piece.startswith("[ONNX Layer: ") and piece.endswith("]"):
            name = piece[len("[ONNX Layer: ") : -1]
        else:
            name = found.group(1) if found else piece
        if name:
            names[name] = None
    return tuple(names)


@given(PIECES)
def test_nodes_of_metadata_are_those_that_each_part_names(text: str) -> None:
    assert onnx_nodes(text) == long_way(text)


ENGINES = sorted((FIXTURES / "real_trt").glob("*.engine.json"))


@pytest.mark.parametrize("number", [0, 7, 12_345])
def test_a_generated_kernel_does_the_same_whatever_its_instructions_number(number: int) -> None:
    asked = 0
    for file in ENGINES:
        rows = json.loads(file.read_text("utf-8"))
        for layer in engine_of(documents_of(rows, file.name)[0], file.name).layers:
            if layer.kind != "myelin_kernel":
                continue
            asked += 1
            name = re.sub(r"_myl\d+_\d+", f"_myl{number}_{number + 1}", layer.name)
            decoded = decode(name)
            told = operations(replaced(layer, name=name))
            assert told.ops == decoded.ops
            assert told.patterns == tuple(pattern.name for pattern in decoded.patterns)
    assert asked > 400


def test_a_record_replaced_has_the_values_of_a_new_one() -> None:
    layer = Layer(3, "a", "gemm", inputs=(Tensor("x"),), parameters={"k": 1})
    operations(layer)  # kept in the layer, and not taken over
    made = replaced(layer, kind="signal", optimization_profile=2)
    assert made == dataclasses.replace(layer, kind="signal", optimization_profile=2)
    assert vars(made).keys() == {field.name for field in dataclasses.fields(Layer)}
