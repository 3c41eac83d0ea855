"""Fuzzes one target with atheris:  python -m tests.fuzz TARGET [libFuzzer's options], for example
-max_total_time=600.
"""

from __future__ import annotations

import sys
import tempfile

import atheris

with atheris.instrument_imports(include=["nsysmap"]):
    from tests.fuzz.targets import CORPUS, TARGETS


def main() -> None:
    """Run libFuzzer; it ends with another exit status than 0, and the input in a file, where
    anything but an NsysmapError came.

    New inputs that reach new code go to the first folder that the options name, else to one that is
    removed with the system's others.
    """
    target, options = sys.argv[1], sys.argv[2:]
    found = (
        []
        if any(not option.startswith("-") for option in options)
        else [tempfile.mkdtemp(prefix="nsysmap-fuzz-")]
    )
    atheris.Setup(
        [sys.argv[0], "-timeout=20", "-rss_limit_mb=2048", *options, *found, str(CORPUS / target)],
        TARGETS[target],
    )
    atheris.Fuzz()


main()
