"""The answer on the page's top."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from nsysmap.answer.costs import functions
from nsysmap.answer.words import unprofiled
from nsysmap.api import analyze
from nsysmap.core.idle_causes import idle_words
from nsysmap.output.page.answer import bars_of
from nsysmap.output.page.unit import unit_of
from tests.browser import Browser
from tests.places import FIXTURES

if TYPE_CHECKING:
    from playwright.sync_api import Page
from tests.page.opening import CAPTURES, MIXED, bert, open_tab, opened


def bottom(page: Page, place: str) -> float:
    """How far down the window the first of these elements ends."""
    return float(page.locator(place).first.evaluate("one => one.getBoundingClientRect().bottom"))


@pytest.mark.parametrize("name", CAPTURES)
def test_the_page_opens_with_the_answer_the_timeline_and_the_tabs_in_sight(
    browser: Browser, written: Callable[..., Path], name: str
) -> None:
    page = opened(browser, written(*CAPTURES[name]))
    page.set_viewport_size({"width": 1440, "height": 900})
    assert page.evaluate("scrollY") == 0
    assert page.locator("#details").is_hidden()  # nothing is clicked yet
    assert bottom(page, "#answer") < 520
    lanes = page.locator("#lanes").bounding_box()
    assert lanes is not None and lanes["y"] + 180 < 900  # several rows of it
    assert bottom(page, "#tabs") <= 901
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_answer_stands_on_one_screen_of_a_small_laptop(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    page.set_viewport_size({"width": 1024, "height": 700})
    assert page.locator("#details").is_hidden()  # nothing is clicked yet
    told = page.inner_text("#answer")
    for word in (
        "CUDA graph",
        "keep two inferences in flight",
        "slowest",
        "engine.json is the engine that ran",
        "how sure",
        "What to do first",
        "Which layers take the most time",
    ):
        assert word in told, word
        assert (
            page.locator("#answer")
            .get_by_text(word)
            .first.evaluate("one => one.getBoundingClientRect().bottom < 700")
        ), word
    assert bottom(page, "#overview") < 700  # and the whole trace
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_text("show it").click()
    assert page.inner_text("#details h2").startswith("Inference")
    page.get_by_label("close the details").click()
    assert page.locator("#details").is_hidden()


def test_a_decoding_loop_says_how_many_tokens_per_second(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    told = page.inner_text("#answer")
    assert re.search(
        r"first token after [\d,.]+ µs, then [\d,.]+ µs a token: [\d,.]+ tokens/s", told
    )
    other = opened(browser, bert(written))
    assert "token" not in other.inner_text("#answer")


def test_times_of_layers_have_one_unit(browser: Browser, written: Callable[..., Path]) -> None:
    page = opened(browser, written(*MIXED))
    assert "take the most time, of 281 µs kernel time per pass of 2 inferences" in page.inner_text(
        "#answer"
    )
    assert "times (µs): mean per pass of 2 inferences" in page.inner_text("#layers .said")
    assert "times: mean per pass of 2 inferences" in page.inner_text("#region-said")
    assert "of any engine, of which a pass has 2" in page.inner_text("#findings")
    costs = [
        head for head in page.locator("#findings .about b").all_text_contents() if "costs" in head
    ]
    assert costs and all(
        re.search(r"costs [\d.,]+ \S+ (per pass of 2 inferences|in all)$", head) for head in costs
    ), costs
    page = opened(browser, written(*CAPTURES["two engines in turns"]))
    assert (
        "take the most time, of 229 µs kernel time per inference of any engine"
        in page.inner_text("#answer")
    )
    others = page.locator("#layer-table tbody tr", has_text="without a layer")
    assert others.locator("td").nth(1).inner_text() == "–"  # they are of no engine
    page.keyboard.press("]")
    assert "times (µs) and kernels within the selection" in page.inner_text("#layers .said")


def test_the_engine_that_ran_is_proved_by_its_tactics(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    told = page.inner_text("#sure")
    assert "55 of 55 layers with a tactic ran the kernel that it names" in told
    assert "of its 57 layers 1 ran no kernel (1 shape)" in told


def test_what_is_not_done_first_is_said_with_the_limit(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written("bert_trt10/sync.nsys-rep", "bert_trt10/engine.json"))
    assert (
        "each saves at least 1% even at the low end of its range, and from the second on 3%"
        in page.inner_text("#whatif")
    )
    first = {
        row.get_attribute("data-change"): row.locator("td").nth(6).inner_text()
        for row in page.locator("#whatif tbody tr").all()
    }
    listed = {
        str(link.get_attribute("href")).removeprefix("#change-")
        for link in page.locator("#answer").get_by_text("how predicted").all()
    }
    assert {change for change, said in first.items() if said == "yes"} == listed != set()
    assert first["async"] == "no: it may save nothing"
    assert first["drop-layers"] == "no: it may save nothing"


def test_what_no_range_marks_as_inferences_are_repetitions(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, written("torch_encoder/eager.nsys-rep"), "inference=3")
    assert "repetition 3 ×" in page.inner_text("#chips")
    assert page.inner_text("#details h2") == "Repetition 3"
    assert page.inner_text("#inferences h2") == "Repetitions"
    assert "Layers are TensorRT's, and the trace shows none" in page.inner_text("#answer")
    for part in ("#answer .help", "#idle .help", "#kernels .help", "#inferences"):
        assert "inference" not in " ".join(page.locator(part).all_inner_texts()), part


def test_times_of_several_threads_or_gpus_say_so(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(
        browser, written("bert_split_trt10/threads.nsys-rep", "bert_split_trt10/engine.json")
    )
    assert "per second (2 threads together)" in page.inner_text("#answer .facts")
    page = opened(browser, written("two_gpus/tp_sync.nsys-rep", "two_gpus/tp.engine.json"))
    assert "per second on each GPU" in page.inner_text("#answer .facts")
    assert (
        "GPU 1: mean of 39 steady-state inferences; the prediction for GPU 0 starts from 257 µs,"
        " without outliers" in str(page.text_content("#answer"))
    )
    page = opened(browser, written(*MIXED))
    assert "817 passes/s" in page.inner_text("#answer .facts")
    assert "Mean of 40 steady-state passes (median 1,190 µs)" in str(page.text_content("#answer"))


def test_kernels_that_a_graph_hides_are_not_counted_as_none(
    browser: Browser, written: Callable[..., Path]
) -> None:
    engines = ("decode_loop/context.engine.json", "decode_loop/generation.engine.json")
    page = opened(browser, written("decode_loop/graph_whole.nsys-rep", *engines), "inference=20")
    told = page.inner_text("#answer")
    assert re.search(r"of [\d.,]+ µs visible kernel time in \d+ steady inferences", told)
    assert "time of all kernels that the trace shows" in str(page.text_content("#answer"))
    open_tab(page, "inferences")
    assert re.search(r"CUDA graphs\s+96\s+hidden", page.inner_text("#inferences"))
    assert re.search(r"kernels\s+hidden", page.inner_text("#details"))


def test_times_of_layers_are_of_the_inferences_whose_kernels_are_shown() -> None:
    for report, words in (
        ("sync", "per inference"),
        ("graph_whole", "per inference whose kernels the trace shows"),
    ):
        found = analyze(FIXTURES / "decode_loop" / f"{report}.nsys-rep", rules=())
        assert unit_of(found.summary, found.tables).words == words


def test_kernels_are_named_by_their_functions_where_these_differ() -> None:
    names = (
        "void at::native::<unnamed>::norm_kernel<c10::Half, float>(int, T2, const T1 *)",
        "void at::native::add_kernel<float>(int)",
        "void at::native::add_kernel<c10::Half>(int)",
        "void one::mul_kernel<float>(int)",
        "void two::mul_kernel<float>(int)",
        "nvjet_sm90_hsh_192x96",
    )
    assert functions(names) == [
        "norm_kernel",
        "add_kernel<float>",
        "add_kernel<c10::Half>",
        names[3],
        names[4],
        names[5],
    ]


def test_the_bars_add_up_and_one_below_says_the_same_without_the_profiler() -> None:
    for report, engine in (
        ("aux_streams/graph", "engine"),
        ("bert_trt10/sync", "engine"),
        ("two_gpus/tp_sync", "tp.engine"),
    ):
        folder = FIXTURES / report.partition("/")[0]
        found = analyze(
            FIXTURES / f"{report}.nsys-rep", [folder / f"{engine}.json"], rules=()
        ).summary
        without = found.gpu_unprofiled
        assert without is not None
        bars = bars_of(found)
        assert [bar.replayed for bar in bars] == [False, True, *[False] * (len(found.gpus) - 1)]
        for bar in bars:
            assert sum(part.wide for part in bar.parts) == pytest.approx(100, abs=0.01), bar.title
            for part, following in itertools.pairwise(bar.parts):
                assert part.left + part.wide == pytest.approx(following.left, abs=0.002)
        assert {part.words for part in bars[0].parts if not part.cause} <= {
            bars[0].parts[0].words,
            "before the first work",
        }
        assert {part.words: part.wide for part in bars[1].parts} == {
            "GPU work": pytest.approx(100 * (without.busy_share or 0), abs=0.001),
            **{
                idle_words(one.cause): pytest.approx(100 * one.share_of_window, abs=0.001)
                for one in without.idle
            },
        }
        assert unprofiled(found) in bars[1].title


def test_the_bar_without_the_profiler_stands_below_that_of_the_trace(
    browser: Browser, written: Callable[..., Path]
) -> None:
    page = opened(browser, bert(written))
    assert "of the SMs)" in page.inner_text("#answer .legend")
    told = re.search(
        r"Predicted, of (\S+ \S+) per inference: (\d+)% busy without the profiler",
        str(page.get_attribute("#answer .replayed", "aria-label")),
    )
    assert told is not None
    widths = page.locator("#answer .replayed rect").evaluate_all(
        "all => all.map(one => +one.getAttribute('width'))"
    )
    assert round(widths[0]) == int(told[2])
    assert sum(widths) == pytest.approx(100, abs=0.01)
    # the timeline has no such idle time to show
    assert page.locator("#answer .replayed [data-cause]").count() == 0
