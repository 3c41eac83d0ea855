"""Writes docs/accuracy.md: how right the answers are on engines that TensorRT itself built and ran,
by the benchmarks that say so.

    python benchmarks/accuracy.py [CAPTURES...] [--held-out FILE] [--mapped CAPTURES...]
    [--most SECONDS] [--jobs N] > docs/accuracy.md

CAPTURES (fixtures/real_trt unless given) are folders of the form that benchmarks/real_engines.py
describes; --held-out names models, one a line, that no constant and no threshold was chosen on;
--mapped are further folders, each a set of its own, of which the page has what the mapping is, in
sums.  N benchmarks run at once (as many as there are processors).  One that takes longer than
SECONDS (3600) is left out, and the page says so.
"""
# ruff: noqa: E501 - the text of the page

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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
{mapped}
## What an inference takes without the profiler, and what changes save

`before` is the time without the profiler, as the first screen predicts it; the others are changes of what-if, measured by making them. A prediction is in range if
the measured time (or saving) lies in the range that is stated with it; where that of another run does (a Python host's times differ by a fifth from run to run),
it says `runs do`. The last table of each says how wide the ranges should be ([how wide a range is](what-if.md#how-wide-a-range-is)): `factor` times as wide they would hold for nine of ten engines, and `left out` is the
share of engines that they hold for with the factor of all others. These engines are among those that the ranges were made with. Of nine that were held out, `cuda-graph` was off by 1.4 % in the median and in range in
21 of 21 (width 9.9 %), `before` of graphs by 3.0 % and in range in 10 of 12 (10.9 %); of twelve more, for which nothing was changed, by 1.3 % and in 34 of 36 (12.2 %), and by 1.0 % and in 22 of 24 (11.5 %): [docs/what-if.md](what-if.md#accuracy).

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


MAPPED = """
All reports of {sets} further sets of captures, {models} models, in sums; below them what is not as it should be, and which files of other engines are not refused. Reports of graphs and those
without ranges, the latter with six inferences, were held against every file of their set.
"""
SET = """
```
{count} reports: {models}
{text}
```
"""


def printed(most_s: float, *command: str) -> str:
    """What a benchmark prints on standard output."""
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *command],
            check=False,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=most_s,
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} took more than {most_s:.0f} s"
    took = f"{command[0]}: {time.monotonic() - begin:.0f} s, status {done.returncode}"
    print(took, file=sys.stderr, flush=True)
    # a status of 1 says that not all is right, which is what the page is for
    if done.returncode not in (0, 1) or not done.stdout.strip():
        raise SystemExit(f"{took}\n{done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def models_in(folders: Sequence[str]) -> set[str]:
    """The models of which these folders have reports."""
    return {
        path.name.split("-")[0].removeprefix("cpp_").replace("gm_bert", "bert_eager")
        for one in folders
        for path in Path(one).glob("*.nsys-rep")
    }


def reports_in(folder: str) -> int:
    """How many reports a folder has."""
    return sum(1 for _ in Path(folder).glob("*.nsys-rep"))


def main(arguments: Sequence[str]) -> int:
    """Prints the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("captures", type=Path, nargs="*")
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--mapped", type=Path, nargs="*", default=[])
    parser.add_argument("--most", type=float, default=3600.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    most = options.most
    held_out = ["--held-out", str(options.held_out.resolve())] if options.held_out else []
    folders = [str(one.resolve()) for one in options.captures] or [
        str(ROOT / "fixtures" / "real_trt")
    ]
    further = [str(one.resolve()) for one in options.mapped]
    modes = ("--brief", "--modes", "graph", "sync_nonvtx", "--most", "6")
    named = [
        str(path)
        for one in folders
        for end in ("*.nsys-rep", "*.engine.json")
        for path in sorted(Path(one).glob(end))
    ]
    commands = {
        # the longest first
        **{
            one: ("real_engines.py", one, *modes, "--seconds", str(most * 0.9))
            for one in sorted(further, key=reports_in, reverse=True)
        },
        "mapping": ("real_engines.py", *folders, "--only", "graph"),
        "whatif": ("whatif.py", *folders, *held_out),
        "imitations": ("whatif.py", str(ROOT / "fixtures")),
        "findings": ("findings.py",),
        "names": ("names.py", *named),
    }
    with ThreadPoolExecutor(max_workers=max(options.jobs, 1)) as workers:
        running = {
            what: workers.submit(printed, most, f"benchmarks/{file}", *rest)
            for what, (file, *rest) in commands.items()
        }
        texts = {what: each.result() for what, each in running.items()}
    mapped = ""
    if further:
        mapped = MAPPED.format(models=len(models_in(further)), sets=len(further)) + "".join(
            SET.format(
                count=reports_in(one), models=", ".join(sorted(models_in([one]))), text=texts[one]
            )
            for one in further
        )
    own = {what: text for what, text in texts.items() if what not in further}
    sys.stdout.write(PAGE.format(models=len(models_in(folders)), mapped=mapped, **own))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
