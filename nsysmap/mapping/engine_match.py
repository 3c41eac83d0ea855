"""Decides which engine each inference is of, and whether each engine file ran in the trace, with
the evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_, or_

import numpy as np

from nsysmap.core.groups import numbered
from nsysmap.core.memory import in_pieces
from nsysmap.core.note import Note
from nsysmap.core.records import dataclass
from nsysmap.core.result_schema import ENGINE_FITS
from nsysmap.core.table import MISSING, BoolArray, IntArray, Table, Text
from nsysmap.inputs.engine.model import Engine, first_layers
from nsysmap.mapping.order.by_order import EngineVerdict, Placed
from nsysmap.mapping.order.twins import Ran, tokens_in_file, tokens_of
from nsysmap.mapping.ranges.range_layers import ACCEPTED, EngineFit
from nsysmap.names.decode import decode, matches_tactic
from nsysmap.network.loops import has_open_loops
from nsysmap.text.terminal import shortened
from nsysmap.text.units import counted
from nsysmap.trace.inferences.find import Inferences

RAN, DID_NOT_RUN, CANNOT_TELL = "ran", "did-not-run", "cannot-tell"
_SHOWN = 60  # characters of a layer's name in a sentence

# least probability of an engine that is said to have run: 4 to 1 against another of the same
# structure
_PROVED = 0.8
_MOST = 64  # kinds of inferences of an engine that are compared, the most frequent first
_RECURS = 2  # inferences; what ran once may lack kernels
_ALIKE = 0.5
"""Two inferences are alike if at least this share of their kernels have the same names, although
some kernels are missing: a majority.
"""

_TOKENS = {"one": "one token of each sequence", "many": "many tokens of each sequence"}
_COMPILED = (
    "Myelin compiled other kernels than in other inferences with the same layers: another"
    " optimization profile, or another engine"
)


_NO_TENSORRT = "no TensorRT is in this trace, neither its ranges nor a kernel that only it has"

OTHER_KERNELS = (
    "of another input shape or optimization profile, or of another engine with the same layers"
)
"""How inferences may be explained that run other kernels in an engine's layers."""


@dataclass(frozen=True)
class Kind:
    """Inferences that launch the same kernels and are mapped to one engine."""

    inferences: int
    ran: tuple[Ran, ...]  # the kernels in the engine's layers, in launch order
    complete: bool
    others: int = 0  # its other kernels
    strange: int = 0  # of them: in ranges of layers that no given file has
    by_range: bool = False  # ranges name the layers of all its kernels


@dataclass(frozen=True)
class Judged:
    """What was found out about one kind of inference."""

    refused: bool = False  # its inferences are not this engine's
    doubt: str | None = None  # why they are not, or may not be
    # its layers run other kernels than those of the inferences that the file describes, or of most
    other_kernels: bool = False


@dataclass(frozen=True)
class Explained:
    """How much of a trace one engine file explains."""

    inferences: int
    in_doubt: int  # of them: may be another engine's
    # of them: run other kernels than those that the file describes, or than the others
    other_kernels: int
    refused: int  # inferences with the names of its layers that are not its
    kernels: int
    # layers with a tactic that ran a kernel in their range which can be compared with it, but for
    # those inferences
    tactics: int
    tactics_ran: int  # of them: the kernel is the one that the tactic names
    others_tactics: int  # the same of the inferences that run other kernels
    others_tactics_ran: int
    # where ranges name layers: those that must run kernels, and neither ran one in these inferences
    # nor are named
    lacking: int
    against: tuple[str, ...]  # why inferences are not its, or may not be


@dataclass(frozen=True)
class Whose:
    """The engine of each inference, and how much of the trace each file explains."""

    engine: IntArray  # per inference; MISSING if no engine file fits
    doubt: Text  # per inference: why it is not, or may not be, of the engine whose layers it has
    refused: BoolArray  # per kernel: its inference is not of the engine that it was mapped to
    explained: tuple[Explained, ...]


def whose_inferences(
    names: Text,
    found: Inferences,
    engines: Sequence[Engine],
    layer: IntArray,
    by_range: BoolArray,
    fits: Sequence[EngineFit],
) -> Whose:
    """Finds the engine of each inference. The arguments have one entry per kernel: its name, its
    layer over all engines, and whether a range names that layer.

    An inference is of the engine that most of its kernels are mapped to, unless the comparison with
    the other inferences of that engine (see judge) says otherwise.
    """
    named = {fit.engine: fit.named for fit in fits}
    offsets = np.array(first_layers(engines))
    # the last one of kernels without a layer
    of_layer = np.append(np.repeat(np.arange(len(engines)), np.diff(offsets)), len(engines))
    number = found.membership.held_ints("inference")
    engine = _of_most_kernels(in_pieces(number, layer), of_layer, len(found.table), len(engines))
    doubt, texts = np.full(len(engine), -1, np.int32), dict[str, int]()
    not_its = np.full(len(engine), MISSING, np.int64)  # the engine that it was mapped to
    explained = []
    for at, one in enumerate(engines):
        members, kinds = _kinds(
            names,
            found,
            np.flatnonzero(engine == at),
            layer,
            range(*offsets[at : at + 2].tolist()),
            by_range,
        )
        judged = list(zip(members, kinds, judge(kinds, one), strict=True))
        for numbers, _, verdict in judged:
            if verdict.doubt is not None:
                doubt[numbers] = texts.setdefault(verdict.doubt, len(texts))
            if verdict.refused:
                engine[numbers], not_its[numbers] = MISSING, at
        of_file = [
            found
            for found in judged
            if not found[2].refused and found[2] != Judged(other_kernels=True)
        ]
        tactics, others = (
            _tactics_of([ran for _, kind, _ in some if kind.by_range for ran in kind.ran], one)
            for some in (of_file, [found for found in judged if found[2].other_kernels])
        )
        whole = [kind for _, kind, verdict in judged if kind.complete and not verdict.refused]
        did, must_run = _must_run(whole, one, named[at]) if whole and named.get(at) else (0, 0)
        explained.append(
            Explained(
                inferences=int(np.count_nonzero(engine == at)),
                in_doubt=sum(
                    len(its)
                    for its, _, verdict in judged
                    if verdict.doubt is not None and not verdict.refused
                ),
                other_kernels=sum(len(its) for its, _, verdict in judged if verdict.other_kernels),
                refused=int(np.count_nonzero(not_its == at)),
                kernels=0,
                tactics=len(tactics),
                tactics_ran=sum(tactics.values()),
                others_tactics=len(others),
                others_tactics_ran=sum(others.values()),
                lacking=must_run - did,
                against=tuple(
                    dict.fromkeys(
                        verdict.doubt for *_, verdict in judged if verdict.doubt is not None
                    )
                ),
            )
        )
    refused = np.zeros(len(layer), np.bool_)
    kept = np.zeros(len(engines) + 1, np.int64)
    for rows, its, local in in_pieces(number, layer):
        own = of_layer[np.maximum(local, -1)]
        refused[rows] = (
            (its >= 0) & (not_its.take(its, mode="clip") == own) if len(engine) else False
        )
        kept += np.bincount(own[~refused[rows]], minlength=len(kept))
    return Whose(
        engine,
        Text(doubt, tuple(texts)),
        refused,
        tuple(replace(one, kernels=int(kept[at])) for at, one in enumerate(explained)),
    )


def judge(kinds: Sequence[Kind], engine: Engine) -> list[Judged]:
    """Decides whether inferences of these kinds, all mapped to the layers of one engine file,
    belong to that engine. The most frequent kind comes first.

    An engine runs the same layers each time.  With another input shape or optimization profile it
    may run other kernels in them, so that alone does not make another engine of it: the file's
    tactics say which kernels it describes.  But what is compiled into a region (the operations of
    Myelin's kernels) is the same for all inferences of an engine, or at least of an optimization
    profile.  Where it differs, those inferences are the engine's whose kernels the file's tactics
    name, or whose attention kernels work on as many tokens of a sequence as the file's layers do;
    that the others are is in doubt, or refuted by the number of tokens.  Where nothing tells, all
    are in doubt.  Inferences in whose ranges only some of the file's layers ran are another
    engine's, if others ran them all.
    """
    groups = _groups(kinds, engine)
    wanted = tokens_in_file(engine)
    base = max(
        (group for group in groups if group.tokens in (None, wanted)),
        key=lambda group: group.tactics,
        default=None,
    )
    result = [Judged()] * len(kinds)
    for group in groups:
        apart = [
            other for other in groups if group.recurs and other.recurs and _differ(group, other)
        ]
        if group.tokens not in (None, wanted):
            doubt = (
                f"attention kernels work on {_TOKENS[group.tokens]}, the file's layers on {wanted}"
            )
            verdict = Judged(refused=any(other.fits for other in apart), doubt=doubt)
        elif apart and not group.fits:
            verdict = Judged(doubt=_COMPILED)
        elif (
            group.strange
            and not group.fits
            and any(other.recurs and not other.strange for other in groups)
        ):
            verdict = Judged(
                doubt=(
                    f"{counted(group.strange, 'kernel')} ran in layers that the file does not have,"
                    " as in other inferences none did"
                )
            )
        else:
            verdict = Judged(other_kernels=group is not base and group.tactics <= 0)
        if verdict.doubt is None and group.recurs:
            verdict = replace(
                verdict,
                doubt=_lacks([kinds[at] for at in group.kinds if kinds[at].complete], engine),
            )
        for at in group.kinds:
            result[at] = verdict
    whole = [kind.inferences >= _RECURS and kind.complete for kind in kinds]
    lacks = [
        _lacks([kind], engine) if told else None for kind, told in zip(kinds, whole, strict=True)
    ]
    every = any(told and found is None for told, found in zip(whole, lacks, strict=True))
    for at, found in enumerate(lacks):
        if found is not None and kinds[at].by_range and not result[at].refused:
            result[at] = Judged(refused=every, doubt=found)
    return result


@dataclass(frozen=True)
class _AlikeKinds:
    """Groups of kinds that launch mostly the same kernels."""

    kinds: tuple[int, ...]
    recurs: bool
    # the operations of Myelin's kernels, how often each inference has them at least …
    least: Counter[tuple[str, ...]]
    most: Counter[tuple[str, ...]]  # … and at most
    tactics: int  # layers whose tactic names their kernel, less those whose tactic names another
    # that its attention kernels work on, if the file tells how many its layers work on
    tokens: str | None
    fits: bool  # tactics or tokens show that the engine ran them
    strange: int  # kernels in layers that no given file has


def _groups(kinds: Sequence[Kind], engine: Engine) -> list[_AlikeKinds]:
    names = [Counter(ran.kernel for ran in kind.ran) for kind in kinds]
    members: list[list[int]] = []
    for at, mine in enumerate(names):
        for group in members:
            most = names[group[0]]
            if (mine & most).total() >= _ALIKE * min(mine.total(), most.total()):
                group.append(at)
                break
        else:
            members.append([at])
    wanted = tokens_in_file(engine)
    found = []
    for group in members:
        whole = [_compiled(kinds[at].ran) for at in group if kinds[at].complete]
        first = kinds[group[0]].ran
        tokens = tokens_of(first, engine) if wanted is not None else None
        tactics = _tactics_of(first, engine)
        ahead = sum(tactics.values()) - sum(not same for same in tactics.values())
        recurs = sum(kinds[at].inferences for at in group) >= _RECURS and bool(whole)
        never: Counter[tuple[str, ...]] = Counter()
        compiled = reduce(and_, whole, whole[0] if whole else never), reduce(or_, whole, never)
        strange = kinds[group[0]].strange
        found.append(
            _AlikeKinds(
                tuple(group),
                recurs,
                *compiled,
                ahead,
                tokens,
                ahead > 0 or (tokens is not None and tokens == wanted),
                strange,
            )
        )
    return found


def _compiled(sequence: Sequence[Ran]) -> Counter[tuple[str, ...]]:
    """Counts, for each operation, the Myelin-compiled kernels that perform it."""
    decoded = [decode(ran.kernel) for ran in sequence]
    return Counter(
        tuple(op.code for op in kernel.ops) for kernel in decoded if kernel.family == "myelin"
    )


def _differ(one: _AlikeKinds, other: _AlikeKinds) -> bool:
    """Whether one of two kinds launches more of some compiled kernel in each of its inferences than
    the other does in any.
    """
    return bool((one.least - other.most) or (other.least - one.most))


def _tactics_of(sequence: Sequence[Ran], engine: Engine) -> dict[int, bool]:
    """For each layer with a tactic that ran a kernel of that sort: whether that kernel is the one
    the tactic names.
    """
    found: dict[int, bool] = {}
    for ran in sequence:
        tactic = engine.layers[ran.layer].tactic
        if tactic and (
            matches_tactic(ran.kernel, tactic)
            or decode(ran.kernel).family == decode(tactic).family != "unknown"
        ):
            found[ran.layer] = found.get(ran.layer, False) or matches_tactic(ran.kernel, tactic)
    return found


def _lacks(kinds: Sequence[Kind], engine: Engine) -> str | None:
    """Whether too many of the layers that must run kernels ran none in any of these inferences,
    even if all their other kernels match the engine.

    None of an engine with loops or conditionals: it runs one branch of each.
    """
    did, must_run = _must_run(kinds, engine)
    if any(layer.kind == "loop" for layer in engine.layers):
        return None
    if did + max(kind.others for kind in kinds) >= ACCEPTED * must_run:
        return None
    return f"only {did} of the {must_run} layers of the file that must run kernels ever did"


def _must_run(
    kinds: Sequence[Kind], engine: Engine, named: frozenset[int] = frozenset()
) -> tuple[int, int]:
    """How many of the layers that must run kernels did so or are ``named``, and how many such
    layers there are, in the likeliest optimization profile.
    """
    from nsysmap.mapping.order.kernel_alignment import optimization_profiles
    from nsysmap.mapping.order.scores import surely_run

    ran = named.union(one.layer for kind in kinds for one in kind.ran)
    profiles = []
    for layers in optimization_profiles(engine):
        must = [
            layer.index
            for layer, runs in zip(layers, surely_run(engine, layers).tolist(), strict=True)
            if runs
        ]
        profiles.append((sum(index in ran for index in must), len(must)))
    return max(profiles, key=lambda counts: counts[0] - counts[1])


def _kinds(
    names: Text,
    found: Inferences,
    mine: IntArray,
    layer: IntArray,
    layers: range,
    by_range: BoolArray,
) -> tuple[list[IntArray], list[Kind]]:
    """The kinds of these inferences, the most frequent first, and the kind of each inference.

    ``layer`` is that of each kernel over all engines, ``layers`` are those of their engine, and
    ``by_range`` says whether ranges name a kernel's.
    """
    table, begin, end = found.table, layers.start, layers.stop
    (sequence, _), which = numbered(
        table.ints("kernel_sequence")[mine], table.bools("complete")[mine].astype(np.int64)
    )
    first = (
        np.argsort(-np.bincount(which, minlength=len(sequence)), kind="stable")[:_MOST]
        if len(mine)
        else mine
    )
    members = [mine[which == at] for at in first.tolist()]
    shown = np.zeros(len(table), np.bool_)
    shown[[numbers[0] for numbers in members]] = True
    pieces = (
        [
            rows[(of >= 0) & shown.take(of, mode="clip")]
            for rows, of in in_pieces(found.membership.held_ints("inference"))
        ]
        if members
        else []
    )
    rows = np.concatenate([mine[:0], *pieces])
    of, position = (
        found.membership.held_ints(name).take(rows) for name in ("inference", "position")
    )
    rows = rows[np.lexsort((position, of))]
    of = np.sort(of)
    kinds = []
    for numbers in members:
        its = rows[np.searchsorted(of, numbers[0]) : np.searchsorted(of, numbers[0], side="right")]
        own = its[(layer[its] >= begin) & (layer[its] < end)]
        ran = tuple(Ran(int(layer[row]) - begin, names[row] or "", 0.0) for row in own.tolist())
        strange = int(np.count_nonzero(by_range[its] & (layer[its] == MISSING)))
        kinds.append(
            Kind(
                len(numbers),
                ran,
                bool(table.bools("complete")[numbers[0]]),
                len(its) - len(own),
                strange,
                bool(by_range[own].all()),
            )
        )
    return members, kinds


def _of_most_kernels(
    kernels: Iterable[tuple[IntArray, ...]], of_layer: IntArray, inferences: int, engines: int
) -> IntArray:
    """The engine that most kernels of each inference belong to. ``kernels`` yields their rows,
    inferences and layers in pieces.
    """
    votes = np.zeros(inferences * (engines + 1), np.int64)
    for _, number, layer in kernels:
        inside = number >= 0
        votes += np.bincount(
            number[inside] * (engines + 1) + of_layer[np.maximum(layer[inside], -1)],
            minlength=len(votes),
        )
    of_engine = votes.reshape(inferences, engines + 1)[:, :engines]
    best = of_engine.argmax(axis=1) if engines else np.zeros(inferences, np.int64)
    return np.where(of_engine.any(axis=1), best, np.int64(MISSING))


def engine_fits(
    engines: Sequence[Engine],
    fits: Sequence[EngineFit],
    placed: Placed,
    whose: Whose,
    *,
    tensorrt: bool,
) -> Table:
    """schema.ENGINE_FITS, one row per engine file: judged by the layer ranges that ran kernels,
    otherwise by the order of the kernels.

    ``tensorrt``: something in the trace shows TensorRT, its ranges or kernels that only it has.
    Beside the verdict stands what of the trace the file explains, and what speaks against it.
    """
    by_ranges = {fit.engine: fit for fit in fits if fit.ranges}
    used = {verdict.engine for verdict in placed.verdicts if verdict.chosen}
    rows = []
    for number, engine in enumerate(engines):
        mine = [verdict for verdict in placed.verdicts if verdict.engine == number]
        if number in by_ranges:
            row = _by_ranges(by_ranges[number], engines)
        elif mine:
            row = _by_order(engines, mine, others_used=bool(used - {number}))
        elif any(verdict.chosen for verdict in placed.verdicts):
            how = (
                "the kernels of no inference follow its layers; the inferences that were found"
                " belong to other given files"
            )
            row = {"verdict": DID_NOT_RUN, "compared": len(engine.layers), "how": how}
        else:
            row = {
                "verdict": CANNOT_TELL,
                "how": "no inferences were found in the trace: nothing in it repeats",
            }
        if row["verdict"] == DID_NOT_RUN and not tensorrt:
            row["how"] = _NO_TENSORRT
        tactics = any(layer.tactic for layer in engine.layers)
        rows.append(
            {
                "engine": number,
                "source": engine.source,
                **row,
                **_explained(row, number, whose, has_tactics=tactics),
            }
        )
    return Table.of_rows(ENGINE_FITS, rows)


def _explained(
    row: Mapping[str, object], engine: int, whose: Whose, *, has_tactics: bool
) -> dict[str, object]:
    """How much the file explains, as table columns and in words. If as much contradicts the file as
    confirms it, it cannot be said to have run.
    """
    explained = whose.explained[engine]
    against = "; ".join(explained.against)
    values: dict[str, object] = {**vars(explained), "against": against or None}
    others = tuple(int(str(values.pop(name))) for name in ("others_tactics_ran", "others_tactics"))
    if row["verdict"] != RAN or not (explained.kernels or explained.refused):
        return values
    shares = (
        (explained.inferences, len(whose.engine), "inference"),
        (explained.kernels, len(whose.refused), "kernel"),
    )
    how = [f"{row['how']} and explains {' and '.join(_share(*share) for share in shares)}"]
    if explained.tactics:
        how.append(
            f"{explained.tactics_ran} of {counted(explained.tactics, 'layer')} with a tactic ran"
            " the kernel that it names"
        )
        if explained.other_kernels:
            did = f"{others[0]} of {others[1]} did" if others[1] else "none can be compared"
            how[-1] += (
                f" in {explained.inferences - explained.other_kernels:,} of them, in the other"
                f" {explained.other_kernels:,} {did}"
            )
    elif not has_tactics:
        how.append("it has no tactics to compare with the kernels")
    if explained.lacking:
        how.append(f"{counted(explained.lacking, 'layer')} that must run kernels ran none")
    if explained.refused:
        how.append(
            f"{counted(explained.refused, 'inference')} with these names are of another engine"
        )
    unnamed = (
        int(str(row["compared"])) - int(str(row["known"])) if row.get("known") is not None else 0
    )
    if (
        unnamed and explained.lacking and not (explained.in_doubt or explained.other_kernels)
    ):  # of which there are notes already
        values["verdict"] = CANNOT_TELL
        how.append(
            f"{counted(unnamed, 'layer')} that the trace names are not in it: it may be of another"
            " build or export of the network"
        )
    if 2 * explained.tactics_ran < explained.tactics:
        values["verdict"] = CANNOT_TELL
        how.append(
            "it may be another build of the same network, or describe another optimization profile"
            " than the one that ran"
        )
    if explained.in_doubt and explained.in_doubt == explained.inferences:
        values["verdict"] = CANNOT_TELL
        how.append(f"these inferences may all be another engine's: {against}")
    return {**values, "how": "; ".join(how)}


def _share(some: int, every: int, of: str) -> str:
    return (
        f"{'all' if every > 1 else 'the'} {counted(every, of)}"
        if some == every
        else f"{some:,} of {counted(every, of)}"
    )


def fit_notes(fits: Table, whose: Whose, shown: BoolArray) -> tuple[Note, ...]:
    """An error for each engine file that did not run, a warning where that is undecided or where
    the engine of some inferences is undecided, and the number of inferences without an engine.

    ``shown``: the inferences of which the trace shows kernels.
    """
    notes = []
    inferences = len(whose.engine)
    without = int(np.count_nonzero(shown & (whose.engine == MISSING))) - sum(
        one.refused for one in whose.explained
    )
    if without > 0 and (whose.engine != MISSING).any():
        told = (
            f"{without:,} of {counted(inferences, 'inference')} run no layer of a given engine"
            " file: give the file of their engine too."
        )
        notes.append(Note("info", told))
    for row in fits.records():
        source, own, of_all = row["source"], row["inferences"], counted(inferences, "inference")
        if row["verdict"] == DID_NOT_RUN:
            both = ""
            if row["trace_layer"] is not None and row["engine_layer"] is not None:
                seen, its = (
                    shortened(str(row[name]), _SHOWN) for name in ("trace_layer", "engine_layer")
                )
                both = f" (the trace names {seen}, the file {its})"
            if row["how"] == _NO_TENSORRT:
                brief = f"{source} did not run"
                notes.append(Note("error", f"{brief}: {row['how']}; leave it out.", brief=brief))
            else:
                brief = f"{source} is not the engine that ran"
                told = f"{brief}: {row['how']}{both}; give the engine file of this run."
                notes.append(Note("error", told, brief=brief))
        elif row["verdict"] == CANNOT_TELL and row["compared"] is not None:
            told = f"Whether {source} ran here cannot be determined: {row['how']}."
            notes.append(Note("warning", told, brief=f"whether {source} ran cannot be told"))
        elif row["in_doubt"]:
            told = (
                f"{row['in_doubt']:,} of the {own:,} inferences counted as {source}'s may be"
                f" another engine's: {row['against']}."
            )
            brief = f"{row['in_doubt']:,} of {source}'s inferences may be another engine's"
            notes.append(Note("warning", told, brief=brief))
        if row["verdict"] == RAN and (other := _differences(row)):
            told = (
                f"{source} may be another build of the engine that ran, though most of it fits:"
                f" {' and '.join(other)}."
            )
            brief = f"{source} may be another build"
            notes.append(Note("warning", told, brief=brief, about="another-build"))
        if row["refused"]:
            told = (
                f"{row['refused']:,} of {of_all} have layers of the names in {source} and are of"
                f" another engine: {row['against']}."
            )
            brief = f"{row['refused']:,} of {of_all} are of an engine that is not given"
            told += " Give the file of that engine too."
            notes.append(Note("warning", told, brief=brief))
        if row["other_kernels"]:
            told = (
                f"{row['other_kernels']:,} of the {own:,} inferences of {source} run other kernels"
                " in the same layers"
            )
            notes.append(Note("info", f"{told}: {OTHER_KERNELS}."))
    return tuple(notes)


def _differences(row: Mapping[str, object]) -> list[str]:
    """How a file that mostly fits the trace differs from it."""
    found = []
    unknown, mismatched = (
        0 if row[every] is None or row[some] is None else int(str(row[every])) - int(str(row[some]))
        for some, every in (("known", "compared"), ("tactics_ran", "tactics"))
    )
    if unknown:
        found.append(
            f"{unknown} of the {row['compared']} layers that the trace's ranges name are not in it"
        )
    if row["lacking"]:
        found.append(f"{counted(int(str(row['lacking'])), 'layer')} that must run kernels ran none")
    if mismatched:
        found.append(f"{mismatched} of {row['tactics']} layers with a tactic ran another kernel")
    return found


def _shown(several: Sequence[int], engines: Sequence[Engine]) -> str:
    """The note shown when engines that do the same work cannot be told apart."""
    both = len(several) == 2
    first = engines[several[0]].source
    return (
        f"one of {'both' if both else f'these {len(several)}'} ran, and nothing tells them apart:"
        f" the layers of {first} are shown, and each has the same index in"
        f" {'both' if both else 'all'}"
    )


def _not_shown(several: Sequence[int]) -> str:
    """The note shown when engines that do different work cannot be told apart."""
    them = "both" if len(several) == 2 else f"these {len(several)}"
    return f"one of {them} ran, and nothing tells which: their layers work on other sizes"


def _by_ranges(fit: EngineFit, engines: Sequence[Engine]) -> dict[str, object]:
    row: dict[str, object] = {"compared": fit.ranges, "known": fit.known}
    how = f"it has {fit.known} of the {fit.ranges} names in the trace's layer ranges"
    how += f" ({fit.parts} of them inside its regions)" if fit.parts else ""
    if fit.accepted:
        return {**row, "verdict": RAN, "how": how}
    if fit.several:
        return {
            **row,
            "verdict": CANNOT_TELL,
            "how": f"{how}, and so has another given file; {_shown(fit.several, engines)}"
            if fit.shown
            else (
                f"{how}, and so has another given file; {_not_shown(fit.several)}, and no kernel is"
                " known to belong to this engine"
            ),
            "one_of": len(fit.several),
        }
    how += "; the layers shown are those named in the trace"
    return {
        **row,
        "verdict": DID_NOT_RUN,
        "trace_layer": fit.trace_layer,
        "engine_layer": fit.engine_layer,
        "how": how,
    }


def _by_order(
    engines: Sequence[Engine], verdicts: Sequence[EngineVerdict], *, others_used: bool
) -> dict[str, object]:
    engine = engines[verdicts[0].engine]
    chosen = [verdict for verdict in verdicts if verdict.chosen]
    best = max(
        (verdict.match for verdict in chosen or verdicts),
        key=lambda match: (match.accepted, match.undecided, match.share),
    )
    row: dict[str, object] = {"compared": len(engine.layers)}
    if best.accepted and chosen:
        how = "it has layers in the order of the kernels"
        if best.probability >= _PROVED:
            return {**row, "verdict": RAN, "how": how}
        how += (
            ", but other kernels, launches or streams than it tells: it may be of another build or"
            " export of the network"
        )
        return {
            **row,
            "verdict": CANNOT_TELL,
            "how": f"{how} (that it ran itself is {best.probability:.0%} probable)",
        }
    several = max(verdicts, key=lambda verdict: (verdict.shown, len(verdict.several)))
    if several.several:
        how = "it explains the kernels of an inference, and so does another given file;"
        if several.shown:
            return {
                **row,
                "verdict": CANNOT_TELL,
                "how": f"{how} {_shown(several.several, engines)}",
                "one_of": len(several.several),
            }
        return {
            **row,
            "verdict": CANNOT_TELL,
            "how": f"{how} {_not_shown(several.several)}, and no kernel is assigned a layer",
            "one_of": len(several.several),
        }
    if best.accepted:
        how = (
            "the kernels of an inference follow its layers, and also those of another given file,"
            " which explains them better"
        )
        return {
            **row,
            "verdict": CANNOT_TELL,
            "how": f"{how}; no kernel is known to belong to this engine",
        }
    if best.undecided:
        given = "its layers are shown anyway" if chosen else "no kernel is assigned to its layers"
        return {
            **row,
            "verdict": CANNOT_TELL,
            "how": f"nothing in the trace proves or disproves it, {given}",
        }
    if has_open_loops(engine.layers):
        how = "the file does not tell how often its loops run, and no whole inference follows them"
        return {**row, "verdict": CANNOT_TELL, "how": how}
    tactics = f", {best.tactics:.0%} of the tactics ran" if best.tactics is not None else ""
    beside = " beside the other engine files" if others_used else ""
    how = (
        f"in one inference {best.placed:.0%} of the kernels find a layer and {best.used:.0%} of the"
        f" layers a kernel{tactics}"
    )
    return {
        **row,
        "verdict": DID_NOT_RUN,
        "how": f"{how}; no kernel is assigned to its layers{beside}",
    }
