"""No damage makes the reader crash, hang or take much memory: it gives an error, or what nsys
itself would read out of those bytes.
"""

from __future__ import annotations

import random
from pathlib import Path

from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.nsys.report_tables import read_report
from tests.made_report import Made, message
from tests.report_events import call, kernel, nvtx, process


def test_hundreds_of_mutations_of_a_small_report(tmp_path: Path) -> None:
    events = [process(7 << 24, (5, "a")), nvtx(75, (7, "D"), (13, 1))]
    events += [
        event
        for t in range(0, 400, 40)
        for event in (
            call(0, 1, start=t),
            kernel(t + 10, t + 20),
            nvtx(59, (7, "x"), (10, t + 5), start=t),
        )
    ]
    data = Made(
        events=events, strings=["", "name"], per_block=12, threads=[message((2, 1), (4, 9))]
    ).data()
    path = tmp_path / "a.nsys-rep"
    choose = random.Random(3)
    for _ in range(400):
        out = bytearray(data)
        for _ in range(choose.choice((1, 1, 1, 2, 5))):
            at = choose.randrange(len(out))
            if choose.random() < 0.7:
                out[at] ^= 1 << choose.randrange(8)
            else:
                out[at : at + choose.randrange(9)] = choose.randbytes(choose.randrange(9))
        path.write_bytes(out)
        try:
            read_report(path)
        except NsysmapError as error:
            assert str(path) == error.where
