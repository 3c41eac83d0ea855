"""Tells what launched the GPU work, as far as the names of the processes show: trtexec, Python or
another program.

The names themselves do not leave this module: they can be anything, with paths and arguments in
them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from nsysmap.core.table import MISSING
from nsysmap.core.trace_schema import OTHER_HOST, PYTHON, TENSORRT_RTX, TRTEXEC
from nsysmap.inputs.nsys.tables import NsysTables
from nsysmap.trace.raw_rows import Strings, process_of

_KNOWN = (
    (TRTEXEC, re.compile(r"trtexec(_debug)?(\.exe)?")),
    (TENSORRT_RTX, re.compile(r"tensorrt_rtx(\.exe)?")),
    # PyTorch calls its main thread pt_main_thread, Ray its workers ray::…
    (PYTHON, re.compile(r"i?python[\d.]*(\.exe)?|pt_main_thread|pypy[\d.]*|ray::.*")),
)
_TID = 0xFFFFFF  # the bits of nsys's globalTid that number the thread, and above them the process


def hosts_of(tables: NsysTables, strings: Strings) -> Mapping[int, str]:
    """The kind of each process (see HOSTS), by nsys's number for it; processes without a name, as
    in reports of older versions, are left out.
    """
    named = tables.read("PROCESSES", ("globalPid",), ("name",))
    told = dict(zip(named["globalPid"].tolist(), named["name"].list(), strict=True))
    # where there is no PROCESSES, as in older exports, the main thread has the name: its number is
    # its process's
    threads = tables.read("ThreadNames", ("globalTid", "nameId"))
    thread = threads["globalTid"]
    main = np.flatnonzero((thread != MISSING) & (thread & _TID == thread >> 24 & _TID))
    names = strings.text(threads["nameId"][main]).list()
    for process, name in zip(process_of(thread[main]).tolist(), names, strict=True):
        told.setdefault(process, name)
    return {process: host_of(name) for process, name in told.items() if name}


def host_of(name: str) -> str:
    """The kind of a process with this name (see HOSTS). The name may be a path, or a command with
    its arguments.
    """
    command = re.split(r"[/\\]", name.strip().split(" ")[0])[-1]
    return next((host for host, pattern in _KNOWN if pattern.fullmatch(command)), OTHER_HOST)
