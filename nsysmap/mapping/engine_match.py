"""Decides whether each engine file ran in the trace, with the evidence."""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.base.note import Note
from nsysmap.base.result_schema import ENGINE_FITS
from nsysmap.base.table import Table
from nsysmap.base.terminal import shortened
from nsysmap.engine.model import Engine
from nsysmap.mapping.by_order import EngineVerdict, Placed
from nsysmap.mapping.range_layers import EngineFit

RAN, DID_NOT_RUN, CANNOT_TELL = "ran", "did-not-run", "cannot-tell"
_SHOWN = 60  # characters of a layer's name in a sentence


def engine_fits(engines: Sequence[Engine], fits: Sequence[EngineFit], placed: Placed) -> Table:
    """schema.ENGINE_FITS, one row per engine file: judged by the layer ranges that ran kernels, else by the order of the kernels."""
    by_ranges = {fit.engine: fit for fit in fits if fit.ranges}
    used = {verdict.engine for verdict in placed.verdicts if verdict.chosen}
    rows = []
    for number, engine in enumerate(engines):
        mine = [verdict for verdict in placed.verdicts if verdict.engine == number]
        if number in by_ranges:
            row = _by_ranges(by_ranges[number])
        elif mine:
            row = _by_order(engine, mine, others_used=bool(used - {number}))
        elif any(verdict.chosen for verdict in placed.verdicts):
            how = "the kernels of no inference follow its layers; the inferences that were found belong to other given files"
            row = {"verdict": DID_NOT_RUN, "compared": len(engine.layers), "how": how}
        else:
            row = {"verdict": CANNOT_TELL, "how": "no inferences were found in the trace: nothing in it repeats"}
        rows.append({"engine": number, "source": engine.source, **row})
    return Table.of_rows(ENGINE_FITS, rows)


def fit_notes(fits: Table) -> tuple[Note, ...]:
    """An error for each engine file that did not run, a warning for one of which kernels leave it open."""
    notes = []
    for row in fits.records():
        if row["verdict"] == DID_NOT_RUN:
            both = ""
            if row["trace_layer"] is not None and row["engine_layer"] is not None:
                seen, own = (shortened(str(row[name]), _SHOWN) for name in ("trace_layer", "engine_layer"))
                both = f" (the trace names {seen}, the file {own})"
            told = f"{row['source']} is not the engine that ran: {row['how']}{both}; give the engine file of this run."
            notes.append(Note("error", told))
        elif row["verdict"] == CANNOT_TELL and row["compared"] is not None:
            notes.append(Note("warning", f"Whether {row['source']} ran here cannot be determined: {row['how']}."))
    return tuple(notes)


def _by_ranges(fit: EngineFit) -> dict[str, object]:
    row: dict[str, object] = {"compared": fit.ranges, "known": fit.known}
    how = f"it has {fit.known} of the {fit.ranges} layer names in the trace's ranges"
    if fit.accepted:
        return {**row, "verdict": RAN, "how": how}
    if fit.several:
        return {**row, "verdict": CANNOT_TELL, "how": f"{how}, and so has another given file; no kernel is known to belong to this engine"}
    how += "; the layers shown are those named in the trace"
    return {**row, "verdict": DID_NOT_RUN, "trace_layer": fit.trace_layer, "engine_layer": fit.engine_layer, "how": how}


def _by_order(engine: Engine, verdicts: Sequence[EngineVerdict], *, others_used: bool) -> dict[str, object]:
    chosen = [verdict for verdict in verdicts if verdict.chosen]
    best = max(
        (verdict.match for verdict in chosen or verdicts),
        key=lambda match: (match.accepted, match.undecided, match.share),
    )
    row: dict[str, object] = {"compared": len(engine.layers)}
    if best.accepted and chosen:
        return {**row, "verdict": RAN, "how": "the kernels of an inference follow its layers"}
    if any(verdict.several for verdict in verdicts):
        how = "it explains the kernels of an inference, and so does another given file; nothing shows which of them ran"
        return {**row, "verdict": CANNOT_TELL, "how": f"{how}, and no kernel is assigned a layer"}
    if best.accepted:
        how = "the kernels of an inference follow its layers, and also those of another given file, which explains them better"
        return {**row, "verdict": CANNOT_TELL, "how": f"{how}; no kernel is known to belong to this engine"}
    if best.undecided:
        given = "its layers are shown anyway" if chosen else "no kernel is assigned to its layers"
        return {**row, "verdict": CANNOT_TELL, "how": f"nothing in the trace proves or disproves it, {given}"}
    tactics = f", {best.tactics:.0%} of the tactics ran" if best.tactics is not None else ""
    beside = " beside the other engine files" if others_used else ""
    how = f"in one inference {best.placed:.0%} of the kernels find a layer and {best.used:.0%} of the layers a kernel{tactics}"
    return {**row, "verdict": DID_NOT_RUN, "how": f"{how}; no kernel is assigned to its layers{beside}"}
