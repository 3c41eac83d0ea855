"""The boxes beside the layers: modules of the model, layers, ONNX nodes and kernels, as wide as
their time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from nsysmap.network.titles import modules_of
from tests.browser import Browser
from tests.page import scripts
from tests.page.opening import CAPTURES, bert, open_tab, opened

if TYPE_CHECKING:
    from playwright.sync_api import Page


def layer(number: int, title: str, module: list[str], nodes: list[str]) -> dict[str, object]:
    told: dict[str, object] = {"module": module, "nodes": nodes, "swatch": 0, "engine": 0}
    return {"id": number, "title": title, "name": title.upper(), **told}


LAYERS = [
    layer(0, "q", ["net", "a"], ["/net/a/q", "/net/a/add"]),
    layer(1, "k", ["net", "a"], []),
    layer(2, "out", ["net", "b", "c"], ["/net/b/c/o"]),
    layer(3, "cast", [], []),
    layer(4, "none", ["net"], []),
]
KERNELS = [
    {"layer": 0, "name": "long_1", "summary": "gemm", "time": 30},
    {"layer": 0, "name": "long_2", "summary": "add", "time": 10},
    {"layer": 2, "name": "long_3", "summary": "gemm", "time": 7},
]
TREE = """({ layers, kernels, spent }) => {
  const plain = ({ name, kind, time, layers, children }) => ({ name, kind, time, layers, below: children.map(plain) });
  return plain(moduleTree(layers, new Map(spent), kernels));
}"""  # noqa: E501


def tree() -> Any:
    given = {"layers": LAYERS, "kernels": KERNELS, "spent": [[0, 40], [1, 20], [2, 30], [3, 10]]}
    return cast(Any, scripts.run(TREE, given))


def test_layers_stand_below_their_modules_and_the_times_add_up() -> None:
    root = tree()
    assert (root["time"], root["layers"]) == (100, [0, 1, 2, 3])  # layer 4 took no time
    net, cast_ = root["below"]
    assert (net["name"], net["time"], cast_["name"], cast_["kind"]) == ("net", 90, "cast", "layer")
    # a module with one module only is joined with it
    assert [(one["name"], one["time"]) for one in net["below"]] == [("a", 60), ("b/c", 30)]


def test_below_a_layer_stand_its_nodes_and_below_them_its_kernels() -> None:
    layer = tree()["below"][0]["below"][0]["below"][0]
    assert (layer["name"], layer["kind"]) == ("q", "layer")
    (nodes,) = layer["below"]
    assert (nodes["name"], nodes["kind"], nodes["time"]) == ("q + add", "ONNX", 40)
    assert [(one["name"], one["time"]) for one in nodes["below"]] == [("gemm", 30), ("add", 10)]
    out = tree()["below"][0]["below"][1]["below"][0]
    # its kernels share the layer's time, however much they were measured with
    assert [one["time"] for one in out["below"][0]["below"]] == [30]


def test_boxes_lie_within_the_one_above_and_what_is_narrow_is_left_out() -> None:
    code = """({ layers, kernels, spent }) => {
      const root = moduleTree(layers, new Map(spent), kernels), a = root.children[0].children[0];
      const told = boxes => boxes.map(({ node, left, wide, level }) => [node.name, left, wide, level]);
      return [told(placedBoxes(root, root, 0.15)), told(placedBoxes(root, a, 0))];
    }"""  # noqa: E501
    given = {"layers": LAYERS, "kernels": KERNELS, "spent": [[0, 40], [1, 20], [2, 30], [3, 10]]}
    whole, closer = cast(Any, scripts.run(code, given))
    assert ["all layers", 0, 1, 0] in whole and ["net", 0, 0.9, 1] in whole
    assert "cast" not in [name for name, *_ in whole]  # a tenth
    assert closer[:3] == [["all layers", 0, 1, 0], ["net", 0, 1, 1], ["a", 0, 1, 2]]
    assert ["k", pytest.approx(2 / 3), pytest.approx(1 / 3), 3] in closer


@pytest.mark.parametrize(
    ("name", "onnx", "modules"),
    [
        ("__myl_Add_myl0_3", ["/bert/a/Add", "/bert/a/norm/Mul"], ("bert", "a")),
        ("/bert/a/MatMul_myl0_2", [], ("bert", "a")),
        ("/bert/a/q/MatMul + /bert/a/k/MatMul", [], ("bert", "a")),
        ("{ForeignNode[net/layers/0/ADD_0...net/layers/0/mlp/PROD_1]}", [], ("net", "layers", "0")),
        ("__myl_CasSubMul_myl0_2", [], ()),
        ("Reformatting CopyNode for Input Tensor 0 to /a/b/Conv", [], ()),
        ("conv1 + relu1", [], ()),
    ],
)
def test_the_modules_of_a_layer_are_what_its_nodes_begin_with(
    name: str, onnx: list[str], modules: tuple[str, ...]
) -> None:
    assert modules_of(name, onnx) == modules


def bricks(page: Page) -> list[str]:
    boxes = page.locator("#icicle-boxes [role=treeitem]").all()
    return [str(one.get_attribute("aria-label")) for one in boxes]


def test_a_click_on_a_module_selects_its_layers_and_shows_them_closer(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written), tab="layers")
    assert bricks(page)[0].startswith("all layers: 38 layers, 147.9 µs, 100.0%")
    page.locator("#icicle-boxes .module", has_text="layer.3").click()
    chips = page.inner_text("#chips")
    assert "layer.3: 7 layers" in chips
    assert page.locator("#icicle-boxes .brick", has_text="layer.3").first.evaluate(
        "one => one.offsetWidth > one.parentElement.offsetWidth - 3"
    )
    page.locator("#icicle-boxes .layer").first.click()
    assert page.locator("#details h2").is_visible()
    page.locator("#icicle-boxes .brick").first.click()
    assert page.locator("#chips").is_hidden()


def test_boxes_are_reached_by_keys(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, bert(written), tab="layers")
    page.locator("#icicle-boxes [tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert first.startswith("layer.2") and second != first
    page.keyboard.press("Enter")
    assert second.partition(":")[0] in page.inner_text("#chips")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.textContent") == "encoder"


def test_boxes_of_a_selection_are_of_what_ran_in_it(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]), tab="layers")
    assert any(one.startswith("context: ") for one in bricks(page))
    assert "µs" not in bricks(page)[0]  # times of two engines do not add up
    page.keyboard.press("]")
    open_tab(page, "layers")
    engines = [one.partition(":")[0] for one in bricks(page)]
    assert ("generation" in engines) != ("context" in engines)  # one ran in it
