"""Small ONNX models for tests: a BERT as exporters write it, with its LayerNorms and GELUs in
single operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest


@dataclass
class Builder:
    """A model under construction; tensors are called by the node that makes them."""

    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)

    def weight(self, name: str) -> str:
        """A constant, without its values."""
        from onnx import TensorProto, helper

        self.weights.append(
            helper.make_tensor(name, TensorProto.FLOAT, [1], b"\0\0\0\x3f", raw=True)
        )
        return name

    def node(self, name: str, op: str, *inputs: str) -> str:
        """One node, and the name of its output."""
        from onnx import helper

        self.nodes.append(helper.make_node(op, list(inputs), [f"{name}_output_0"], name=name))
        return f"{name}_output_0"

    def product(self, name: str, read: str) -> str:
        """A matrix product with a weight, and its bias."""
        made = self.node(f"{name}/MatMul", "MatMul", read, self.weight(f"{name}.weight"))
        return self.node(f"{name}/Add", "Add", self.weight(f"{name}.bias"), made)

    def norm(self, name: str, read: str, *, whole: bool = False) -> str:
        """A LayerNorm, in pieces unless whole."""
        if whole:
            return self.node(
                f"{name}/LayerNormalization",
                "LayerNormalization",
                read,
                self.weight(f"{name}.weight"),
                self.weight(f"{name}.bias"),
            )
        mean = self.node(f"{name}/ReduceMean", "ReduceMean", read)
        centred = self.node(f"{name}/Sub", "Sub", read, mean)
        square = self.node(f"{name}/Pow", "Pow", centred, self.weight(f"{name}.two"))
        spread = self.node(f"{name}/Sqrt", "Sqrt", self.node(f"{name}/Add", "Add", self.node(f"{name}/ReduceMean_1", "ReduceMean", square),  # noqa: E501
                           self.weight(f"{name}.epsilon")))  # fmt: skip
        scaled = self.node(
            f"{name}/Mul",
            "Mul",
            self.node(f"{name}/Div", "Div", centred, spread),
            self.weight(f"{name}.weight"),
        )
        return self.node(f"{name}/Add_1", "Add", scaled, self.weight(f"{name}.bias"))

    def gelu(self, name: str, read: str) -> str:
        """The erf form."""
        half = self.node(
            f"{name}/Erf", "Erf", self.node(f"{name}/Div", "Div", read, self.weight(f"{name}.root"))
        )
        whole = self.node(
            f"{name}/Mul",
            "Mul",
            read,
            self.node(f"{name}/Add", "Add", half, self.weight(f"{name}.one")),
        )
        return self.node(f"{name}/Mul_1", "Mul", whole, self.weight(f"{name}.half"))

    def attention(self, name: str, read: str) -> str:
        """Three products that read one tensor, scores, softmax and values."""
        query, key, value = (
            self.product(f"{name}/{one}", read) for one in ("query", "key", "value")
        )
        query, key, value = (
            self.node(f"{name}/Transpose{end}", "Transpose", one)
            for end, one in (("", query), ("_1", key), ("_3", value))
        )
        scores = self.node(
            f"{name}/Div",
            "Div",
            self.node(f"{name}/MatMul", "MatMul", query, key),
            self.weight(f"{name}.scale"),
        )
        masked = self.node(f"{name}/Add", "Add", scores, "mask")
        chances = self.node(f"{name}/Softmax", "Softmax", masked)
        return self.node(
            f"{name}/Transpose_2",
            "Transpose",
            self.node(f"{name}/MatMul_1", "MatMul", chances, value),
        )

    def save(self, path: Path, output: str) -> Path:
        """The finished file."""
        onnx = pytest.importorskip("onnx")
        from onnx import TensorProto, helper

        made = helper.make_tensor_value_info
        inputs = [
            made("ids", TensorProto.INT64, [1, 128]),
            made("mask", TensorProto.FLOAT, [1, 1, 1, 128]),
        ]
        graph = helper.make_graph(
            self.nodes, "bert", inputs, [made(output, TensorProto.FLOAT, [1, 768])], self.weights
        )
        onnx.save(helper.make_model(graph), path)
        return path


def bert(path: Path, *, layers: int = 4, whole_norms: bool = False) -> Path:
    """A BERT with a pooler and a classifier, its nodes called as in the captures of TensorRT 8."""
    pytest.importorskip("onnx")
    made = Builder()
    words = made.node(
        "/embeddings/Gather", "Gather", made.weight("bert.embeddings.word_embeddings.weight"), "ids"
    )
    places = made.node(
        "/embeddings/Gather_1",
        "Gather",
        made.weight("bert.embeddings.position_embeddings.weight"),
        made.weight("places"),
    )
    held = made.norm(
        "/embeddings/LayerNorm",
        made.node("/embeddings/Add", "Add", words, places),
        whole=whole_norms,
    )
    for number in range(layers):
        name = f"/encoder/layer.{number}"
        mixed = made.product(
            f"{name}/attention/output/dense", made.attention(f"{name}/attention", held)
        )
        held = made.norm(
            f"{name}/attention/output/LayerNorm",
            made.node(f"{name}/attention/output/Add", "Add", mixed, held),
            whole=whole_norms,
        )
        wide = made.gelu(f"{name}/intermediate/act", made.product(f"{name}/intermediate", held))
        narrow = made.product(f"{name}/output/dense", wide)
        held = made.norm(
            f"{name}/output/LayerNorm",
            made.node(f"{name}/output/Add", "Add", narrow, held),
            whole=whole_norms,
        )
    first = made.node("/pooler/Gather", "Gather", held, made.weight("first"))
    pooled = made.node("/pooler/activation/Tanh", "Tanh", made.product("/pooler/dense", first))
    chance = made.node("/classifier/Sigmoid", "Sigmoid", pooled)
    return made.save(path, made.node("/classifier/Mul", "Mul", chance, pooled))
