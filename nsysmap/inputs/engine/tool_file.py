"""The text in a file written by a TensorRT tool, whatever its encoding and compression; files of
other kinds are named in the error.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import zlib
from pathlib import Path
from typing import IO

from nsysmap.core.errors import NsysmapError, named_path, no_such_file

HEAD_BYTES = 4096  # enough to tell the form and the encoding of a text
MOST_BYTES = 1 << 29
"""The largest size of an unpacked file: layer information of the largest engines has some
100 MB.
"""

_PACKED = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open))
_ARCHIVES = (
    (b"PK\x03\x04", "a zip archive", "unzip"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unzstd"),
)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SAMPLE_BYTES = 16  # UTF-16 without a mark has a zero in every other of them


def head_of(file: Path) -> bytes:
    """How the file begins, unpacked.  Raises NsysmapError if it cannot be read, or could not be
    read a second time.
    """
    try:
        mode = named_path(file).stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise NsysmapError(
                str(file), "is a pipe or a device, not a file", "save it to a file first"
            )
        with _opened(file) as stream:
            return stream.read(HEAD_BYTES)
    except FileNotFoundError:
        raise no_such_file(file) from None
    except IsADirectoryError:
        raise NsysmapError(str(file), "is a folder", "give a file") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise NsysmapError(
            str(file), f"cannot be unpacked ({error})", "copy it again, or create it again"
        ) from None
    except OSError as error:
        raise NsysmapError(
            str(file),
            f"cannot be read ({error.strerror or error})",
            "check the path and its permissions",
        ) from None


def text_of(file: Path) -> str:
    """The text, in UTF-8 or (PowerShell) UTF-16; bytes that are neither become U+FFFD.  Its head is
    known to be readable.
    """
    try:
        with _opened(file) as stream:
            data = stream.read(MOST_BYTES + 1)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise NsysmapError(
            str(file), f"cannot be read to its end ({error})", "copy it again, or create it again"
        ) from None
    if len(data) > MOST_BYTES:
        raise NsysmapError(
            str(file),
            f"holds more than {MOST_BYTES >> 20:,} MiB",
            "give the file of one engine, from --exportLayerInfo",
        )
    return data.decode(_encoding(data[:HEAD_BYTES]) or "utf-8-sig", errors="replace")


def is_binary(head: bytes) -> bool:
    """Whether what begins so is no text."""
    return b"\0" in head and _encoding(head) is None


def begins_json_list(text: str) -> bool:
    """Whether the text begins as a JSON list of trtexec does, not as its log: a date or a word in
    brackets.
    """
    return text[:1] == "[" and not text[1:].lstrip()[:1].isalnum()


def _encoding(head: bytes) -> str | None:
    """The form of UTF-16, even without its byte-order mark; None for anything else."""
    if head.startswith(_UTF16):
        return "utf-16"
    start = head[:_SAMPLE_BYTES]
    for encoding, zeros, letters in (
        ("utf-16-le", start[1::2], start[0::2]),
        ("utf-16-be", start[0::2], start[1::2]),
    ):
        if len(start) >= 4 and not any(zeros) and all(9 <= byte < 127 for byte in letters):
            return encoding
    return None


def refuse_other_files(file: Path, head: bytes, wanted: str, remedy: str) -> None:
    """NsysmapError where the first bytes or the suffix say that it is another kind of file;
    ``remedy`` is for one that is empty.
    """
    if head.startswith((b"NVIDIA Tegra Profiler", b"NVIDIA Nsight Systems")) or file.suffix in (
        ".nsys-rep",
        ".qdrep",
    ):
        raise NsysmapError(str(file), f"is an nsys report, not {wanted}", f"give {wanted} instead")
    if head.startswith(b"SQLite format 3"):
        raise NsysmapError(
            str(file),
            f"is a SQLite file (an exported nsys report?), not {wanted}",
            f"give {wanted} instead",
        )
    if file.suffix == ".onnx":
        raise NsysmapError(
            str(file),
            f"is an ONNX model, not {wanted}",
            "build it with trtexec --onnx=… --profilingVerbosity=detailed"
            " --exportLayerInfo=FILE.json",
        )
    for magic, what, command in _ARCHIVES:
        if head.startswith(magic):
            raise NsysmapError(str(file), f"is {what}", f"unpack it first: {command} {file.name}")
    if head.startswith(b"version https://git-lfs"):
        raise NsysmapError(
            str(file), "is a Git LFS pointer, not the file itself", "fetch it: git lfs pull"
        )
    if not head:
        raise NsysmapError(str(file), "is empty", remedy)


def _opened(file: Path) -> IO[bytes]:
    with file.open("rb") as stream:
        start = stream.read(8)
    unpack = next((unpack for magic, unpack in _PACKED if start.startswith(magic)), None)
    return file.open("rb") if unpack is None else unpack(file, "rb")  # type: ignore[return-value]
