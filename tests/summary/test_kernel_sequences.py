"""Inferences with different kernels are called by what only they have: their optimization profile,
or a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

from nsysmap.answer.kernel_sequences import what_differs
from nsysmap.core.columns import integer, text
from nsysmap.core.table import Spec, Table

KERNELS = Spec(
    "kernels",
    "",
    (
        integer("inference", ""),
        text("name", ""),
        integer("layer_id", "", null=True),
        integer("start_ns", "", "ns"),
        integer("end_ns", "", "ns"),
    ),
)
LAYERS = Spec(
    "layers", "", (integer("layer_id", ""), integer("optimization_profile", "", null=True))
)
TIMES = Spec("inference_times", "", (integer("inference", ""), integer("group_id", "")))
GROUPS = Spec(
    "inference_groups",
    "",
    (
        integer("group_id", ""),
        integer("inferences", ""),
        integer("kernels", "", null=True),
        text("found_by", "", null=True),
    ),
)


def told(
    *groups: Sequence[tuple[str, int | None]], profiles: dict[int, int] | None = None
) -> list[str]:
    """What is said of each group, of whose one inference these are the kernels with their layers;
    each is longer than the one before.
    """
    kernels = [
        {"inference": number, "name": name, "layer_id": layer, "start_ns": 0, "end_ns": at + 1}
        for number, mine in enumerate(groups)
        for at, (name, layer) in enumerate(mine)
    ]
    tables = {
        "kernels": Table.of_rows(KERNELS, kernels),
        "layers": Table.of_rows(
            LAYERS,
            [
                {"layer_id": one, "optimization_profile": other}
                for one, other in (profiles or {}).items()
            ],
        ),
        "inference_times": Table.of_rows(
            TIMES, [{"inference": number, "group_id": number} for number in range(len(groups))]
        ),
    }
    rows = [
        {
            "group_id": number,
            "inferences": 9 - number,
            "kernels": len(mine),
            "found_by": "period" if mine else "graph-launch",
        }
        for number, mine in enumerate(groups)
    ]
    found = what_differs(tables, list(Table.of_rows(GROUPS, rows)))
    return [found[number].words if number in found else "" for number in range(len(groups))]


def test_one_kind_needs_no_name() -> None:
    assert told([("a", 0)]) == [""]


def test_the_number_of_kernels_tells_where_it_differs() -> None:
    assert told([("a", 0)], [("a", 0), ("b", 1)]) == ["1 kernel", "2 kernels"]


def test_profiles_tell_where_each_has_its_own() -> None:
    both = [("a", 0)], [("a", 1), ("b", 1)]
    assert told(*both, profiles={0: 0, 1: 1}) == ["profile 0", "profile 1"]
    assert told(*both, profiles={0: 0, 1: 0}) == ["1 kernel", "2 kernels"]
    assert told([("a", 0)], [("a", 0), ("b", 1)], profiles={0: 0, 1: 1}) == [
        "1 kernel",
        "2 kernels",
    ]


def test_the_longest_kernel_of_its_own_tells_those_of_one_number_apart() -> None:
    few, many = [("a", None), ("void ns::f<int>(int)", None)], [("a", None), ("g", None)]
    assert told(few, many) == ["2 kernels with f", "2 kernels with g"]
    assert told(few, many, [("a", None)]) == ["2 kernels with f", "2 kernels with g", "1 kernel"]


def test_graph_launches_without_a_kernel_in_the_trace_have_hidden_ones_and_not_none() -> None:
    assert told([("a", 0)], []) == ["1 kernel", "hidden kernels"]
    assert told([], []) == ["hidden kernels", "hidden kernels #2"]


def test_no_two_are_called_the_same() -> None:
    assert told([("f(int)", None)], [("f(long)", None)]) == [
        "1 kernel with f",
        "1 kernel with f #2",
    ]
