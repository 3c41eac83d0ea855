"""One line to paste for each change: for TensorRT of some version, and for PyTorch."""

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
"""What each change (the table `whatif`) is."""

THROUGHPUT = frozenset({"two-in-flight", "async"})
"""Changes that make no single inference faster."""


@dataclass(frozen=True)
class Lines:
    """How to make a change; ``since`` is the TensorRT version from which ``tensorrt`` is right, ``before`` what is right before it."""

    tensorrt: str
    pytorch: str
    cuda: str = ""  # where neither runs; the same as TensorRT's where that is none of its tools
    since: Version = ()
    before: str = ""


_LINES = {
    "cuda-graph": Lines(
        "trtexec --loadEngine=model.plan --useCudaGraph",
        'model = torch.compile(model, mode="reduce-overhead")',
        "cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);",
    ),
    "two-in-flight": Lines(
        "trtexec --loadEngine=model.plan --infStreams=2",
        "with torch.cuda.stream(streams[i % 2]): out[i] = model(batch[i])",
        "kernel<<<grid, block, 0, streams[i % 2]>>>(...);",
        since=(8, 6),
        before="trtexec --loadEngine=model.plan --streams=2",
    ),
    "async": Lines(
        "cudaStreamSynchronize(stream);  // once, after the last enqueue",
        "torch.cuda.synchronize()  # once, after the last batch",
    ),
    "pinned-copies": Lines(
        "cudaHostRegister(buffer, bytes, cudaHostRegisterDefault);",
        'batch = batch.pin_memory().to("cuda", non_blocking=True)',
    ),
    "no-host-gap": Lines(
        "nsys profile -t cuda,nvtx,osrt -o host ./program",
        "nsys profile -t cuda,nvtx,osrt --python-sampling=true python x.py",
    ),
    "one-stream": Lines(
        "trtexec --onnx=model.onnx --maxAuxStreams=0",
        "torch.cuda.set_stream(torch.cuda.default_stream())",
        "kernel<<<grid, block, 0, stream>>>(...);  // one stream for all",
        since=(8, 6),
    ),
    "aux-streams": Lines(
        "trtexec --onnx=model.onnx --maxAuxStreams=2",
        "with torch.cuda.stream(side): branch = module(x)",
        since=(8, 6),
    ),
    "drop-layers": Lines("nsysmap rules show reformat-cost", "nsysmap rules show reformat-cost"),
    "join-kernels": Lines(
        'torch.onnx.export(model, inputs, "model.onnx", opset_version=17)',
        "y = torch.nn.functional.layer_norm(x, shape, weight, bias)",
    ),
}

_TORCH_TENSORRT = {"cuda-graph": "torch_tensorrt.runtime.set_cudagraphs_mode(True)"}
"""Lines for engines that PyTorch runs, where they differ from PyTorch's own."""


_OF_THE_PROGRAM = ("no-host-gap",)
"""Changes that are of the program around the engine: where that is PyTorch, only PyTorch's line fits."""


def lines_for(change: str, tensorrt: Version | None, *, engine: bool, pytorch: bool) -> tuple[str, str | None]:
    """The line to paste, and PyTorch's where both run; CUDA's where neither does.

    It is of the detected TensorRT version, of the newest where none was detected.
    """
    lines = _LINES[change]
    trt = lines.before if tensorrt is not None and tensorrt < lines.since else lines.tensorrt
    if not pytorch:
        return (trt if engine or not lines.cuda else lines.cuda), None
    if not engine or change in _OF_THE_PROGRAM:
        return lines.pytorch, None
    torch = _TORCH_TENSORRT.get(change, lines.pytorch)
    return trt or torch, None if torch == trt else torch
