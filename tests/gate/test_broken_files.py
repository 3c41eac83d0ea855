"""A budget, ignore file or baseline that is broken or out of any measure is an error of one line,
and never a limit that holds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmap.comparison.gate.baseline import read_baseline
from nsysmap.comparison.gate.budget import read_budget
from nsysmap.comparison.gate.ignores import read_ignores
from nsysmap.core.errors import NsysmapError

DIGITS = "9" * 6000
BROKEN = {
    "empty": b"",
    "binary": bytes(range(256)) * 20,
    "cut": b"[time]\nper",
    "deep": b"a = " + b"[" * 50_000,
    "dotted": b".".join([b"a"] * 50_000) + b" = 1",
    "digits": b"[findings]\nwarning = " + DIGITS.encode(),
    "large": b"# \n" * 500_000,
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_budget_or_ignore_file_is_an_error_of_one_line(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_bytes(BROKEN[name])
    for read in (read_budget, read_ignores, read_baseline):
        with pytest.raises(NsysmapError) as error:
            read(path)
        assert "\n" not in str(error.value)
        assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        f'[time]\nper_inference = "{DIGITS} us"',
        f"[findings]\nwarning = {'9' * 400}",
        "[layers]\na = -1",
    ],
)
def test_a_limit_that_nothing_can_reach_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text(text)
    with pytest.raises(NsysmapError, match="is not a "):
        read_budget(tmp_path / "budget.toml")


MEAN = '{"value": 1, "error": 1, "freedom": 1, "count": 1, "effective": 1, "drift": 0}'
BASELINE = (
    '{"schema": "nsysmap/baseline/1", "source": "a", "gpu": null, "tensorrt_version": null,'
    f' "cuda_graph": false, "profiled": "", "time": {MEAN}, "recorded": {MEAN}, "idle": {{"host":'
    ' 1}, "layers": {}, "mapped": 1, "findings": {"a": 1}}'
)


@pytest.mark.parametrize("at", ['"value": 1', '"count": 1', '"mapped": 1', '"host": 1', '"a": 1'])
@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", "NaN", "Infinity", "9" * 400, "9" * 6000, '"x"']
)
def test_a_baseline_that_nothing_could_be_worse_than_is_an_error(
    at: str, number: str, tmp_path: Path
) -> None:
    path = tmp_path / "base.json"
    path.write_text(BASELINE)
    assert read_baseline(path).source == "a"
    path.write_text(BASELINE.replace(at, at[:-1] + number, 1))
    if (at, len(number)) == ('"a": 1', 400):
        pytest.skip("a whole number of 400 digits is one")
    with pytest.raises(NsysmapError, match=r"not a baseline|was edited"):
        read_baseline(path)


@pytest.mark.parametrize(
    "at", ['"value": 1', '"error": 1', '"count": 1', '"effective": 1', '"drift": 0', '"a": 1']
)
def test_a_baseline_of_less_than_nothing_is_an_error(at: str, tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    path.write_text(BASELINE.replace(at, at[:-1] + "-5", 1))
    with pytest.raises(NsysmapError, match="was edited"):
        read_baseline(path)


@pytest.mark.parametrize("freedom", ["0", "-3", "0.5"])
def test_a_baseline_whose_error_rests_on_nothing_is_an_error(freedom: str, tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    path.write_text(BASELINE.replace('"freedom": 1', f'"freedom": {freedom}', 1))
    with pytest.raises(NsysmapError, match="was edited"):
        read_baseline(path)
    # too few values for an error
    path.write_text(BASELINE.replace('"error": 1, "freedom": 1', '"error": null, "freedom": 0'))
    assert read_baseline(path).time.freedom == 0


def test_a_number_of_thousands_of_digits_is_called_that(tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_bytes(BROKEN["digits"])
    with pytest.raises(NsysmapError, match="is too long"):
        read_budget(tmp_path / "budget.toml")
