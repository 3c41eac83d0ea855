"""What each change is in words, and one line to paste for it: for TensorRT of some version, for PyTorch, for CUDA alone."""

from __future__ import annotations

from dataclasses import dataclass

Version = tuple[int, ...]

TITLES = {
    "cuda-graph": "run it as a CUDA graph",
    "two-in-flight": "keep two inferences in flight",
    "async": "synchronise once, at the end",
    "pinned-copies": "copy to and from pinned memory",
    "no-host-gap": "move host work out of the loop",
    "one-stream": "run all kernels on one stream",
    "aux-streams": "run independent layers concurrently",
    "drop-layers": "avoid TensorRT's reformats",
    "join-kernels": "fuse each norm or softmax into one kernel",
}
"""What each change (the table `whatif`) does."""

RULE_TITLES = {
    "attention-not-fused": "fuse attention",
    "norm-split": "fuse each norm into one kernel",
    "softmax-split": "fuse each softmax into one kernel",
    "pointwise-chain": "join element-wise kernels",
    "epilogue-missed": "fuse element-wise work into the products before it",
    "qkv-not-merged": "merge the products of Q, K and V",
    "parallel-small-kernels": TITLES["aux-streams"],
    "fp32-in-reduced-engine": "run FP32 layers in half precision",
    "tensor-cores-missed": "run products on tensor cores",
    "unfused-quantize": "fold Q/DQ into the layers beside it",
    "int8-with-float-output": "quantise outputs too",
    "channel-alignment": "align channels",
    "under-filled-gpu": "use a larger batch",
    "copy-not-overlapped": "copy while kernels run",
}
"""What to do about the findings of a rule; of another rule its name says it."""

THROUGHPUT = frozenset({"two-in-flight", "async"})
"""Changes that do not make a single inference faster."""

UNKNOWN: Version = (10, 14)
"""The version that is assumed where none was detected: what it accepts, version 11 does as well, but for the flags of precision."""

_RECENT: Version = (10,)  # what every version before it has too needs no mention


@dataclass(frozen=True)
class Lines:
    """How to make a change; with TensorRT, the first of ``tensorrt`` (from which version on, the line) that is of the version or older."""

    tensorrt: tuple[tuple[Version, str], ...]
    pytorch: str = ""
    cuda: str = ""  # if neither runs; the same as TensorRT's line if that uses no TensorRT tool

    def of(self, version: Version | None) -> str:
        """The line for this TensorRT; it says from which version on it is right where that is not known, or is not yet so."""
        since, line = next((one for one in self.tensorrt if (version or UNKNOWN) >= one[0]), self.tensorrt[-1])
        sure = self.fits(version) if version is not None else since < _RECENT
        return line if sure else f"{line}  # from TensorRT {'.'.join(map(str, since))} on"

    def fits(self, version: Version | None) -> bool:
        """Whether this TensorRT has a line."""
        return (version or UNKNOWN) >= self.tensorrt[-1][0]


_CAPTURE = "cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);"
_AHEAD = "auto next = std::async(std::launch::async, preprocess, i + 1);"
_OPSET_17 = 'torch.onnx.export(model, inputs, "model.onnx", opset_version=17)'
_AUX_STREAMS = (((8, 6), "trtexec --onnx=model.onnx --maxAuxStreams=2"),)
_HALF = (((10, 12), "python -m modelopt.onnx.autocast --onnx_path model.onnx"), ((), "trtexec --onnx=model.onnx --fp16"))

_LINES = {
    "cuda-graph": Lines(
        (
            ((11,), f"{_CAPTURE} context->enqueueV3(stream); cudaStreamEndCapture(stream, &graph);"),  # trtexec does it by default
            ((), "trtexec --loadEngine=model.plan --useCudaGraph"),
        ),
        'model = torch.compile(model, mode="reduce-overhead")',
        _CAPTURE,
    ),
    "two-in-flight": Lines(
        (((8, 6), "trtexec --loadEngine=model.plan --infStreams=2"), ((), "trtexec --loadEngine=model.plan --streams=2")),
        "with torch.cuda.stream(streams[i % 2]): out[i] = model(batch[i])",
        "kernel<<<grid, block, 0, streams[i % 2]>>>(...);",
    ),
    "async": Lines(
        (((), "cudaStreamSynchronize(stream);  // once, after the last enqueue"),),
        "torch.cuda.synchronize()  # once, after the last batch",
    ),
    "pinned-copies": Lines(
        (((), "cudaHostRegister(buffer, bytes, cudaHostRegisterDefault);"),),
        'batch = batch.pin_memory().to("cuda", non_blocking=True)',
    ),
    "no-host-gap": Lines(
        (((), _AHEAD),),
        "for x in DataLoader(data, num_workers=4, pin_memory=True):",
    ),
    "one-stream": Lines(
        (((8, 6), "trtexec --onnx=model.onnx --maxAuxStreams=0"),),
        "torch.cuda.set_stream(torch.cuda.default_stream())",
        "kernel<<<grid, block, 0, stream>>>(...);  // one stream for all",
    ),
    "aux-streams": Lines(_AUX_STREAMS, "with torch.cuda.stream(side): branch = module(x)"),
    "drop-layers": Lines((((), "nsysmap rules show reformat-cost"),), "nsysmap rules show reformat-cost"),
    "join-kernels": Lines((((), _OPSET_17),), "y = torch.nn.functional.layer_norm(x, shape, weight, bias)"),
}

_RULE_LINES = {
    "attention-not-fused": Lines(
        (
            ((10, 14), 'torch.onnx.export(model, inputs, "model.onnx", opset_version=23, dynamo=True)'),
            ((), "polygraphy surgeon sanitize model.onnx --fold-constants -o folded.onnx"),
        )
    ),
    "split-inside-region": Lines((((10,), "trtexec --onnx=model.onnx --profilingVerbosity=detailed --exportLayerInfo=engine.json"),)),
    "norm-split": Lines((((), _OPSET_17),)),
    "pointwise-chain": Lines((((8, 6), "trtexec --onnx=model.onnx --builderOptimizationLevel=5"),)),
    "parallel-small-kernels": Lines(_AUX_STREAMS),
    "fp32-in-reduced-engine": Lines(_HALF),
    "tensor-cores-missed": Lines(_HALF),
    "copy-not-overlapped": Lines(
        (((), "cudaMemcpyAsync(next, host, bytes, cudaMemcpyHostToDevice, copies);"),),
        'with torch.cuda.stream(copies): x = x.to("cuda", non_blocking=True)',
        "cudaMemcpyAsync(next, host, bytes, cudaMemcpyHostToDevice, copies);",
    ),
    "under-filled-gpu": Lines((((), "trtexec --onnx=model.onnx --shapes=INPUT:2xDIMS"),), "out = model(torch.cat([x0, x1]))"),
}
"""Lines for what a rule finds, by its name; of another rule, and where no line is of the version, the rule itself is shown."""

_TORCH_TENSORRT = {"cuda-graph": "torch_tensorrt.runtime.set_cudagraphs_mode(True)"}
"""Lines for engines that PyTorch runs, if they differ from PyTorch's own."""

_BETWEEN_LAUNCHES = {
    True: "with torch_tensorrt.runtime.enable_cudagraphs(model) as model:",
    False: 'model = torch.compile(model, mode="reduce-overhead")',
}
"""Lines against the host's own work where that is Python's between one launch and the next; with engines, or without."""

_OF_THE_PROGRAM = ("no-host-gap", "under-filled-gpu", "copy-not-overlapped")
"""Changes to the program around the engine, and rules about it: if that is PyTorch, only PyTorch's line applies."""


def lines_for(
    change: str, tensorrt: Version | None, *, engine: bool, pytorch: bool, between_launches: bool = False
) -> tuple[str, str | None]:
    """The line to paste, and PyTorch's where both run; CUDA's where neither does.

    ``between_launches`` says that the host's own work lies between launches rather than between inferences.
    """
    lines = _LINES[change]
    trt = lines.of(tensorrt)
    if not pytorch:
        return (trt if engine or not lines.cuda else lines.cuda), None
    if change == "no-host-gap" and between_launches:
        return _BETWEEN_LAUNCHES[engine], None
    if not engine or change in _OF_THE_PROGRAM:
        return lines.pytorch, None
    torch = _TORCH_TENSORRT.get(change, lines.pytorch)
    return (trt, torch) if lines.fits(tensorrt) and torch != trt else (torch, None)


def rule_line(rule: str, tensorrt: Version | None, *, engine: bool, engine_file: bool, pytorch: bool) -> str:
    """The line to paste for what a rule finds: what shows the rule where there is none.

    ``engine_file`` says that there is the file of an engine that ran: an opener of its regions is of use.
    """
    lines = _RULE_LINES.get(rule)
    if lines is None or (rule == "split-inside-region" and not (engine_file and lines.fits(tensorrt))):
        return f"nsysmap rules show {rule}"
    return (
        lines.of(tensorrt) if engine and not (pytorch and rule in _OF_THE_PROGRAM) else lines.pytorch if pytorch else lines.cuda
    ) or f"nsysmap rules show {rule}"
