"""Small made-up engines for tests, written as TensorRT 10 writes them."""

from __future__ import annotations

from nsysmap.inputs.engine.layer_info import documents_of, engine_of
from nsysmap.inputs.engine.model import Engine

Row = dict[str, object]
Named = tuple[str, list[int], str]  # tensor: name, dimensions, type


def row(name: str, kind: str, reads: list[Named], writes: list[Named], **more: object) -> Row:
    """One layer row; names of Myelin layers get their region and number from `made`."""

    def tensors(named: list[Named]) -> list[Row]:
        return [
            {"Name": tensor, "Dimensions": dimensions, "Format/Datatype": form}
            for tensor, dimensions, form in named
        ]

    return {
        "Name": name,
        "LayerType": kind,
        "Inputs": tensors(reads),
        "Outputs": tensors(writes),
        "StreamId": 0,
        "Metadata": "",
        **more,
    }


def made(*rows: Row, outputs: tuple[str, ...] = ()) -> Engine:
    """The engine of these rows; a `{}` in a name becomes `_myl0_<place>`; `outputs` are its
    bindings.
    """
    numbered = [
        {**item, "Name": str(item["Name"]).replace("{}", f"_myl0_{place}")}
        for place, item in enumerate(rows)
    ]
    return engine_of(
        documents_of({"Layers": numbered, "Bindings": list(outputs)}, "made.json")[0], "made.json"
    )
