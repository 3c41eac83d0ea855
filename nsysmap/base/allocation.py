"""Has the C library keep the memory of freed arrays for the next ones."""

from __future__ import annotations

import sys

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4  # malloc.h of glibc
_KEPT_BYTES = 2**31 - 1  # the most that the call takes
_AT_ONCE_BYTES = 2**26


def keep_freed_memory() -> None:
    """Have freed memory stay with this process: else every array of megabytes is of new pages, which the kernel must clear.

    A fifth of the time of a large report.  Does nothing where the C library is not glibc.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    try:
        set_option = ctypes.CDLL(None).mallopt
    except AttributeError:  # musl
        return
    for option, value in ((_M_MMAP_MAX, 0), (_M_TRIM_THRESHOLD, _KEPT_BYTES), (_M_TOP_PAD, _AT_ONCE_BYTES)):
        set_option(option, value)
