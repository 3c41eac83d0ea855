"""Lays out the output of `nsysmap map --explain`: one kernel, and all the evidence for
its layer.
"""

from __future__ import annotations

from nsysmap.core.json_record import Declared, keys, record
from nsysmap.mapping.explain import (
    ByOrder,
    Candidate,
    EngineEvidence,
    Explanation,
    GraphNode,
    InInference,
    Launch,
    MappedTo,
    NodeCreation,
    RangeAround,
)
from nsysmap.text.lines import folded
from nsysmap.text.terminal import escaped, shortened
from nsysmap.text.units import counted, duration, percent

WIDTH = 80  # columns
_LABEL = 12  # columns of the words on the left
_MOST = 8  # candidates, ranges, clones
_FOUND_BY = {
    "range": "the ExecutionContext:: range around the launch",
    "graph-launch": "the launch of a CUDA graph",
    "period": "the period with which kernels repeat",
}
_METHODS = {
    "nvtx": "the NVTX range around the launch call",
    "graph-node": "the NVTX range around the creation of the graph node that was replayed",
    "tactic": "the name is the tactic of only one layer",
    "order": "the order of the kernels within the inference",
    "region": "the layer is an opaque region, known by a range or by the order",
    "none": "no layer is known",
}
PART_BY = {
    "tag": "a tag of the trace",
    "payload": "the ONNX layers in the JSON payload of the range",
    "node": "the text of the range",
    "pattern": "the kernel's name, numbered in launch order",
    "onnx": "the ONNX model, by order",
}
"""The evidence for a kernel's part, by `part_by`."""


_KEYS: Declared = {
    Launch: keys("api start_ns end_ns thread correlation"),
    NodeCreation: keys("graph_node start_ns thread"),
    GraphNode: keys("graph graph_node created complete"),
    RangeAround: keys("domain name start_ns end_ns names decides"),
    InInference: keys(
        "inference position kernels found_by launch_api complete same same_name engine_doubt"
    ),
    EngineEvidence: keys("engine source verdict how ran_this placed used tactics margin"),
    Candidate: keys("engine layer_index layer match chance"),
    ByOrder: keys(
        "chosen chance rival rival_chance by_tactic explained before after inferences kernels "
        "layers"
    ),
    MappedTo: keys("layer layer_title layer_index engine part part_by method confidence reason"),
    Explanation: keys(
        "source kernel_id name says start_ns end_ns device context stream pid grid block "
        "launch graph ranges inference engines tactics order answer"
    ),
}
"""The objects in the JSON."""


def explain_text(held: Explanation) -> str:
    """The explanation for people, at most 80 columns wide."""
    took = duration(held.end_ns - held.start_ns)
    where = (
        f"device {held.device}, context {'–' if held.context is None else held.context}, stream"
        f" {held.stream}, pid {held.pid}"
    )
    sizes = f"grid {_by(held.grid)}, block {_by(held.block)}"
    lines = [f"{escaped(held.source)}: kernel {held.kernel_id}"]
    lines += _said("name", held.name, whole=True) + _said("says", held.says)
    lines += _said("ran", f"{took} from {_at(held.start_ns)}; {where}; {sizes}")
    lines += ["", *_launch_lines(held)]
    lines += ["", *_range_lines(held)]
    lines += ["", *_said("inference", _inference_words(held.inference))]
    lines += ["", *_engine_lines(held)]
    lines += _tactic_lines(held)
    lines += ["", *_order_lines(held)]
    lines += ["", *_answer_lines(held)]
    return "\n".join(lines)


def explain_json(held: Explanation) -> dict[str, object]:
    """The same as one JSON object; times in nanoseconds."""
    values: dict[str, object] = record(held, _KEYS)
    return values


def _said(label: str, text: str, *, indent: int = 0, whole: bool = False) -> list[str]:
    """A label and a text, wrapped under itself; a word that is too long loses its middle, or where
    it must stay whole is broken.
    """
    room = WIDTH - _LABEL - indent
    words = " ".join(word if whole else shortened(word, room) for word in escaped(text).split())
    rows = folded(words, room, whole=not whole)
    return [
        (f"{label:<{_LABEL}}" if not number else " " * _LABEL)
        + " " * (indent if number else 0)
        + row
        for number, row in enumerate(rows)
    ]


def _name(text: str, width: int = 60) -> str:
    """A layer's or range's name, as one word where it has none of its own spaces."""
    return shortened(escaped(text), width)


def _at(time_ns: int) -> str:
    return f"{time_ns / 1e6:,.6f} ms"


def _by(sizes: tuple[int, int, int]) -> str:
    return "x".join(map(str, sizes))


def _thread(thread: int) -> str:
    return f"thread {thread & 0xFFFFFF} of pid {(thread >> 24) & 0xFFFFFF}"


def _launch_lines(held: Explanation) -> list[str]:
    if held.launch is None:
        lines = _said("launch", "its launch call is not in the trace")
    else:
        call = held.launch
        begin = held.start_ns - call.end_ns
        after = (
            f"the kernel began {duration(begin)} after it returned"
            if begin >= 0
            else "the kernel began before it returned"
        )
        text = (
            f"{call.api} at {_at(call.start_ns)}, {duration(call.end_ns - call.start_ns)} long, on"
            f" {_thread(call.thread)}; {after}"
        )
        lines = _said("launch", text)
    return lines + (_graph_lines(held.graph) if held.graph is not None else [])


def _graph_lines(graph: GraphNode) -> list[str]:
    of = f" of graph {graph.graph}" if graph.graph is not None else ""
    lines = _said("graph", f"replayed from node {graph.graph_node}{of}")
    for number, step in enumerate(graph.created[:_MOST]):
        last = number == len(graph.created) - 1 and graph.complete
        what = "captured" if last else "a clone, made"
        lines += _said(
            "", f"node {step.graph_node}: {what} at {_at(step.start_ns)} on {_thread(step.thread)}"
        )
    if not graph.complete:
        lines += _said(
            "",
            "the node that stream capture created is not in the trace: the graph was captured"
            " before the trace began",
        )
    return lines


def _range_lines(held: Explanation) -> list[str]:
    what = "creation of its node" if held.graph is not None else "launch"
    if held.graph is not None and not held.graph.complete:
        return _said("ranges", "cannot tell: the creation of its node is not in the trace")
    if held.launch is None and held.graph is None:
        return _said("ranges", "cannot tell: its launch is not in the trace")
    if not held.ranges:
        return _said("ranges", f"no NVTX range encloses the {what}")
    shown = (
        held.ranges
        if len(held.ranges) <= _MOST
        else (*held.ranges[: _MOST // 2], *held.ranges[-_MOST // 2 :])
    )
    lines = _said("ranges", f"around the {what}, the outermost first")
    for number, one in enumerate(shown):
        if number == _MOST // 2 and len(shown) < len(held.ranges):
            lines += _said("", f"… {len(held.ranges) - len(shown)} more …")
        lines += _said("", _range_words(one), indent=2)
    return lines


def _range_words(one: RangeAround) -> str:
    told = {"call": "a call of the engine", "layer": "names a layer", "nothing": ""}[one.names]
    told = "names a layer and is the innermost: it decides" if one.decides else told
    text = f"{one.domain or 'default domain'}: {_name(one.name)}"
    return f"{text} ({duration(one.end_ns - one.start_ns)}{', ' if told else ''}{told})"


def _inference_words(held: InInference | None) -> str:
    if held is None:
        return "not part of a recognised inference"
    by = _FOUND_BY.get(held.found_by, held.found_by) + (
        f" ({held.launch_api})" if held.launch_api else ""
    )
    whole = "" if held.complete else "; cut off, or last and of other kernels"
    doubt = f"; its engine is in doubt: {held.engine_doubt}" if held.engine_doubt else ""
    same = (
        f"{counted(held.same, 'inference')} launch{'es' if held.same == 1 else ''} the same kernels"
        " in the same order"
    )
    return (
        f"number {held.inference}, found by {by}; position {held.position} of 0 to"
        f" {held.kernels - 1} in launch order{whole}; {same}; {counted(held.same_name, 'kernel')}"
        f" of this name in it{doubt}"
    )


def _engine_lines(held: Explanation) -> list[str]:
    if not held.engines:
        return _said("engine", "no engine file was given: layers come from the trace's ranges")
    lines = []
    for number, one in enumerate(held.engines):
        lines += _said("engine" if not number else "", _engine_words(one), indent=2)
    return lines


def _engine_words(one: EngineEvidence) -> str:
    verdict = {
        "ran": "ran",
        "did-not-run": "did not run",
        "cannot-tell": "cannot tell whether it ran",
    }[one.verdict]
    text = f"{one.source}: {verdict}: {one.how}" + (
        "; it ran this inference" if one.ran_this else ""
    )
    if one.placed is not None and one.used is not None:
        text += (
            f"; by order: kernels with a layer {percent(one.placed, 1)}, layers with a kernel"
            f" {percent(one.used, 1)}"
        )
        text += f", tactics that ran {percent(one.tactics, 1)}" if one.tactics is not None else ""
        text += (
            f", {one.margin:.2f} nats per kernel better than in random order"
            if one.margin is not None
            else ""
        )
    return text


def _tactic_lines(held: Explanation) -> list[str]:
    if not held.tactics:
        return (
            _said("tactic", "the name is not a tactic of any given engine file")
            if held.engines
            else []
        )
    lines = _said("tactic", f"the name can be the tactic of {counted(len(held.tactics), 'layer')}")
    for one in held.tactics[:_MOST]:
        lines += _said("", _layer_words(one), indent=2)
    if len(held.tactics) > _MOST:
        lines += _said("", f"and {len(held.tactics) - _MOST} more")
    return lines


def _layer_words(one: Candidate) -> str:
    return f"layer {one.layer_index} {_name(one.layer)}"


def _order_lines(held: Explanation) -> list[str]:
    if held.order is None:
        if held.answer.method in ("nvtx", "graph-node", "region") and held.answer.confidence == 1:
            return _said("order", "not needed: a range gives the layer")
        return _said(
            "order",
            "could not be used: " + (held.answer.reason or "there is nothing to align it with"),
        )
    return _aligned_lines(held.order)


def _aligned_lines(held: ByOrder) -> list[str]:
    size = f"{counted(held.kernels, 'kernel')} with {counted(held.layers, 'layer')}"
    lines = _said("order", f"one alignment of {size} for {counted(held.inferences, 'inference')}")
    if held.chosen is None:
        lines += _said("", f"best: no layer ({percent(held.chance, 1)})", indent=2)
    else:
        told = (
            "its tactic"
            if held.by_tactic
            else "the name supports it"
            if held.explained
            else "only its position supports it"
        )
        lines += _said(
            "",
            f"best: {_layer_words(held.chosen)} ({percent(held.chance, 1)}; names match"
            f" {held.chosen.match:.2f}; {told})",
            indent=2,
        )
    if held.rival is not None:
        lines += _said(
            "",
            f"next: {_layer_words(held.rival)} ({percent(held.rival_chance, 1)}; names match"
            f" {held.rival.match:.2f})",
            indent=2,
        )
    else:
        lines += _said("", f"next: no layer at all ({percent(held.rival_chance, 1)})", indent=2)
    for word, name in (("before it", held.before), ("after it", held.after)):
        lines += _said(
            "", f"{word}: {_name(name) if name is not None else 'no kernel with a layer'}", indent=2
        )
    return lines


def _answer_lines(held: Explanation) -> list[str]:
    answer = held.answer
    if answer.layer is None:
        lines = _said("layer", "none")
    else:
        of = (
            f" of {answer.engine}"
            if answer.engine is not None
            else ", known only from the trace's ranges"
        )
        number = f"{answer.layer_index} " if answer.layer_index is not None else ""
        lines = _said("layer", f"{number}{_name(answer.layer_title or answer.layer, 80)}{of}")
        lines += _said("", f"named {_name(answer.layer, 80)}", indent=2)
    if answer.part is not None:
        lines += _said(
            "part", f"{answer.part} (by {PART_BY.get(answer.part_by or '', answer.part_by or '')})"
        )
    lines += _said("method", f"{answer.method}: {_METHODS[answer.method]}")
    lines += _said(
        "confidence",
        f"{answer.confidence:.4g}"
        + (" (exact)" if answer.confidence == 1 and answer.layer is not None else ""),
    )
    return lines + (_said("reason", answer.reason) if answer.reason is not None else [])
