"""trtexec's options by version: the first that has each, and the first that does not any more
(NVIDIA/TensorRT, 7.0 to 11.1).
"""

from __future__ import annotations

import re

OPTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    option: (since, before)
    for since, before, options in (
        (
            (7, 0),
            (99,),
            (
                "onnx loadEngine saveEngine shapes streams inputIOFormats outputIOFormats verbose"
                " warmUp duration exportProfile"
            ),
        ),
        ((7, 0), (99,), "dumpProfile iterations threads useSpinWait int8"),
        ((7, 0), (11,), "fp16 useCudaGraph"),  # 11 takes --useCudaGraph and ignores it
        ((7, 0), (10,), "workspace batch"),
        ((7, 1), (99,), "noTF32"),
        ((7, 1), (10,), "nvtxMode"),
        ((7, 2), (99,), "noDataTransfers separateProfileRun"),
        ((8, 0), (99,), "sparsity timingCacheFile"),
        ((8, 2), (99,), "exportLayerInfo profilingVerbosity dumpLayerInfo"),
        ((8, 2), (11,), "precisionConstraints"),
        ((8, 4), (99,), "memPoolSize"),
        ((8, 4), (11,), "layerPrecisions layerOutputTypes"),
        ((8, 6), (99,), "infStreams maxAuxStreams builderOptimizationLevel skipInference"),
        ((8, 6), (11,), "fp8"),
        ((9, 0), (11,), "bf16"),
        ((9, 0), (99,), "useProfile stronglyTyped"),
        ((10, 0), (99,), "weightStreamingBudget allowWeightStreaming"),
        ((11, 0), (99,), "noCudaGraph"),
    )
    for option in options.split()
}
_OPTION = re.compile(r"--([A-Za-z][A-Za-z0-9]+)\b(?!-)")


def lacking(text: str, version: tuple[int, ...]) -> set[str]:
    """The options of trtexec in a text that this version does not have; options of other tools are
    not counted.
    """
    found = {option for option in _OPTION.findall(text) if option in OPTIONS}
    return {option for option in found if not OPTIONS[option][0] <= version < OPTIONS[option][1]}
