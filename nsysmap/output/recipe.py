"""A recipe for `nsys recipe`, which loads it with the Python on PATH: times by layer of reports.

usage: NSYS_RECIPE_PATH=FOLDER nsys recipe nsysmap_layer_sum --input REPORTS --engine FILE
`nsysmap nsys-plugin install` puts it into FOLDER; nothing of nsysmap imports it.
"""

from __future__ import annotations

import io
import subprocess
from argparse import Namespace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from nsys_recipe.lib import recipe
from nsys_recipe.lib.args import ArgumentParser, Option
from nsys_recipe.lib.exceptions import NoDataError
from nsys_recipe.log import logger

COMMAND = ["nsysmap"]  # `nsysmap nsys-plugin install` writes what starts nsysmap here
_SELECT = """SELECT name AS "Name", title AS "Layer", kind AS "Kind", kernels AS "Kernels",
time_ns AS "Avg (ns)" FROM layers WHERE time_ns IS NOT NULL ORDER BY time_ns DESC"""


class NsysmapLayerSum(recipe.Recipe):  # type: ignore[misc]
    """Mean kernel time per inference of each TensorRT layer: in each report, and over all."""

    @classmethod
    def get_argument_parser(cls) -> ArgumentParser:
        """The options of the recipe."""
        parser = super().get_argument_parser()
        for option in (Option.INPUT, Option.OUTPUT, Option.FORCE_OVERWRITE, Option.CSV):
            parser.add_recipe_argument(option)
        parser.add_recipe_argument(
            "--engine",
            nargs="+",
            default=[],
            help="Engine layer files (trtexec --exportLayerInfo); else layers are NVTX ranges",
        )
        return parser

    def run(self, context: recipe.Context) -> None:
        """Ask nsysmap about each report, and write both tables into the output folder."""
        super().run(context)
        asked = context.map(_layers, self._parsed_args.input, options=self._parsed_args)
        found = [one for one in context.wait(asked) if one is not None]
        if not found:
            raise NoDataError
        by_report = pd.concat(found, ignore_index=True)
        self._write("layers_by_report", by_report)
        self._write("layers", _over_reports(by_report))
        self._analysis_dict.update(
            EndTime=str(datetime.now()),
            InputFiles=self._parsed_args.input,
            Outputs=self._output_files,
        )
        self.create_analysis_file()

    def _write(self, name: str, table: pd.DataFrame) -> None:
        table.to_parquet(self.add_output_file(f"{name}.parquet"))
        if self._parsed_args.csv:
            table.to_csv(self.add_output_file(f"{name}.csv"), index=False)


def _layers(report: str, options: Namespace) -> pd.DataFrame | None:
    """The layers of one report, the slowest first; None, with the reason logged, if nsysmap cannot
    determine them.
    """
    done = subprocess.run(
        [*COMMAND, "sql", report, *options.engine, _SELECT, "--csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        logger.error(f"{report}: {done.stderr.strip() or 'nsysmap failed'}")
        return None
    layers = pd.read_csv(io.StringIO(done.stdout))
    if layers.empty:
        logger.warning(f"{report}: nsysmap found no layers with a time")
        return None
    layers.insert(0, "File", Path(report).stem)
    return layers


def _over_reports(layers: pd.DataFrame) -> pd.DataFrame:
    """One row per layer, by its name in the engine: how many reports have it, and how its time
    differs between them.
    """
    grouped: Any = layers.groupby("Name", sort=False)
    times = grouped["Avg (ns)"]
    found = grouped[["Layer", "Kind"]].first()
    found["Reports"] = times.count()
    found["Avg (ns)"], found["Min (ns)"], found["Max (ns)"] = times.mean(), times.min(), times.max()
    found["Slowest in"] = layers.loc[times.idxmax(), "File"].to_numpy()
    ordered = found.reset_index().sort_values("Avg (ns)", ascending=False, ignore_index=True)
    return pd.DataFrame(ordered)
