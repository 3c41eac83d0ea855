"""Repetitions that are a program's unit of work, against loops inside a piece of work, and what
comes again by chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmap.core.trace_schema import INFERENCES
from nsysmap.mapping.mapped_trace import MappedTrace, map_trace
from nsysmap.trace.inferences.find import enqueue_spans
from nsysmap.trace.inferences.periods import Recurring, which_repeat, whole_turns
from tests.nsys_file import THREAD, NsysFile
from tests.reports import read_trace

Words = list[list[int]]
WAIT = "wait"


class Program:
    """Writes launches, each on its stream, and waits, one after the other."""

    def __init__(self, **took: int) -> None:
        self.took = took  # ns, of kernels that do not take 5
        self.file = NsysFile()
        self.now = 1000
        self.correlation = 0

    def run(self, *steps: str) -> Program:
        """Steps are WAIT, and names of kernels, perhaps with a grid after a colon, and with a
        stream after an at sign.
        """
        for step in steps:
            self.correlation += 1
            if step == WAIT:
                self.file.call(
                    "cudaStreamSynchronize_v3020",
                    self.now,
                    self.now + 5,
                    self.correlation,
                    thread=THREAD,
                )
                self.now += 30
                continue
            name, _, stream = step.partition("@")
            name, _, grid = name.partition(":")
            self.file.call(
                "cudaLaunchKernel_v7000", self.now, self.now + 2, self.correlation, thread=THREAD
            )
            self.file.kernel(
                name,
                self.now + 10,
                self.correlation,
                stream=int(stream or 7),
                grid=int(grid or 1),
                took=self.took.get(name, 5),
            )
            self.now += 20
        return self

    def mapped(self, folder: Path) -> MappedTrace:
        return map_trace(read_trace(self.file.write(folder / "x.sqlite")), [])


def sizes(mapped: MappedTrace) -> list[int]:
    return [row.integer("kernels") for row in mapped.inferences]


LOOP = [[1, 2, 3, 4]] * 5


def shapes(words: Words) -> list[Recurring]:
    """The distinct words, as which_repeat takes them."""
    numbers: dict[tuple[int, ...], list[int]] = {}
    for number, word in enumerate(words):
        numbers.setdefault(tuple(word), []).append(number)
    return [
        Recurring(np.array(word, np.int64), np.array(places, np.int64), len(places))
        for word, places in numbers.items()
    ]


@pytest.mark.parametrize(
    ("words", "repeated"),
    [
        (LOOP, [True]),
        ([[9], *LOOP], [False, True]),  # a kernel before the loop
        ([[2, 3, 4], *LOOP, [1, 2]], [True, True, True]),  # cut off at both ends
        ([*LOOP, [1, 2, 5, 4], *LOOP], [True, True]),  # one kernel is another
        ([*LOOP, [1, 2, 3, 4] * 6], [True, False]),  # much longer
        ([*LOOP, [7, 8, 9], *LOOP], [True, False]),
        (
            [[1, 2, 3, 4], [*range(20, 80)], [1, 2, 3, 4], [*range(100, 160)], [1, 2, 3, 4]],
            [False, False, False],
        ),  # hardly anything is a repetition
    ],
)
def test_what_comes_once_is_a_repetition_only_if_it_is_like_what_recurs(
    words: Words, repeated: list[bool]
) -> None:
    assert which_repeat(shapes(words)) == repeated


@pytest.mark.parametrize(
    ("words", "repeated"),
    [
        ([[1], [2], [2], [3]], [False, False, False]),
        ([[1, 2, 3], [1, 2, 3]], [False]),  # of six kernels of three kinds half come again easily
        ([[*range(20)]] * 2, [True]),
        ([[1, 2, 3]] * 3, [True]),
        (
            [[1, 2, 3], [1, 2, 4], [1, 2, 3], [1, 2, 4], [1, 2, 3]],
            [True, True],
        ),  # twice, but like what comes three times
    ],
)
def test_what_comes_twice_is_a_repetition_only_if_it_is_too_long_for_chance(
    words: Words, repeated: list[bool]
) -> None:
    assert which_repeat(shapes(words)) == repeated


def test_random_kernels_hardly_ever_hold_a_long_sequence_twice() -> None:
    """A random order of kernels, cut wherever a sequence comes twice, but not three times, has
    repetitions once in a thousand times.
    """
    mix, tried = np.random.default_rng(5), 4000
    orders = [
        mix.integers(0, int(mix.integers(2, 6)), int(mix.integers(6, 40))).tolist()
        for _ in range(tried)
    ]
    believed = sum(
        any(which_repeat(shapes(words))[0] for words in cut_where_something_comes_twice(codes))
        for codes in orders
    )
    assert believed <= tried / 1000


def cut_where_something_comes_twice(codes: list[int]) -> Iterator[Words]:
    """A sequence that comes twice, and what is around it."""
    for size in range(2, len(codes) // 2 + 1):
        first: dict[tuple[int, ...], int] = {}
        for at in range(len(codes) - size + 1):
            before = first.setdefault(tuple(codes[at : at + size]), at)
            if at >= before + size:
                around = [codes[:before], codes[before + size : at], codes[at + size :]]
                if codes[at : at + size] not in around:
                    yield [codes[at : at + size]] * 2 + [word for word in around if word]
                break


def test_two_adjacent_kernels_of_four_are_no_unit_of_work(tmp_path: Path) -> None:
    steps = ["seed", WAIT, "random", "random", WAIT, "gemm", WAIT]
    assert sizes(Program(seed=150).run(*steps).mapped(tmp_path)) == []


def test_a_loop_inside_a_piece_of_work_is_no_unit_of_work(tmp_path: Path) -> None:
    """The host neither waits nor copies in it, and it is not most of what runs; with waits it is
    what the program does over and over.
    """
    once = ["load", WAIT, *["step"] * 6, WAIT, "store", WAIT]
    assert sizes(Program(load=500).run(*once).mapped(tmp_path)) == []
    often = ["load", WAIT, *["step", WAIT] * 6, "store", WAIT]
    (tmp_path / "often").mkdir()
    assert sizes(Program(load=500).run(*often).mapped(tmp_path / "often")) == [1] * 6


def test_a_network_whose_kernels_are_waited_for_is_one_piece_of_work(tmp_path: Path) -> None:
    """The same element-wise kernel of other sizes is other work: nothing comes three times."""
    layers = [
        "embed",
        "permute",
        "relu:64",
        "max",
        "relu:32",
        "max:2",
        "relu:16",
        "concat",
        "linear:8",
        "relu:8",
        "linear:4",
        "relu:4",
    ]
    steps = [step for layer in layers for step in (layer, WAIT)]
    assert sizes(Program().run("upload", "upload2", *steps).mapped(tmp_path)) == []


def test_what_comes_twice_is_most_of_all_that_runs(tmp_path: Path) -> None:
    word = [f"kernel{number}" for number in range(12)]
    assert sizes(Program().run("load", WAIT, *word, WAIT, *word, WAIT).mapped(tmp_path)) == [12, 12]
    (tmp_path / "more").mkdir()
    assert (
        sizes(
            Program(load=200).run("load", WAIT, *word, WAIT, *word, WAIT).mapped(tmp_path / "more")
        )
        == []
    )


def test_small_repetitions_beside_other_work_of_their_process_are_no_unit_of_work(
    tmp_path: Path,
) -> None:
    beside = [step for _ in range(6) for step in ("small", WAIT)]
    program = Program(gemm=90).run(
        "small", WAIT, "first@8", "small", WAIT, *beside, "gemm@8", "small", WAIT
    )
    assert sizes(program.mapped(tmp_path)) == []
    (tmp_path / "alone").mkdir()
    assert sizes(Program().run(*beside).mapped(tmp_path / "alone")) == [1] * 6


def test_one_sequence_on_several_streams_in_turn_comes_as_often_as_on_all(tmp_path: Path) -> None:
    program = Program().run(*[f"add@{stream}" for stream in (1, 2, 3, 4, 1, 2, 3, 4)])
    assert sizes(program.mapped(tmp_path)) == [1] * 8
    (tmp_path / "once").mkdir()
    chunks = Program().run(*[f"add@{stream}" for stream in range(4)])  # of one piece of work
    assert sizes(chunks.mapped(tmp_path / "once")) == []


@given(st.integers(3, 8), st.integers(1, 6))
def test_a_loop_that_the_host_waits_in_is_found_after_any_set_up(count: int, kernels: int) -> None:
    import tempfile

    word = [f"kernel{number}" for number in range(kernels)]
    steps = ["start", "more", "another", WAIT, *[*word, WAIT] * count]
    with tempfile.TemporaryDirectory() as folder:
        assert sizes(Program(start=900).run(*steps).mapped(Path(folder))) == [kernels] * count


# --- turns
# --------------------------------------------------------------------------------------------------


def naive_turns(words: list[int]) -> tuple[int, int, int] | None:
    """Every length, every beginning: the shortest turn that, three times or more, is most of the
    words, where it is longest.
    """
    for size in range(2, len(words) // 3 + 1):
        found = []
        for first in range(len(words)):
            end = first + size
            while end < len(words) and words[end] == words[end - size]:
                end += 1
            found.append((end - first, -first))
        longest, begins = max(found)
        if longest // size >= 3 and 2 * size * (longest // size) > len(words):
            return (
                (-begins, size, longest // size)
                if len(set(words[-begins : -begins + size])) > 1
                else None
            )
    return None


@given(
    st.lists(st.integers(0, 3), max_size=9),
    st.lists(st.integers(0, 3), min_size=2, max_size=7),
    st.integers(2, 6),
    st.lists(st.integers(0, 5), max_size=9),
)
def test_turns_are_those_that_trying_every_length_finds(
    before: list[int], turn: list[int], count: int, behind: list[int]
) -> None:
    words = [*before, *turn * count, *behind]
    assert whole_turns(np.array(words, np.int64)) == naive_turns(words)


def test_an_iteration_that_the_host_waits_in_several_times_is_one_repetition(
    tmp_path: Path,
) -> None:
    """As in a solver of linear equations: products, each waited for, then an update; set-up before,
    a result behind.
    """
    iteration = ["multiply", "dot", WAIT, "update", WAIT, "multiply", "dot", WAIT, "norm", WAIT]
    program = Program().run(*["fill", WAIT] * 4, *iteration * 6, "store", WAIT)
    assert sizes(program.mapped(tmp_path)) == [6] * 6


def test_a_turn_on_several_streams_of_a_thread_is_one_repetition(tmp_path: Path) -> None:
    """As a program that launches two kernels on one stream and the third on another."""
    program = Program().run(*["first@1", "second@1", "third@2"] * 40)
    assert sizes(program.mapped(tmp_path)) == [3] * 40


@pytest.mark.parametrize(
    ("begins", "each_turn", "expected"),
    [
        (100, 300, [4] * 12),  # the second thread begins when the first one is done
        (25, 300, [2] * 24),  # while the first one enqueues
        (60, 120, [2] * 24),
    ],
)
def test_threads_that_wait_for_each_other_make_one_repetition_and_independent_ones_do_not(
    tmp_path: Path, begins: int, each_turn: int, expected: list[int]
) -> None:
    file = NsysFile()
    for turn in range(12):
        for thread in range(2):
            begin = 1_000 + each_turn * turn + begins * thread
            for place in range(2):
                number = 1 + 4 * turn + 2 * thread + place
                at = begin + 60 * place
                file.call("cudaLaunchKernel_v7000", at, at + 20, number, thread=THREAD + thread)
                file.kernel(f"t{thread}k{place}", at + 25, number, stream=7 + thread, took=10)
            end = begin + 85
            waits = 1_000 + 2 * turn + thread
            file.call("cudaStreamSynchronize_v3020", end, end + 10, waits, thread=THREAD + thread)
    trace = read_trace(file.write(tmp_path / "x.sqlite"))
    assert sorted(sizes(map_trace(trace, []))) == expected


def test_two_sequences_in_an_irregular_order_remain_two(tmp_path: Path) -> None:
    one, other = ["a", "b", "c", WAIT], ["a", "d", "e", "f", WAIT]
    order = [one, one, other, one, other, other, other, one, one, other, one, one, other]
    found = sizes(Program().run(*[step for word in order for step in word]).mapped(tmp_path))
    assert found == [len(word) - 1 for word in order]


def test_what_repeats_beside_a_step_that_takes_nearly_all_of_the_time_is_no_step(
    tmp_path: Path,
) -> None:
    step, other = ["a", "b", "c", WAIT], ["log", "sum", WAIT]
    order = [step, step, other, step, other, step, step, step, other, other, step, step, other]
    steps = [one for word in order for one in word]
    assert sizes(Program(b=900).run(*steps).mapped(tmp_path)) == [3] * 8
    (tmp_path / "even").mkdir()
    assert sizes(Program(sum=5).run(*steps).mapped(tmp_path / "even")) == [
        len(word) - 1 for word in order
    ]


def test_kernels_that_are_tried_out_before_the_first_step_are_start_up(tmp_path: Path) -> None:
    """As in a program of JAX: a trial of each candidate between checks, then the steps, which are
    fewer.
    """
    trial = ["RepeatBufferKernelImpl", "gemm", WAIT]
    found = Program().run(*trial * 20, *["gemm", "fusion", WAIT] * 8).mapped(tmp_path).inferences
    assert found.bools("warmup").tolist() == [True] * 20 + [False] * 8
    assert set(found.text("compile_evidence").list()[:20]) == {"kernels that are tried out"}
    (tmp_path / "always").mkdir()
    # nothing follows: it is all that the program does
    always = Program().run(*trial * 20).mapped(tmp_path / "always").inferences
    assert not always.text("compile_evidence").list()[-1]


def test_evaluation_and_training_steps_are_two_kinds(tmp_path: Path) -> None:
    """Both begin with the same forward."""
    forward, backward = ["conv", "relu", "fc", "loss"], ["dloss", "dfc", "drelu", "dconv", "sgd"]
    program = Program()
    for _ in range(10):
        program.run(*forward, *backward, WAIT)
    for _ in range(6):
        program.run(*forward, WAIT)
    mapped = program.mapped(tmp_path)
    assert sizes(mapped) == [9] * 10 + [4] * 6
    assert mapped.inferences.ints("kernel_sequence").tolist() == [0] * 10 + [1] * 6


def test_algorithms_that_a_library_tries_in_the_first_step_are_in_no_step(tmp_path: Path) -> None:
    """As cuDNN does where it may measure which is the fastest."""
    program = Program().run("a1", "a2", "a3", "relu", "b1", "b2", "b3", "pool", WAIT)
    for _ in range(8):
        program.run("a2", "relu", "b3", "pool", WAIT)
    assert sizes(program.mapped(tmp_path)) == [4] * 8


def test_engines_in_turns_remain_inferences_where_names_show_tensorrt(tmp_path: Path) -> None:
    one, other = ["trt_volta_scudnn_128x64_relu_nn_v1", "b", WAIT], ["c", "d", "e", WAIT]
    assert sizes(Program().run(*[*one, *other] * 5).mapped(tmp_path)) == [2, 3] * 5
    (tmp_path / "without").mkdir()
    assert (
        sizes(Program().run(*["a", *one[1:], *other] * 5).mapped(tmp_path / "without")) == [5] * 5
    )


def test_between_a_wait_and_the_next_launch_of_a_repetition_nothing_was_enqueued(
    tmp_path: Path,
) -> None:
    iteration = [
        "multiply",
        "dot",
        WAIT,
        "update",
        WAIT,
        WAIT,
        "multiply",
        "dot",
        WAIT,
        "norm",
        WAIT,
    ]
    mapped = Program().run(*["fill", WAIT] * 4, *iteration * 6).mapped(tmp_path)
    spans, calls = enqueue_spans(mapped.trace, mapped.inferences), mapped.trace.api_calls
    assert sizes(mapped) == [6] * 6
    launch, wait = (calls.take(calls.text("kind").equals(kind)) for kind in ("launch", "sync"))
    begun, waits = launch.ints("start_ns")[4:], wait.ints("start_ns")
    expected: list[list[int]] = []
    for moment, before in zip(begun.tolist(), [*[-1], *begun.tolist()], strict=False):
        if not expected or ((waits > before) & (waits < moment)).any():
            expected.append([moment, moment])
        expected[-1][1] = moment + 2
    assert np.stack([spans.start_ns, spans.end_ns], axis=1).tolist() == expected
    assert len(expected) == 24
    hidden = replace(mapped.trace, api_calls=calls.take(calls.text("kind").equals("sync")))
    assert len(enqueue_spans(hidden, mapped.inferences).thread) == 6  # no launch is in the trace
    known = mapped.inferences.with_columns(INFERENCES, {"engine": np.zeros(6, np.int64)})
    whole = enqueue_spans(mapped.trace, known)
    assert whole.start_ns.tolist() == known.ints("enqueue_start_ns").tolist()


def test_a_thread_that_launches_for_another_enqueues_its_repetitions(tmp_path: Path) -> None:
    """As PyTorch's autograd does, which has no range and no repetition of its own."""
    file, correlation = NsysFile(), 0
    helper = THREAD + 1
    for step in range(10):
        for place in range(8):
            correlation += 1
            file.launch(
                f"{'forward' if place < 4 else 'backward'}_{place}",
                1_000 + 800_000 * step + 50_000 * place,
                correlation,
                thread=THREAD if place < 4 else helper,
                took=10_000,
            )
    mapped = map_trace(read_trace(file.write(tmp_path / "x.sqlite")), [])
    spans = enqueue_spans(mapped.trace, mapped.inferences)
    assert sizes(mapped) == [8] * 10
    for thread in (THREAD, helper):
        mine = spans.thread == thread
        assert (spans.end_ns - spans.start_ns)[mine].tolist() == [150_002] * 10


def test_what_a_search_tried_out_is_no_unit_of_a_program_that_does_more(tmp_path: Path) -> None:
    """As TensorFlow does before a first forward, in which cuDNN's algorithms are tried one by one,
    each between checks of memory; its weights were set at random before.
    """
    program = Program(fft=500, winograd=300)
    program.run(*["random", "scale", WAIT] * 20)
    for algorithm in ("fft", "winograd", "gemm"):
        program.run(*["redzone_checker", WAIT, algorithm, WAIT] * 30)
    program.run("conv1", "relu", "conv2", "relu", "pool", "fc", WAIT)
    assert not len(program.mapped(tmp_path).inferences)


def marked(program: Program, names: list[str], *steps: list[str], thread: int = THREAD) -> None:
    """Runs steps, each in a range of that name."""
    for name, step in zip(names, steps, strict=True):
        begin = program.now - 5
        program.run(*step)
        program.file.range(name, begin, program.now - 5, thread=thread)
        program.now += 10


def test_ranges_mark_the_steps_that_kernels_do_not_show(tmp_path: Path) -> None:
    """Ten runs of one kernel among others that come once, as a test of a fused function has."""
    program = Program().run("random", "cast")
    marked(program, ["run fusion"] * 10, *[["kernel1"]] * 10)
    program.run("mul", "tanh", "mul", "add", "sub", "div", "pow")
    found = program.mapped(tmp_path).inferences
    assert found.ints("kernels").tolist() == [1] * 10


def test_steps_are_whole_where_the_host_waits_in_the_middle_of_some(tmp_path: Path) -> None:
    program = Program()
    forward, backward = ["conv", "relu", "fc", "loss"], ["dloss", "dfc", "drelu", "dconv", "sgd"]
    waits = {0, 1, 4, 5, 7, 11}
    steps = [
        [*forward, WAIT, *backward, "log"] if number in waits else [*forward, *backward]
        for number in range(12)
    ]
    marked(program, [f"iteration {number}" for number in range(12)], *steps)
    found = program.mapped(tmp_path).inferences
    assert found.ints("kernels").tolist() == [9 + (number in waits) for number in range(12)]


def test_ranges_of_layers_do_not_cut_the_step_that_the_kernels_show(tmp_path: Path) -> None:
    program = Program()
    for _ in range(6):
        marked(program, [f"layer {n}" for n in range(4)], *[["gemm", "gelu", "norm"]] * 4)
        program.run("head", WAIT)
    assert sizes(program.mapped(tmp_path)) == [13] * 6


def test_ranges_of_epochs_do_not_join_the_steps_that_the_kernels_show(tmp_path: Path) -> None:
    program = Program()
    marked(
        program, [f"epoch {n}" for n in range(3)], *[["conv", "relu", "fc", "sgd", WAIT] * 10] * 3
    )
    assert sizes(program.mapped(tmp_path)) == [4] * 30


def test_the_exchange_of_gradients_on_another_stream_is_no_step(tmp_path: Path) -> None:
    program = Program(conv=900, dconv=900, reduce=20)
    for _ in range(8):
        program.run("conv", "relu", "dconv", WAIT)
        program.run(*["cat@9", "reduce@9", "split@9", WAIT] * 3)
    assert sizes(program.mapped(tmp_path)) == [3] * 8


def test_a_long_first_part_with_other_kernels_is_no_warm_up(tmp_path: Path) -> None:
    """As where nsys loses the calls of one thread from some moment on."""
    program = Program(backward=900)
    program.run(*["conv", "backward", "sgd", WAIT] * 12, *["conv", "sgd", "log", WAIT] * 13)
    found = program.mapped(tmp_path).inferences
    assert not found.bools("warmup")[1:12].any()


def test_steps_between_a_set_up_and_a_summary_repeat_where_each_copies(tmp_path: Path) -> None:
    """As a solver that waits after each kernel, to find errors; copies tell its steps from the
    blocks of a network, which multiply matrices and lie between others that do as well.
    """
    step = ["flux", "matmul", "sweep x", "sweep y", "halo", "viscosity", "field", "step size"]

    def program(*, copies: bool) -> Program:
        made = Program()
        for name in ("mesh", "state", "halo"):
            made.run(name, WAIT)
        for _ in range(9):
            for name in step:
                made.run(name, WAIT)
            if copies:
                made.correlation += 1
                made.file.call("cudaMemcpy_v3020", made.now, made.now + 5, made.correlation)
                made.now += 10
        for name in ("matmul", "summary", "last"):
            made.run(name, WAIT)
        return made

    for number, (copies, expected) in enumerate(((True, [8] * 9), (False, []))):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert sizes(program(copies=copies).mapped(folder)) == expected


def test_a_longer_enqueue_that_the_gpu_hides_is_no_warm_up(tmp_path: Path) -> None:
    """Steps of 2 us of GPU work, whose first ones take 30 ns longer to enqueue than the others."""
    program = Program(fit=2000)
    for number in range(12):
        program.run("seed")
        program.now += 30 if number < 4 else 0
        program.run("fit", WAIT)
        program.now += 2000
    assert not program.mapped(tmp_path).inferences.bools("warmup").any()


def test_a_pause_between_two_runs_is_in_the_time_of_no_repetition(tmp_path: Path) -> None:
    """Of one thread that launches for two GPUs in turn, as often before the pause as after it."""
    program = Program()
    for number in range(24):
        program.now += 50_000 if number == 12 else 0
        for gpu in (0, 1):
            program.run(f"multiply@{gpu}")
            program.file.rows["CUPTI_ACTIVITY_KIND_KERNEL"][-1]["deviceId"] = gpu
        program.run(WAIT)
        program.now += 400
    found = program.mapped(tmp_path).inferences
    after = found.ints("start_ns") > found.ints("start_ns").min() + 50_000
    first = [int(np.flatnonzero(after & (found.ints("device") == gpu))[0]) for gpu in (0, 1)]
    assert found.bools("warmup")[first].all()
    assert found.bools("warmup")[after].sum() == 2


def test_a_repetition_in_whose_middle_the_host_waited_once_is_one(tmp_path: Path) -> None:
    program = Program().run("seed", WAIT, "fit", WAIT, *["seed", "fit", WAIT] * 8)
    assert sizes(program.mapped(tmp_path)) == [2] * 9
