"""Reads the names of kernels of TensorRT-LLM's generator for Blackwell, which FlashInfer, vLLM and
SGLang run too: bmm_… and fmhaSm100….
"""

from __future__ import annotations

import re

from nsysmap.names.model import Fields, Reading

_TYPES = {
    "Bfloat16": "BF16", "Fp16": "FP16", "Fp32": "FP32", "E4m3": "FP8", "E5m2": "FP8", "E2m1": "FP4",
    "MxE4m3": "FP8", "MxE2m1": "FP4", "MxInt4": "INT4",
}  # fmt: skip
_TYPE = r"(?:Bfloat16|Fp16|Fp32|(?:Mx)?E4m3|E5m2|(?:Mx)?E2m1|MxInt4)"
_PRODUCT = re.compile(
    rf"(?:bmm|gemm)_(?P<output>{_TYPE})_(?P<input>{_TYPE})(?P<weights>{_TYPE})?_(?P<accumulate>{_TYPE})_(?P<words>\w+)$"
)
_WORDS = re.compile(
    r"t(?P<tile>\d+x\d+x\d+)(?:u\d)?$|s(?P<stages>\d{1,3})$|m(?P<instruction>\d+x\d+x\d+)$|c(?:ga)?(?P<cluster>\d+x\d+x\d+)$"
    r"|(?P<transpose>[TN]{2})$|(?P<arch>sm\d+[af]?)$|(?P<epilogue>swiGlu|geGlu|relu2?|silu|gelu)$|(?P<bias>bias)\w*$|(?P<split_k>splitK)\d*$"
)
_ATTENTION = re.compile(
    rf"fmha(?P<arch>Sm\d+[af]?)Kernel_(?:Qkv(?P<qkv>{_TYPE})|Q(?P<q>{_TYPE})Kv(?P<kv>{_TYPE}))O(?P<output>{_TYPE})"
    r"H(?:Qk)?(?P<head_size>\d+)(?:HV(?P<value_size>\d+))?(?P<words>\w*)$"
)
_MASK = re.compile(r"SlidingOrChunkedCausal|SlidingWindowCausal|Causal|Dense|Custom")
_TILE = re.compile(r"Q(\d+)Kv(\d+)")


def read_trtllm_gen(name: str) -> Reading | None:
    """Reads such a name: types, tile, mask; None if it is not this generator's."""
    if name.startswith("fmhaSm"):
        return _attention(name)
    match = _PRODUCT.match(name)
    if match is None:
        return None
    fields: Fields = {"function": name, "operation": "gemm"}
    fields |= {f"{side}_type": _TYPES[match[side]] for side in ("input", "output", "accumulate")}
    if match["weights"] and _TYPES[match["weights"]] != fields["input_type"]:
        fields["weights_type"] = _TYPES[match["weights"]]
    epilogue = []
    for word in match["words"].split("_"):
        found = _WORDS.match(word)
        role = found.lastgroup if found is not None else None
        if found is None or role is None:
            continue
        if role in ("epilogue", "bias"):
            epilogue.append(found[role])
        elif role == "split_k":
            fields[role] = "yes"
        else:
            fields.setdefault(
                role,
                (
                    int(found[role])
                    if role == "stages"
                    else found[role].lower()
                    if role == "transpose"
                    else found[role]
                ),
            )
    if epilogue:
        fields["epilogue"] = "+".join(epilogue)
    return Reading("tensorrt-llm", fields, "yes", [], [name])


def _attention(name: str) -> Reading | None:
    match = _ATTENTION.match(name)
    if match is None:
        return None
    words = match["words"]
    read = _TYPES[match["qkv"] or match["q"]]
    fields: Fields = {
        "function": name,
        "operation": "attention",
        "arch": match["arch"].lower(),
        "head_size": int(match["head_size"]),
    }
    fields |= {"input_type": read, "output_type": _TYPES[match["output"]]}
    if match["kv"] and _TYPES[match["kv"]] != read:
        fields["cache_type"] = _TYPES[match["kv"]]
    if mask := _MASK.search(words):
        fields["mask"] = mask.group()
    if tile := _TILE.search(words):
        fields["tile"] = f"{tile[1]}x{tile[2]}"
    return Reading("fmha", fields, "yes", [], [name])
