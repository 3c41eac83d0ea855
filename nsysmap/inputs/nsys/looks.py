"""Recognises what a file that is not an nsys report looks like; this only chooses an error message,
after nsys has refused the file.
"""

from __future__ import annotations

from pathlib import Path

_AGAIN = "copy it again from where it was captured, or capture it again"
_REPORT = "give a .nsys-rep, or what `nsys export` made of one"
_REPORT_TOO = "give the report of a run too: a .nsys-rep, or what `nsys export` made of one"
_HEADER = b"NVIDIA Tegra Profiler Report"
_MAGICS = (
    (b"\x1f\x8b", "is compressed with gzip", "unpack it first: gunzip FILE"),
    (b"\xfd7zXZ", "is compressed with xz", "unpack it first: unxz FILE"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "unpack it first: unzstd FILE"),
    (b"BZh", "is compressed with bzip2", "unpack it first: bunzip2 FILE"),
    (b"PK\x03\x04", "is a zip archive", "unpack it first: unzip FILE"),
    (
        b"\x89HDF\r\n",
        "is an HDF5 file",
        "export the report in another form: nsys export -t sqlite REPORT.nsys-rep",
    ),
    (
        b"NVR\0",
        "is a report of Nsight Compute, which profiles single kernels",
        "capture one of Nsight Systems: nsys profile -t cuda,nvtx …",
    ),
    (
        b"version https://git-lfs",
        "is a Git LFS pointer, not the file itself",
        "fetch it: git lfs pull",
    ),
    (b"\x7fELF", "is a program or a library, not a report", _REPORT),
    (b"ftrt", "is a TensorRT engine, not a report", _REPORT_TOO),
    (b"ptrt", "is a TensorRT engine, not a report", _REPORT_TOO),
    (b"vtrt", "is an engine of TensorRT for RTX, not a report", _REPORT_TOO),
)
_ENGINE_SUFFIXES = (".engine", ".plan", ".trt", ".rtx")


def looks_like(path: Path, head: bytes) -> tuple[str, str] | None:
    """What the file looks like, and the remedy; None if it may be a report. ``head`` is its first
    bytes.
    """
    suffix = path.suffix.lower()
    if not head:
        return "is empty", _AGAIN
    if suffix == ".qdstrm":
        remedy = (
            "turn it into a .nsys-rep with `QdstrmImporter -i FILE`, which comes with the nsys that"
            " captured it, and give that"
        )
        return "is a raw QDSTRM stream of an unfinished capture", remedy
    for magic, what, remedy in _MAGICS:
        if head.startswith(magic):
            return what, remedy
    if suffix in _ENGINE_SUFFIXES:
        return "is a TensorRT engine, not a report", _REPORT_TOO
    if head.lstrip()[:1] in (b"{", b"["):
        if b'"traceEvents"' in head or b'"schemaVersion"' in head:
            return (
                "is a Chrome trace, such as PyTorch's profiler writes, not an nsys report",
                _REPORT,
            )
        return "is JSON, not a report", _REPORT_TOO
    if head.startswith(b"NVIDIA "):
        return (
            ("is cut off in its first line", _AGAIN)
            if len(head) < 64 and b"\n" not in head
            else None
        )
    if _HEADER.startswith(head):
        return "is cut off in its first line", _AGAIN
    return (
        f"is not an nsys report (it begins with {_shown(head)}, not with {_HEADER.decode()})",
        _REPORT,
    )


def _shown(head: bytes) -> str:
    """The first bytes, as text where they are some."""
    start = head[:16]
    if all(32 <= byte < 127 for byte in start):
        return f'"{start.decode()}"'
    return "bytes " + start[:8].hex(" ")
