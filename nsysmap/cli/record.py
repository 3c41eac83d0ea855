"""`nsysmap record`: captures a program with the right flags, and analyses the report."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from nsysmap.cli.analyze import analyze_command
from nsysmap.core.errors import NsysmapError
from nsysmap.text.terminal import escaped


@click.command(
    "record",
    short_help="Capture a program with nsys, then analyse it.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument(
    "program", metavar="-- PROGRAM [ARGUMENT]...", nargs=-1, required=True, type=click.UNPROCESSED
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="report.nsys-rep",
    show_default=True,
    help="The report that nsys writes.",
)
@click.option(
    "--engine",
    "engines",
    metavar="ENGINE",
    multiple=True,
    help="An engine file for the analysis. Repeatable.",
)
@click.option(
    "--gpu-metrics",
    metavar="[GPU]",
    is_flag=False,
    flag_value="0",
    help="Also sample the hardware counters of this GPU (by default 0).",
)
@click.option(
    "--kernels-of",
    metavar="REPORT",
    type=click.Path(exists=True, path_type=Path),
    help=(
        "Sample counters as often as the kernels of this earlier report of the program need; 50 kHz"
        " without it."
    ),
)
@click.option(
    "--print", "only_print", is_flag=True, help="Print the nsys command without running it."
)
@click.option("--force", is_flag=True, help="Overwrite an existing report.")
@click.pass_context
def record_command(  # one parameter an option
    context: click.Context,
    *,
    program: tuple[str, ...],
    output: str,
    engines: tuple[str, ...],
    gpu_metrics: str | None,
    kernels_of: Path | None,
    only_print: bool,
    force: bool,
) -> int:
    """Capture a program with nsys, using the flags that a complete analysis needs, and analyse the
    report.

    The flags depend on the nsys version: CUDA, NVTX and operating system calls, every node of CUDA
    graphs, and from nsys 2026.4 on the ranges of graphs that were built before.  A layer file that
    trtexec writes (--exportLayerInfo=FILE) is used as the engine.  The exit status is the
    program's.

    \b
    Examples:
      nsysmap record -- trtexec --loadEngine=model.plan --exportLayerInfo=engine.json \
--profilingVerbosity=detailed
      nsysmap record --engine engine.json -o run.nsys-rep -- python infer.py
      nsysmap record --print -- ./program
      nsysmap record --gpu-metrics -- ./program
      nsysmap record --gpu-metrics --kernels-of earlier.nsys-rep -- ./program
    """
    from nsysmap.core.output_file import check_output
    from nsysmap.inputs.nsys.program import find_nsys
    from nsysmap.inputs.nsys.record import (
        METRICS_HZ,
        Sampling,
        capture_command,
        check_gpu_metrics,
        layer_files,
        record,
    )

    report = Path(output) if Path(output).suffix else Path(f"{output}.nsys-rep")  # as nsys does
    check_output(report, (".nsys-rep",), [Path(engine) for engine in engines])
    nsys = find_nsys()
    if kernels_of is not None and gpu_metrics is None:
        raise NsysmapError(
            "--kernels-of", "says how often counters are sampled, and none are", "add --gpu-metrics"
        )
    sampling = (
        None
        if gpu_metrics is None
        else Sampling(
            gpu_metrics, METRICS_HZ if kernels_of is None else _frequency(kernels_of, gpu_metrics)
        )
    )
    command = capture_command(nsys, program, report, gpu_metrics=sampling, force=force)
    if only_print:
        click.echo(shlex.join(["nsys", *command[1:]]))
        return 0
    if report.exists() and not force:
        raise NsysmapError(
            str(report), "exists already", "give another -o FILE, or --force to overwrite it"
        )
    if gpu_metrics is not None:
        check_gpu_metrics(nsys)
    click.echo(f"nsysmap: nsys {nsys.version}: {escaped(shlex.join(command[1:]))}", err=True)
    recorded = record(command, report)
    if recorded.status:
        click.echo(f"nsysmap: the program ended with status {recorded.status}", err=True)
    given = (
        *engines,
        *(file for file in layer_files(program) if file not in engines and Path(file).is_file()),
    )
    context.invoke(analyze_command, files=(str(report), *given))
    return recorded.status


def _frequency(report: Path, gpu: str) -> int:
    """How often counters are to be sampled for the kernels of that report."""
    from nsysmap.counters.sampled_work import repeated_work
    from nsysmap.counters.well_known import frequency_for
    from nsysmap.mapping.mapped_trace import map_report

    mapped = map_report(report, [])
    device = int(gpu) if gpu.isdecimal() else 0
    found = repeated_work(
        mapped.trace, mapped.kernels, mapped.inferences, mapped.found.of_call, device
    )
    if not found.inferences:
        raise NsysmapError(
            str(report),
            f"shows no repeated inferences on GPU {device}",
            "give a report of the same program, or leave --kernels-of out",
        )
    return frequency_for(found.work)
