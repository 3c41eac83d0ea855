"""Classifies the functions of the CUDA runtime and driver by name."""

from __future__ import annotations

import re

# nsys writes cudaLaunchKernel_v7000, cudaMemcpyAsync_ptsz_v7000, cuMemcpyHtoDAsync_v2: the stem is
# what people know.
_SUFFIX = re.compile(r"(?:_(?:ptsz|ptds))?(?:_v\d+)?(?:_(?:ptsz|ptds))?$")

# The first that matches counts.
_KINDS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("graph-launch", r"cu(da)?GraphLaunch$"),
        ("launch", r"cu(da)?Launch(Kernel|CooperativeKernel|Grid|$)"),
        (
            "host-register",
            r"cu(da)?(Mem)?(HostAlloc|AllocHost|MallocHost|HostRegister|HostUnregister|FreeHost|HostGetDevicePointer)",
        ),
        ("copy", r"cu(da)?(Memcpy|GraphMemcpy|MemPrefetch)"),
        ("memset", r"cu(da)?Memset"),
        ("sync", r"cu(da)?(Device|Ctx|Context|Stream|Event|Thread)Synchronize$"),
        ("stream-wait", r"cu(da)?StreamWait"),
        ("event", r"cu(da)?Event"),
        (
            "capture",
            r"cu(da)?(StreamBeginCapture|StreamEndCapture|StreamIsCapturing|StreamGetCaptureInfo|ThreadExchangeStreamCaptureMode)",
        ),
        ("graph-build", r"cu(da)?(Graph|UserObject)"),
        (
            "alloc",
            r"cu(da)?(Malloc|MemAlloc|MemCreate|MemMap|MemAddressReserve|ArrayCreate|MemPoolCreate)",
        ),
        (
            "free",
            r"cu(da)?(Free|MemFree|MemUnmap|MemRelease|MemAddressFree|ArrayDestroy|MemPoolDestroy|MemPoolTrimTo)",
        ),
        (
            "module-load",
            r"cu(da)?(Module(Load|GetFunction|GetGlobal)|Library|LinkComplete|GetFuncBySymbol|FuncLoad)",
        ),
    )
)


def stem(api: str) -> str:
    """The function's name without nsys's and CUDA's version suffixes."""
    return _SUFFIX.sub("", api)


def kind(api: str) -> str:
    """The short class of a function (see schema.API_CALLS), ``other`` where it has none."""
    name = stem(api)
    for result, pattern in _KINDS:
        if pattern.match(name):
            return result
    return "other"


def is_asynchronous(api: str) -> bool:
    """Whether a copy or memset function promises to return before the GPU is done."""
    return "Async" in api
