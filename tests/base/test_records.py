"""Our dataclasses behave as the standard library's."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field

import pytest

from nsysmap.core import records


@records.dataclass(frozen=True)
class Point:
    """A place."""

    across: int
    down: int = 2
    names: list[str] = field(default_factory=list)


@records.dataclass(frozen=True)
class Placed(Point):
    what: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "what", f"{self.across} by {self.down}")


@records.dataclass
class Counter:
    count: int = 0


@records.dataclass(frozen=True, eq=False)
class Finding:
    text: str


@records.dataclass(frozen=True)
class Empty:
    pass


@dataclasses.dataclass(frozen=True)
class StandardPoint:
    across: int
    down: int = 2
    names: list[str] = field(default_factory=list)


def test_the_constructor_takes_fields_by_place_and_by_name_and_fills_in_defaults() -> None:
    assert vars(Point(1)) == {"across": 1, "down": 2, "names": []}
    assert vars(Point(1, names=["a"])) == {"across": 1, "down": 2, "names": ["a"]}
    assert Point(1).names is not Point(1).names
    assert vars(Empty()) == {}
    with pytest.raises(TypeError, match="argument"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="argument"):
        Point(1, 2, [], 4)  # type: ignore[call-arg]


def test_the_first_objects_of_a_class_are_made_as_those_after_the_constructor_is_compiled() -> None:
    @records.dataclass(frozen=True)
    class Seen(Point):
        where: str = "here"
        length: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.where))

    made = [Seen(1, names=["a"], where="there") for _ in range(12)]
    assert inspect.isfunction(vars(Seen)["__init__"])
    assert {repr(one) for one in made} == {repr(made[0])}
    assert list(vars(made[0])) == list(vars(made[-1]))

    @records.dataclass(frozen=True)
    class Wrong:
        across: int
        down: int = 2

    for _ in range(12):
        for given, named in (((), {}), ((1, 2, 3), {}), ((1,), {"across": 1}), ((1,), {"up": 1})):
            with pytest.raises(TypeError, match=r"__init__\(\)"):
                Wrong(*given, **named)


def test_a_field_that_the_constructor_does_not_take_is_set_afterwards() -> None:
    placed = Placed(3, 4)
    assert placed.what == "3 by 4"
    assert repr(placed) == "Placed(across=3, down=4, names=[], what='3 by 4')"
    with pytest.raises(TypeError):
        Placed(3, what="else")  # type: ignore[call-arg]


def test_objects_of_one_class_with_the_same_values_are_equal() -> None:
    assert Point(1) == Point(1, 2, [])
    assert Point(1) != Point(2)
    assert Point(1) != StandardPoint(1)  # type: ignore[comparison-overlap]
    assert Placed(1) != Point(1)
    assert Empty() == Empty()
    assert Finding("a") != Finding("a")
    assert Counter(1) == Counter(1)


def test_frozen_objects_have_a_hash_and_others_none() -> None:
    assert hash(Placed(1, 2, ())) == hash(Placed(1, 2, ()))  # type: ignore[arg-type]
    assert hash(Empty()) == hash(Empty())
    assert len({Finding("a"), Finding("a")}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Counter(1))


def test_nothing_of_a_frozen_object_can_be_set_or_deleted() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.across = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del point.across
    with pytest.raises(dataclasses.FrozenInstanceError):
        Placed(1).other = 2  # type: ignore[attr-defined]
    counter = Counter()
    counter.count += 1
    assert counter.count == 1


def test_the_standard_functions_work_on_them() -> None:
    point = Point(1, 3)
    assert [one.name for one in dataclasses.fields(Point)] == ["across", "down", "names"]
    assert dataclasses.replace(point, down=5) == Point(1, 5)
    assert dataclasses.asdict(point) == {"across": 1, "down": 3, "names": []}
    assert dataclasses.is_dataclass(Placed)
    assert pickle.loads(pickle.dumps(point)) == copy.deepcopy(point) == point
    match point:
        case Point(across, down):
            assert (across, down) == (1, 3)


def test_the_signature_is_known_before_an_object_is_made() -> None:
    @records.dataclass(frozen=True)
    class New:
        across: int
        down: int = 2

    assert list(inspect.signature(New).parameters) == ["across", "down"]
    assert inspect.get_annotations(New.__init__) == {
        "across": "int",
        "down": "int",
        "return": None,
    }


def test_a_class_can_write_a_method_itself() -> None:
    @records.dataclass(frozen=True)
    class Told:
        text: str

        def __repr__(self) -> str:
            return self.text

    assert repr(Told("so")) == "so"
    assert repr(Point(1)) == repr(StandardPoint(1)).removeprefix("Standard")
