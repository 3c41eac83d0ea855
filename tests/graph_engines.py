"""Made-up engines of any size for the tests of pictures: a decoder of equal blocks, chains,
branches, skips.
"""

from __future__ import annotations

from nsysmap.inputs.engine.layer_info import documents_of, engine_of
from nsysmap.inputs.engine.model import Engine
from tests.made_engines import Row, made, row

SHAPE = [1, 512, 2048]
GEMM = "sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"  # noqa: E501


def layer(name: str, kind: str, reads: list[str], writes: list[str], onnx: str = "") -> Row:
    """One layer whose tensors are all fp16 of one shape."""
    tactic = GEMM if kind == "gemm" else name.replace("{}", "_0x1a")
    metadata = f"[ONNX Layer: {onnx}]" if onnx else ""
    return row(
        name,
        kind,
        [(one, SHAPE, "Half") for one in reads],
        [(one, SHAPE, "Half") for one in writes],
        TacticName=tactic,
        Metadata=metadata,
    )


def decoder_rows(blocks: int, *, metadata: bool = True) -> list[Row]:
    """A decoder of so many blocks of 8 layers between an embedding and a head; one tensor is read
    by every block.
    """
    rows = [
        layer("__myl_Gath{}", "kgen", ["ids"], ["x0"]),
        layer("__myl_SinCos{}", "kgen", ["positions"], ["rope"]),
    ]
    for at in range(blocks):
        path = f"/model/layers.{at}"
        block = [
            ("__myl_MulMeanAddSqrtDivMulCastMul{}", [f"x{at}"], [f"n{at}"], "norm/Mul"),
            *(
                (
                    f"{path}/attn/{part}/MatMul{{}}",
                    [f"n{at}"],
                    [f"{part}{at}"],
                    f"attn/{part}/MatMul",
                )
                for part in "qkv"
            ),
            ("_gemm_mha_v2{}", [f"q{at}", f"k{at}", f"v{at}", "rope"], [f"a{at}"], "attn/Softmax"),
            (f"{path}/attn/o/MatMul{{}}", [f"a{at}"], [f"o{at}"], "attn/o/MatMul"),
            (f"{path}/mlp/MatMul{{}}", [f"o{at}"], [f"m{at}"], "mlp/MatMul"),
            ("__myl_Add{}", [f"x{at}", f"m{at}"], [f"x{at + 1}"], "Add"),
        ]
        for name, reads, writes, node in block:
            rows.append(
                layer(
                    name,
                    "gemm" if name[0] == "/" else "kgen",
                    reads,
                    writes,
                    f"{path}/{node}" if metadata else "",
                )
            )
    rows.append(layer("/head/MatMul{}", "gemm", [f"x{blocks}"], ["logits"], "/head/MatMul"))
    return rows


def decoder(blocks: int, *, metadata: bool = True) -> Engine:
    """That decoder as an engine."""
    return made(*decoder_rows(blocks, metadata=metadata), outputs=("logits",))


def names_only(engine: Engine) -> Engine:
    """The same engine from a file that holds names only."""
    return engine_of(
        documents_of({"Layers": [one.name for one in engine.layers]}, "names.json")[0], "names.json"
    )


def chain(*edges: tuple[int, int]) -> Engine:
    """An engine of convolutions: each pair is a producer and a consumer."""
    count = max(max(pair) for pair in edges) + 1
    return made(
        *(
            layer(
                f"conv{number}",
                "CaskConvolution",
                [f"t{source}" for source, target in edges if target == number] or ["in"],
                [f"t{number}"],
            )
            for number in range(count)
        )
    )
