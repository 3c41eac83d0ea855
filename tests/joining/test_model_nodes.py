"""Which nodes of the ONNX model each layer computes, and layers of two engines of one model joined
by that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.inputs.engine.model import Layer
from nsysmap.inputs.engine.onnx_model import OnnxModel, OnnxNode, read_model
from nsysmap.network.model_nodes import of_model, with_model_nodes
from tests.joining.networks import layer, network, told
from tests.onnx_models import bert
from tests.places import FIXTURES

NORM = "/encoder/layer.0/attention/output/LayerNorm"
WHOLE = "/encoder/layer.0/attention/output"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> OnnxModel:
    return read_model(bert(tmp_path_factory.mktemp("model") / "bert.onnx", layers=1))


def made(node: str) -> str:
    """The tensor that a node makes."""
    return f"{node}_output_0"


def first_half() -> list[Layer]:
    """A region up to the first residual."""
    return [
        layer(
            "{ForeignNode[/embeddings/Gather.../encoder/layer.0/attention/output/Add]}",
            "ids mask",
            made(f"{WHOLE}/Add"),
            kind="foreign_node",
        )
    ]


def second_half() -> list[Layer]:
    reads = made(f"{NORM}/Add_1")
    return [
        layer(
            "{ForeignNode[/encoder/layer.0/intermediate/MatMul.../classifier/Mul]}",
            reads,
            made("/classifier/Mul"),
            kind="foreign_node",
        )
    ]


PLUGIN = layer("anything", made(f"{WHOLE}/Add"), made(f"{NORM}/Add_1"), kind="plugin")


def nodes(layers: list[Layer], model: OnnxModel) -> list[set[str]]:
    return [set(one.onnx) for one in with_model_nodes(layers, model)]


def test_a_plugin_computes_the_nodes_between_its_tensors(model: OnnxModel) -> None:
    _, norm, _ = nodes([*first_half(), PLUGIN, *second_half()], model)
    assert norm == {node.name for node in model.nodes if node.name.startswith(f"{NORM}/")}
    assert len(norm) == 9


def test_every_node_is_of_one_layer_and_a_region_has_all_inside(model: OnnxModel) -> None:
    found = nodes([*first_half(), PLUGIN, *second_half()], model)
    folded = {node.name for node in model.nodes if set(node.outputs) <= model.constants}
    assert sum(map(len, found)) == len(set.union(*found)) == len(model.nodes) - len(folded)
    assert "/embeddings/Add" in found[0] and "/pooler/activation/Tanh" in found[2]


def test_a_reformat_carries_the_tensor_that_it_renames(model: OnnxModel) -> None:
    carried = [
        layer("Reformatting CopyNode for Input Tensor 0 to anything", made(f"{WHOLE}/Add"), "r0"),
        layer("anything", "r0", "r1", kind="plugin"),
        layer("Reformatting CopyNode for Output Tensor 0 to anything", "r1", made(f"{NORM}/Add_1")),
    ]
    _, before, norm, after, _ = nodes([*first_half(), *carried, *second_half()], model)
    assert norm == {node.name for node in model.nodes if node.name.startswith(f"{NORM}/")}
    assert before == after == set()


def test_the_model_of_another_network_tells_nothing(model: OnnxModel) -> None:
    layers = [layer("Conv_0", "in", "a"), layer("Conv_1", "a", "out")]
    assert with_model_nodes(layers, model) == tuple(layers)


def test_what_reads_other_tensors_than_the_model_knows_is_left_as_it_is(model: OnnxModel) -> None:
    """Else it would have all that comes before it in the model."""
    assert nodes([layer("anything", "renamed", made(f"{NORM}/Add_1"), kind="plugin")], model) == [
        set()
    ]


def test_layers_of_two_engines_of_one_model_are_joined_by_its_nodes(model: OnnxModel) -> None:
    pieces = {
        f"{NORM}/{node}"
        for node in (
            "ReduceMean",
            "Sub",
            "Pow",
            "ReduceMean_1",
            "Add",
            "Sqrt",
            "Div",
            "Mul",
            "Add_1",
        )
    }
    reads = {node.name: node.inputs for node in model.nodes}
    plain = [
        layer(name, " ".join(read for read in reads[name] if read not in model.constants), made(name), kind="pointwise")  # noqa: E501
        for name in (node.name for node in model.nodes) if name in pieces
    ]  # fmt: skip
    renamed = [
        layer("region A", "ids mask", made(f"{WHOLE}/Add"), kind="foreign_node"), PLUGIN,
        layer("region B", made(f"{NORM}/Add_1"), made("/classifier/Mul"), kind="foreign_node"),
    ]  # fmt: skip
    before = with_model_nodes([*first_half(), *plain, *second_half()], model)
    after = with_model_nodes(renamed, model)
    found = told(network(before), network(after))
    assert [(len(one), two, relation, by) for one, two, relation, by in found] == [
        (1, ["region A"], "one-to-one", "onnx"), (9, ["anything"], "merged", "onnx"),
        (1, ["region B"], "one-to-one", "onnx"),
    ]  # fmt: skip


def test_a_region_that_came_to_cover_a_layer_has_it_by_its_nodes(model: OnnxModel) -> None:
    before = with_model_nodes([*first_half(), PLUGIN, *second_half()], model)
    after = with_model_nodes(
        [layer("all of it", "ids mask", made("/classifier/Mul"), kind="foreign_node")], model
    )
    ((one, two, relation, by),) = told(network(before), network(after))
    assert (len(one), two, relation, by) == (3, ["all of it"], "moved-into-region", "onnx")


def test_the_command_joins_by_the_model_that_it_is_given(tmp_path: Path) -> None:
    import json

    from nsysmap.comparison.compare import compare

    model_file = bert(tmp_path / "bert.onnx", layers=1)

    def write(name: str, layers: list[Layer]) -> Path:
        rows = [
            {
                "Name": one.name,
                "LayerType": "PluginV2" if one.kind == "plugin" else "Myelin",
                "Inputs": [{"Name": tensor.name, "Dimensions": [1, 8]} for tensor in one.inputs],
                "Outputs": [{"Name": tensor.name, "Dimensions": [1, 8]} for tensor in one.outputs],
            }
            for one in layers
        ]
        (tmp_path / name).write_text(
            json.dumps({"Layers": rows, "Bindings": ["ids", "mask", made("/classifier/Mul")]}),
            encoding="utf-8",
        )
        return tmp_path / name

    sides = (
        write("before.json", [*first_half(), PLUGIN, *second_half()]),
        write(
            "after.json",
            [
                layer(
                    "{ForeignNode[x...y]}", "ids mask", made("/classifier/Mul"), kind="foreign_node"
                )
            ],
        ),
    )
    with_model = compare(*sides, onnx=model_file).layers.records()
    assert [(row["relation"], row["joined_by"]) for row in with_model] == [
        ("moved-into-region", "onnx")
    ]


def test_a_model_of_another_network_is_told(tmp_path: Path) -> None:
    from nsysmap.comparison.compare import compare

    engine = FIXTURES / "aux_streams/engine.json"
    notes = compare(engine, engine, onnx=bert(tmp_path / "bert.onnx", layers=1)).notes
    assert [note for note in notes if "tensor of engine.json" in note]


def norms(*nodes: tuple[str, str, str]) -> OnnxModel:
    return OnnxModel(
        "norms.onnx",
        tuple(OnnxNode(name, "LayerNorm", (reads,), (writes,)) for name, reads, writes in nodes),
        frozenset(),
    )


def test_nodes_of_the_model_that_a_layer_cannot_compute_by_its_tensors_are_not_its_own() -> None:
    """Plugins are numbered through: of an engine with more of them the third is another than that
    of the model.
    """
    numbered = [(f"Norm-{number}", f"t{number}", f"t{number + 1}") for number in range(8)]
    given = norms(*numbered)
    other = [
        *(layer(name, reads, writes, kind="plugin") for name, reads, writes in numbered[:6]),
        layer("Norm-4", "t6", "t7", kind="plugin"),
        layer("Norm-7", "t7", "t8", kind="plugin"),
    ]
    assert nodes(other, given) == [{f"Norm-{number}"} for number in range(8)]
    assert of_model(other, given)


def test_tensors_that_are_named_after_another_node_leave_the_names_as_they_are() -> None:
    """A quantized engine of TensorFlow's model: its tensors are named after the next layer."""
    given = norms(*((f"net/norm_{number}", f"t{number}", f"t{number + 1}") for number in range(6)))
    shifted = [
        layer(f"net/norm_{number}", f"t{number + 1}", f"t{number + 2}", kind="plugin")
        for number in range(4)
    ]
    assert not of_model(shifted, given)
    assert all(f"net/norm_{number}" in held for number, held in enumerate(nodes(shifted, given)))


@pytest.mark.parametrize("turned", [False, True])
def test_regions_of_numbered_nodes_are_joined_with_the_layers_that_compute_those(
    turned: bool,
) -> None:
    """The builds of TensorRT 10.16 and 10.14 of a small network: what one has in regions are layers
    of the other.
    """
    regions = [
        layer("{ForeignNode[node_conv2d...node_relu]}", "x", "relu", kind="foreign_node"),
        layer("node_max_pool2d", "relu", "pool", kind="pooling"),
        layer("{ForeignNode[node_conv2d_1...node_relu_1]}", "pool", "relu_1", kind="foreign_node"),
        layer("node_max_pool2d_1", "relu_1", "pool_1", kind="pooling"),
        layer("{ForeignNode[gemm.bias...castHelper_9]}", "pool_1", "y z", kind="foreign_node"),
    ]
    layers = [
        layer("node_conv2d + node_relu", "x", "relu", kind="convolution"),
        layer("node_max_pool2d", "relu", "pool", kind="pooling"),
        layer("node_conv2d_1 + node_relu_1", "pool", "relu_1", kind="convolution"),
        layer("node_max_pool2d_1", "relu_1", "pool_1", kind="pooling"),
        layer("{ForeignNode[node_linear]}", "pool_1", "a", kind="foreign_node"),
        layer("PWN(node_relu_2)", "a", "relu_2", kind="pointwise"),
        layer("{ForeignNode[node_linear_1]}", "relu_2", "y", kind="foreign_node"),
        layer("node_softmax", "y", "z", kind="softmax"),
    ]
    sides = [network(regions), network(layers)]
    found = told(*(reversed(sides) if turned else sides))
    sizes = sorted(
        (len(before), len(after)) if not turned else (len(after), len(before))
        for before, after, _, _ in found
    )
    assert sizes == [(1, 1), (1, 1), (1, 1), (1, 1), (1, 4)]
    assert {by for _, _, _, by in found} == {"name", "tensors"}


def test_a_node_of_a_layer_of_several_is_no_sign_that_nodes_are_numbered_otherwise() -> None:
    """A plugin for a norm's steps: each step alone is unlike it, and is its part all the same."""
    steps, plugins, expected = [], [], []
    for norm in range(4):
        names = [
            f"{op}_{10 * norm + at}"
            for at, op in enumerate(("ReduceMean", "Sub", "Pow", "Sqrt", "Div"))
        ]
        tensors = [f"t{norm}", *(f"t{norm}_{at}" for at in range(4)), f"u{norm}"]
        product = layer(f"MatMul_{10 * norm + 9}", f"u{norm}", f"t{norm + 1}", shape=(8, 64))
        steps += [
            *(layer(name, tensors[at], tensors[at + 1]) for at, name in enumerate(names)),
            product,
        ]
        plugins += [layer(f"anything {norm}", tensors[0], tensors[-1], kind="plugin"), product]
        expected += [(names, "merged", "onnx"), ([product.name], "one-to-one", "onnx")]
    made_nodes = [
        OnnxNode(one.name, one.name.split("_")[0], (one.inputs[0].name,), (one.outputs[0].name,))
        for one in steps
    ]
    given = OnnxModel("steps.onnx", tuple(made_nodes), frozenset())
    found = told(network(with_model_nodes(steps, given)), network(with_model_nodes(plugins, given)))
    assert [(before, relation, by) for before, _, relation, by in found] == expected


def test_a_layer_behind_others_of_unknown_tensors_does_not_get_their_nodes() -> None:
    given = norms(*((f"norm_{number}", f"t{number}", f"t{number + 1}") for number in range(5)))
    layers = [
        layer("a", "t0", "t1"),
        layer("b", "t1", "unknown"),
        layer("c", "unknown", "t4"),
        layer("d", "t4", "t5"),
    ]
    assert nodes(layers, given) == [{"norm_0"}, set(), set(), {"norm_4"}]
