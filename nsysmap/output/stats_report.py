"""A report script for `nsys stats`, which loads it with its own Python: time by layer.

usage: nsys stats --report-dir FOLDER -r nsysmap_layers:engine=FILE report.nsys-rep
`nsysmap nsys-plugin install` puts it into FOLDER; nothing of nsysmap imports it.
"""

from __future__ import annotations

import csv
import io
import subprocess

import nsysstats

COMMAND = ["nsysmap"]  # `nsysmap nsys-plugin install` writes what starts nsysmap here
_SELECT = """SELECT round(100 * share_of_all_kernel_time, 1) AS "Time (%)", time_ns AS "Avg (ns)",
median_ns AS "Med (ns)", kernels AS "Kernels", kind AS "Kind", title AS "Layer", name AS "Name"
FROM layers WHERE time_ns IS NOT NULL ORDER BY time_ns DESC"""


class NsysmapLayers(nsysstats.StatsReport):  # type: ignore[misc]
    """One row per TensorRT layer: mean kernel time per inference."""

    display_name = "TensorRT Layers (nsysmap)"
    usage = """{SCRIPT}[:engine=FILE] -- {DISPLAY_NAME}

    engine : file of trtexec --exportLayerInfo; without it layers are NVTX ranges
"""
    _arg_opts = ((("engine",), {"type": str, "help": "engine layer file"}),)

    def setup(self) -> str | None:
        """Ask nsysmap; the rows become the query.  Returns why there are none."""
        if missing := super().setup():
            return str(missing)
        engine = self.parsed_args.engine
        files = [self._dbfile, *([engine] if engine else [])]
        asked = subprocess.run(
            [*COMMAND, "sql", *files, _SELECT, "--csv"], capture_output=True, text=True, check=False
        )
        if asked.returncode:
            return _literal(asked.stderr.strip() or "nsysmap failed")
        head, *rows = csv.reader(io.StringIO(asked.stdout))
        if not rows:
            return "nsysmap found no layers in {DBFILE}"
        values = ",".join("(" + ",".join(map(_quoted, row)) + ")" for row in rows)
        names = ",".join('"' + name + '"' for name in head)
        self.query = f"WITH layers({names}) AS (VALUES {values}) SELECT * FROM layers"
        return None


def _literal(text: str) -> str:
    """The text for nsys, which puts values where braces are."""
    return text.replace("{", "{{").replace("}", "}}")


def _quoted(cell: str) -> str:
    try:
        return repr(float(cell)) if "." in cell else str(int(cell))
    except ValueError:
        return "'" + cell.replace("'", "''") + "'"


if __name__ == "__main__":
    NsysmapLayers.Main()
