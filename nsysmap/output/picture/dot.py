"""The picture of an engine in Graphviz's DOT language."""

from __future__ import annotations

from nsysmap.output.picture.model import Picture
from nsysmap.output.picture.swatches import ink_on
from nsysmap.text.terminal import escaped


def dot(picture: Picture) -> str:
    """The first view as a DOT graph; the legend is the graph's label, and a row of boxes of its
    own.
    """
    view = picture.views[0]
    legend = view.legends[picture.mode]
    label = "\n".join([picture.title, *picture.notes, legend.title])
    lines = [
        "digraph engine {",
        f'  graph [label={_quoted(label)}, labelloc="t", fontname="Helvetica", rankdir="TB"];',
        '  node [shape="box", style="filled,rounded", fontname="Helvetica", fontsize=10];',
        '  edge [fontname="Helvetica", fontsize=8, color="#868e96"];',
    ]
    for number, box in enumerate(view.boxes):
        swatch = box.swatch[picture.mode]
        names = "\n".join(f"#{index} {picture.engine.layers[index].name}" for index in box.layers)
        heading = f"{box.title}\n{box.subtitle}"
        style = ', style="filled,rounded,dashed"' if swatch.untold else ""
        text = f"label={_quoted(heading)}, tooltip={_quoted(names)}"
        lines.append(
            f'  n{number} [{text}, fillcolor="{swatch.fill}",'
            f' fontcolor="{ink_on(swatch.fill)}"{style}];'
        )
    for edge in view.edges:
        style = ', style="dashed"' if edge.order else ""
        lines.append(
            f"  n{edge.source} -> n{edge.target} [label={_quoted(edge.words)},"
            f" tooltip={_quoted(edge.tensor)}{style}];"
        )
    lines += ["  subgraph cluster_legend {", f"    label={_quoted(legend.title)};"]
    for number, swatch in enumerate(legend.swatches):
        style = ', style="filled,rounded,dashed"' if swatch.untold else ""
        lines.append(
            f'    l{number} [label={_quoted(swatch.words)}, fillcolor="{swatch.fill}",'
            f' fontcolor="{ink_on(swatch.fill)}"{style}];'
        )
    return "\n".join([*lines, "  }", "}", ""])


def _quoted(text: str) -> str:
    """The text as a DOT string: line breaks between its lines, everything else as it is."""
    lines = (escaped(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n"))
    return '"' + "\\n".join(lines) + '"'
