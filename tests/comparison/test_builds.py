"""Several builds side by side: which files are one build, groups of ONNX nodes, the best of each,
and memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsysmap.cli.inputs import BETWEEN_SIDES
from nsysmap.cli.main import cli
from nsysmap.comparison.builds import build_of, builds_in, compare_builds
from nsysmap.comparison.builds_page import builds_json, builds_schema, builds_text
from nsysmap.comparison.compare import compare
from nsysmap.core.errors import NsysmapError
from nsysmap.inputs.engine.build_memory import memory_in, memory_of_file
from nsysmap.trace.device_memory import peak_device_memory

Layers = Sequence[tuple[str, str, float]]
"""Name, ONNX nodes and microseconds of each layer."""


def _write(
    folder: Path, name: str, layers: Layers, types: Mapping[str, tuple[str, str]] | None = None
) -> Path:
    """An engine file and its profile; ``types`` are what layers read and write, if not halves."""

    def tensor(name: str, title: str, side: int) -> dict[str, object]:
        type_ = (types or {}).get(title, ("Half", "Half"))[side]
        return {
            "Name": name,
            "Dimensions": [16, 16],
            "Format/Datatype": f"Row major linear {type_}",
        }

    rows = [
        {
            "Name": title,
            "LayerType": "Quantize" if "quantizer" in title else "gemm",
            "Inputs": [tensor(f"t{at}", title, 0)],
            "Outputs": [tensor(f"t{at + 1}", title, 1)],
            "TacticName": "",
            "Metadata": "".join(f"[ONNX Layer: {node}]" for node in nodes.split()),
        }
        for at, (title, nodes, _) in enumerate(layers)
    ]
    names = {"Layers": rows, "Bindings": ["t0", f"t{len(layers)}"]}
    file = folder / f"{name}.engine.json"
    file.write_text(json.dumps(names))
    times: list[dict[str, object]] = [{"count": 10}]
    times += [
        {
            "name": title,
            "timeMs": us / 100,
            "averageMs": us / 1e3,
            "medianMs": us / 1e3,
            "percentage": 1,
        }
        for title, _, us in layers
    ]
    (folder / f"{name}.profile.json").write_text(json.dumps(times))
    return file


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three builds: `a` is best in /up, `b` in /down, and `c` fuses both."""
    _write(tmp_path, "a", [("up", "/up", 10.0), ("down", "/down", 30.0), ("head", "/head", 5.0)])
    _write(tmp_path, "b", [("up", "/up", 20.0), ("down", "/down", 15.0), ("head", "/head", 5.0)])
    _write(tmp_path, "c", [("up", "/up", 30.0), ("down", "/down", 40.0), ("head", "/head", 9.0)])
    return tmp_path


def test_the_best_of_each_group_and_of_all(folder: Path) -> None:
    found = compare_builds(builds_in([str(folder)]))
    assert [one.name for one in found.builds] == ["a", "b", "c"]
    assert [one.time_ns for one in found.builds] == [45_000, 40_000, 79_000]
    assert found.best == 1
    assert found.best_of_all_ns == 30_000
    groups = {one.title: (one.times_ns, one.best) for one in found.groups}
    assert groups["up"] == ((10_000, 20_000, 30_000), 0)
    assert groups["down"] == ((30_000, 15_000, 40_000), 1)
    assert found.groups[0].title == "down", "the most to gain"
    assert "b is the fastest: 40.0 µs" in builds_text(found, 120)


def test_layers_that_one_build_fuses_are_one_group(folder: Path) -> None:
    _write(folder, "d", [("both", "/up /down", 21.0), ("head", "/head", 5.0)])
    found = compare_builds(builds_in([str(folder)]))
    both = next(one for one in found.groups if one.layers == (2, 2, 2, 1))
    assert both.times_ns == (40_000, 35_000, 70_000, 21_000)
    assert both.title == "up + down", "by its nodes"


def test_engine_files_without_nodes_are_joined_as_compare_joins_them(tmp_path: Path) -> None:
    """TensorRT 8 names no ONNX nodes: names and tensors tell."""
    for name, factor in (("a", 1.0), ("b", 2.0), ("c", 0.5)):
        _write(tmp_path, name, [("Conv_0 + Relu_1", "", 10 * factor), ("Conv_2", "", 30 * factor)])
    found = compare_builds(builds_in([str(tmp_path)]))
    assert {one.times_ns for one in found.groups} == {
        (10_000, 20_000, 5_000),
        (30_000, 60_000, 15_000),
    }
    assert found.best_of_all_ns == 20_000
    assert not found.notes


def test_files_of_other_kinds_in_a_builds_folder_are_left_alone(folder: Path) -> None:
    for name in "abc":
        (folder / f"{name}.build.metadata.json").write_text('{"build_command": "trtexec"}')
    assert compare_builds(builds_in([str(folder)])).best == 1


def test_a_profile_stands_beside_its_engine_file(folder: Path) -> None:
    files = [str(folder / f"{name}.{kind}.json") for name in "ab" for kind in ("engine", "profile")]
    done = CliRunner().invoke(cli, ["compare", *files[:2], BETWEEN_SIDES, *files[2:], "--json"])
    joined = json.loads(done.output)
    assert (joined["before_ns"], joined["after_ns"]) == (45_000, 40_000)
    assert {row["joined_by"] for row in joined["layers"]} == {"onnx"}


def test_profiles_alone_are_not_called_different_networks(folder: Path) -> None:
    _write(folder, "d", [(f"other {at}", "", 10.0) for at in range(3)])
    sides = (str(folder / "a.profile.json"), str(folder / "d.profile.json"))
    (condition,) = [one for one in compare(*sides).conditions if one.other_work]
    assert "engine files" in condition.told


def test_quantizers_join_no_groups(tmp_path: Path) -> None:
    _write(tmp_path, "half", [("up", "/up", 10.0), ("down", "/down", 30.0)])
    quantised = [
        ("up", "/up /up_0/DequantizeLinear /q/QuantizeLinear", 10.0),
        ("down", "/q/QuantizeLinear /down", 20.0),
    ]
    _write(tmp_path, "eight", quantised)
    found = compare_builds(builds_in([str(tmp_path)]))
    assert {one.title for one in found.groups} == {"up", "down"}


def test_other_nodes_are_said_and_nothing_is_added_up(tmp_path: Path) -> None:
    _write(tmp_path, "a", [("up", "/up", 10.0)])
    _write(tmp_path, "b", [("other", "/other", 20.0)])
    found = compare_builds(builds_in([str(tmp_path)]))
    assert found.best_of_all_ns is None
    assert found.notes


def test_without_times_the_builds_are_still_shown(folder: Path) -> None:
    engines = [str(folder / f"{name}.engine.json") for name in "abc"]
    found = compare_builds(builds_in(engines))
    assert (found.best, found.best_of_all_ns) == (None, None)
    assert all(one.time_ns is None for one in found.builds)
    assert "No build" in builds_text(found, 120)


def test_folders_and_files_of_builds(folder: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / "x" / name).mkdir(parents=True)
        _write(tmp_path / "x" / name, "engine", [("up", "/up", 10.0)])
    assert [one.name for one in builds_in([str(tmp_path / "x")])] == ["first", "second"]
    two = build_of("a", [str(folder / "a.engine.json"), str(folder / "a.profile.json")])
    assert two.profile is not None
    with pytest.raises(NsysmapError, match="has 1 build"):
        builds_in([str(folder / "a.engine.json")])


def test_memory_of_logs_engines_and_inspector(tmp_path: Path) -> None:
    created = "TensorRT-managed allocation in IExecutionContext creation"
    log = f"""[I] [TRT] Total Activation Memory: 22118400
[I] [TRT] Total Weights Memory: 1000
[I] Created engine with size: 231.5 MiB
[I] [TRT] Loaded engine size: 231 MiB
[I] [TRT] [MemUsageChange] {created}: CPU +0, GPU +80, now: CPU 0, GPU 266 (MiB)
"""
    found = memory_in(log)
    assert (found.activation_bytes, found.weight_bytes) == (22_118_400, 1_000)
    assert found.engine_bytes == round(231.5 * 2**20), "the exact one of the two"
    assert found.context_bytes == 80 << 20
    assert memory_in("nothing").engine_bytes is None
    plan = tmp_path / "model.plan"
    plan.write_bytes(b"ftrt" + bytes(996))
    assert memory_of_file(plan).engine_bytes == 1_000
    assert memory_of_file(tmp_path / "none").engine_bytes is None


def test_alive_activations_and_weights_by_the_engine_file(folder: Path) -> None:
    found = compare_builds(builds_in([str(folder)]))
    # two tensors of 16 x 16 halves, the one that is read and the one that is written
    assert [one.live_bytes for one in found.builds] == [2 * 512] * 3


def test_device_memory_where_it_was_traced(tmp_path: Path) -> None:
    file = tmp_path / "r.sqlite"
    with sqlite3.connect(file) as made:
        made.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        made.execute(
            "CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId"
            " INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER)"
        )
        rows = [(1, 100, 2, 0), (2, 50, 2, 0), (3, 100, 2, 1), (4, 20, 2, 0), (5, 999, 1, 0)]
        made.executemany("INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (?, 1, 0, ?, ?, ?)", rows)
    assert peak_device_memory(file) == 150
    with sqlite3.connect(file) as made:
        made.execute("DROP TABLE CUDA_GPU_MEMORY_USAGE_EVENTS")
    assert peak_device_memory(file) is None


def test_two_engine_files_tell_what_another_precision_does(tmp_path: Path) -> None:
    """Slower products, a quantizer, and what stays, without a capture."""
    half = _write(tmp_path, "half", [("up", "/up", 10.0), ("down", "/down", 30.0)])
    layers = [
        ("quantizer", "/up_0/QuantizeLinear", 4.0),
        ("up", "/up", 15.0),
        ("down", "/down", 30.0),
    ]
    types = {"quantizer": ("Half", "FP8"), "up": ("FP8", "Half")}
    eight = _write(tmp_path, "eight", layers, types)
    profiles = [tmp_path / f"{name}.profile.json" for name in ("half", "eight")]
    found = compare(*profiles, engine_before=half, engine_after=eight)
    reasons = {one.reason: one.ns for one in found.precision}
    assert reasons["products"] == 5_000
    assert reasons["conversions"] == 4_000
    (uses,) = found.eight_bits
    assert {one.part: one.time_ns for one in uses.parts} == {
        "product": 15_000,
        "stayed": 30_000,
        "convert": 4_000,
    }


def test_the_command_shows_and_writes_them(folder: Path) -> None:
    out = [folder / f"out.{end}" for end in ("md", "json", "html")]
    written = [part for path in out for part in ("-o", str(path))]
    engines = [str(folder / f"{one}.engine.json") for one in "abc"]
    done = CliRunner().invoke(cli, ["compare", *written, *engines], catch_exceptions=False)
    assert done.exit_code == 0
    assert "3 builds side by side" in done.output
    assert all(path.stat().st_size for path in out)
    held = json.loads(out[1].read_text())
    assert set(held) == set(builds_schema()["properties"])
    assert held == json.loads(json.dumps(builds_json(compare_builds(builds_in(engines)))))
