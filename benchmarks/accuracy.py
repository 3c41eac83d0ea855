"""Writes docs/accuracy.md: how right the answers are on engines that TensorRT itself built and ran,
by the benchmarks that say so.

    python benchmarks/accuracy.py [CAPTURES...] [--held-out FILE] > docs/accuracy.md

CAPTURES (fixtures/real_trt unless given) are folders of the form that benchmarks/real_engines.py
describes; --held-out names models, one a line, that no constant and no threshold was chosen on.
"""
# ruff: noqa: E501 - the text of the page

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = """# How right the answers are

Measured on engines that TensorRT for RTX 1.5.0 built from models with random weights and ran on NVIDIA H200s: {models} models, among them transformers with and
without FP8, convolutional networks, recurrent networks, a mixture of experts, a point cloud network, a recommender and an engine with two optimization profiles.
They were recorded with Nsight Systems 2025.3 in several modes: with TensorRT's ranges (`sync`), as a CUDA graph (`graph`), without ranges (`sync_nonvtx`), with
two threads (`threads`), with pageable copies (`pageable`), and from a C++ program (`cpp_…`). Most programs were timed without the profiler on the same machine; bert_eager,
resnet50_b1 and googlenet on another one of the same kind. `python benchmarks/accuracy.py CAPTURES` makes this page.

## Did this engine run, and which layer did each kernel run for?

Each report of CUDA graphs, where no range helps, was analysed with its own engine file and with every other one (docs/mapping.md has the other modes). The truth is the layer's range where there is one, and otherwise the kernel sequence of
the capture with ranges.

```
{mapping}
```

## What an inference takes without the profiler, and what changes save

`before` is the time without the profiler, as the first screen predicts it; the others are changes of what-if, measured by making them. A prediction is in range if
the measured time (or saving) lies in the range that is stated with it; where that of another run does (a Python host's times differ by a fifth from run to run),
it says `runs do`. The last table of each says how wide the ranges should be ([how wide a range is](what-if.md#how-wide-a-range-is)): `factor` times as wide they would hold for nine of ten engines, and `left out` is the
share of engines that they hold for with the factor of all others. These engines are among those that the ranges were made with; docs/what-if.md has what was held out.

```
{whatif}
```

Programs that imitate engines with kernels that only spin, and PyTorch (fixtures/), beside them:

```
{imitations}
```

## What rules price

```
{findings}
```

## Kernel names

```
{names}
```
"""


def printed(*command: str) -> str:
    """What a benchmark prints on standard output."""
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def main(arguments: Sequence[str]) -> int:
    arguments = list(arguments)
    held_out: list[str] = []
    if "--held-out" in arguments:
        at = arguments.index("--held-out")
        held_out = [arguments[at], str(Path(arguments[at + 1]).resolve())]
        del arguments[at : at + 2]
    folders = [str(Path(one).resolve()) for one in arguments] or [
        str(ROOT / "fixtures" / "real_trt")
    ]
    models = {
        path.name.split("-")[0].removeprefix("cpp_").replace("gm_bert", "bert_eager")
        for one in folders
        for path in Path(one).glob("*.nsys-rep")
    }
    page = PAGE.format(
        models=len(models),
        mapping="\n\n".join(
            printed("benchmarks/real_engines.py", one, "--only", "graph") for one in folders
        ),
        whatif=printed("benchmarks/whatif.py", *folders, *held_out),
        imitations=printed("benchmarks/whatif.py", str(ROOT / "fixtures")),
        findings=printed("benchmarks/findings.py"),
        names=printed(
            "benchmarks/names.py",
            *(
                str(path)
                for one in folders
                for end in ("*.nsys-rep", "*.engine.json")
                for path in sorted(Path(one).glob(end))
            ),
        ),
    )
    sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
