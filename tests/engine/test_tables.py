"""The tables worked out from engine files: they hold for whatever an engine file may say."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nsysmap.core import schema
from nsysmap.inputs.engine.reader import read_engine
from nsysmap.network.tables import engine_tables, layers_table
from tests.made_engines import Row, made, row
from tests.places import FIXTURES

extents = st.lists(st.sampled_from([-1, 0, 1, 2, 3, 8, 64, 128, 2**31, 2**47]), max_size=4)
forms = st.sampled_from(
    [
        "Half",
        "Float",
        "Int8",
        "FP8",
        "Int64",
        "",
        "Row major linear FP32",
        "Thirty-two wide channel vectorized row major Int8 format",
    ]
)
tensors = st.lists(st.tuples(st.sampled_from("abcdefgh"), extents, forms), max_size=3)
names = st.sampled_from(
    [
        *(
            "__myl_MulAddMaxrSubExpSumDivMul{}",
            "__myl_MeanSubMulMean{}",
            "__myl_AddSqrtDivMulMulAdd{}",
            "__myl_Cast{}",
            "__myl_FcAdd{}",
        ),
        *(
            "__myl_AddEtc{}",
            "/a/MatMul{}",
            "_gemm_mha_v2{}",
            "q+k{}",
            "Conv_1+Relu_2",
            "QuantizeLinear_3",
            "PWN(Add_1)",
        ),
    ]
)
kinds = st.sampled_from(
    [
        "kgen",
        "gemm",
        "Reformat",
        "CaskConvolution",
        "CaskPooling",
        "SoftMax",
        "MatrixMultiply",
        "PluginV2",
        "NoOp",
        "Myelin",
        "Scale",
    ]
)
parameters = st.fixed_dictionaries(
    {},
    optional={
        "Kernel": st.lists(st.integers(-1, 9), max_size=3),
        "Groups": st.integers(-1, 64),
        "OutMaps": st.integers(0, 64),
        "Weights": st.fixed_dictionaries(
            {"Type": forms, "Count": st.sampled_from([0, 24, 2**55, 2**62])}
        ),
        "ParameterType": st.sampled_from(["Convolution", "Deconvolution", "Pooling"]),
        "WindowSize": st.lists(st.integers(0, 2**40), max_size=2),
        "Origin": st.sampled_from(["QDQ", "CAST", "REFORMAT"]),
    },
)
layers = st.builds(
    lambda name, kind, reads, writes, more: row(name, kind, reads, writes, **more),
    names,
    kinds,
    tensors,
    tensors,
    parameters,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200)
@given(st.lists(layers, min_size=1, max_size=10))
def test_every_engine_gives_every_table(rows: list[Row]) -> None:
    engine = made(*rows)
    tables = engine_tables([engine, engine])
    ids = set(layers_table([engine, engine]).ints("layer_id").tolist())
    for table in vars(tables).values():
        table.arrow()
        for column in (
            "layer_id",
            "from_layer",
            "to_layer",
            "first_layer",
            "last_layer",
            "producer",
            "consumer",
            "undoes",
        ):
            if column in table.columns:
                assert {record[column] for record in table.records()} - {None} <= ids
    for table, key in ((tables.chain_layers, "chain_id"), (tables.attention_layers, "block_id")):
        places = [(record[key], record["position"]) for record in table.records()]
        assert places == sorted(places)
        assert len(places) == len(set(places))


def test_a_names_only_engine_has_no_chain_no_edge_and_no_work() -> None:
    rows: list[Row] = [
        {"Name": layer.name}
        for layer in read_engine(FIXTURES / "bert_trt10" / "engine.json").layers
    ]
    engine = made(*rows)
    tables = engine_tables([engine])
    assert [len(table) for table in (tables.tensors, tables.edges, tables.chains)] == [0, 0, 0]
    work = tables.work.records()
    assert len(work) == 57
    assert all(
        record["bytes"] is None and record["reason"] for record in work if record["macs"] is None
    )


@pytest.mark.parametrize(
    ("folder", "regions"), [("bert_trt10", 0), ("bert_trt103", 0), ("bert_trt85", 1)]
)
def test_an_engine_shows_tensors_beside_its_opaque_regions_which_are_counted(
    folder: str, regions: int
) -> None:
    engine = read_engine(FIXTURES / folder / "engine.json")
    assert engine_tables([engine]).engines_with_tensors.ints("opaque_regions").tolist() == [regions]


def test_an_engine_of_nothing_but_an_opaque_region_shows_no_tensors() -> None:
    region = row("{ForeignNode[/a.../b]}", "Myelin", [("x", [1, 8], "Half")], [])
    assert len(engine_tables([made(region)]).engines_with_tensors) == 0


def test_an_engine_with_names_only_is_not_open() -> None:
    assert len(engine_tables([made({"Name": "a"})]).engines_with_tensors) == 0


def test_each_field_holds_the_declared_table_of_its_name() -> None:
    declared = {spec.name: spec for spec in schema.RULE_TABLES}
    for name, table in vars(engine_tables([])).items():
        assert table.spec is declared[name]
