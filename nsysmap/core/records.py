"""`dataclass`, whose constructor is compiled once several objects of the class were made.

The standard library's decorator compiles up to six methods a class.  A command imports some three
hundred frozen dataclasses, of which it makes objects of two thirds and compares or prints hardly
any, and compiling all their methods took an eighth of the first screen's time.  This decorator
calls the standard one for the fields, so that `fields`, `replace` and `asdict` work, compiles no
constructor for a class of which a command makes a few objects, and shares the other methods between
all classes.  A type checker sees the standard decorator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache, partial, wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["dataclass", "kept", "replaced"]

Of = TypeVar("Of")
Found = TypeVar("Found")

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(class_=None, /, *, frozen=False, eq=True):
        """Make the class a dataclass, as the standard decorator with these options does."""
        if class_ is None:
            return lambda class_: dataclass(class_, frozen=frozen, eq=eq)
        class_.__doc__ = class_.__doc__ or class_.__name__  # else the signature is worked out
        dataclasses.dataclass(init=False, repr=False, eq=False)(class_)
        methods = {"__init__": _Constructor(class_), "__repr__": _described}
        if eq:
            methods |= {"__eq__": _is_equal, "__hash__": _hash_of if frozen else None}
        if frozen:
            methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        for name, method in methods.items():
            if name not in class_.__dict__:
                setattr(class_, name, method)
        return class_


def kept(function: Callable[[Of], Found]) -> Callable[[Of], Found]:
    """A function of one frozen record which keeps what it found in that record, as a cached
    property does: for what several modules above the record's own ask of it in turn.
    """
    name = f"_kept_{function.__module__}_{function.__name__}"

    @wraps(function)
    def asked(record: Of) -> Found:
        held = record.__dict__
        if name in held:
            return held[name]  # type: ignore[no-any-return]  # put there below
        found = held[name] = function(record)
        return found

    return asked


_FEW = 4
"""Objects of a class that are made without a compiled constructor: to compile one takes as long as
to make a dozen so, and half of the classes of which a command makes any make no more than these.
"""


def replaced(record: Of, **values: object) -> Of:
    """The record with other values of these fields, as `dataclasses.replace` makes it, where the
    class works nothing out as one is made: without a call of its constructor.
    """
    class_: Any = type(record)
    made: Of = object.__new__(class_)
    held = record.__dict__
    made.__dict__.update({name: held[name] for name in _names(class_)})
    made.__dict__.update(values)
    return made


@cache
def _names(class_: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(class_))


class _Constructor:
    """`__init__` of a class until a few objects are made: it then puts the compiled one in its
    place.
    """

    def __init__(self, class_: type) -> None:
        self.class_, self.made = class_, 0

    def __get__(self, instance: object, _class: type | None = None) -> Callable[..., None]:
        if instance is not None and self.made < _FEW:
            self.made += 1
            return partial(self._fill, instance)
        method: Any = _constructor(self.class_)
        type.__setattr__(self.class_, "__init__", method)
        bound: Callable[..., None] = method if instance is None else method.__get__(instance)
        return bound

    def _fill(self, instance: Any, /, *given: object, **named: object) -> None:
        """What the compiled constructor does; arguments that do not fit are left to that one,
        which says what is wrong with them.
        """
        fields = dataclasses.fields(self.class_)
        parameters = [field.name for field in fields if field.init]
        by_place = dict(zip(parameters, given, strict=False))
        values = {**named, **by_place}
        fits = len(values) == len(given) + len(named) and values.keys() <= set(parameters)
        for field in fields:
            if field.init and field.name in values:
                value = values[field.name]
            elif field.default_factory is not dataclasses.MISSING:
                value = field.default_factory()
            elif not field.init:
                continue  # __post_init__ sets it
            else:
                value = field.default
                fits = fits and value is not dataclasses.MISSING
            instance.__dict__[field.name] = value
        if not fits:
            _constructor(self.class_)(instance, *given, **named)
        elif hasattr(self.class_, "__post_init__"):
            instance.__post_init__()


def _constructor(class_: Any) -> Callable[..., None]:
    """Compile `__init__` as the standard decorator does: a parameter for each field, and
    `__post_init__` called at the end.
    """
    names: dict[str, Any] = {"_set": object.__setattr__, "_MISSING": dataclasses.MISSING}
    parameters, lines = ["self"], []
    for field in dataclasses.fields(class_):
        name, value = field.name, field.name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}()"
            if field.init:
                parameters.append(f"{name}=_MISSING")
                value = f"{value} if {name} is _MISSING else {name}"
        elif not field.init:
            continue  # __post_init__ sets it
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(class_, "__post_init__"):
        lines.append("self.__post_init__()")
    body = "\n ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n {body}", names)
    method: Callable[..., None] = names["__init__"]
    method.__qualname__ = f"{class_.__qualname__}.__init__"
    method.__annotations__ = {
        **{field.name: field.type for field in dataclasses.fields(class_) if field.init},
        "return": None,
    }
    return method


@cache
def _values(class_: Any) -> Callable[[object], object]:
    """The function that returns the values by which objects of the class are compared."""
    names = [field.name for field in dataclasses.fields(class_) if field.compare]
    return attrgetter(*names) if names else lambda _: ()


def _is_equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    class_: Any = type(other)
    values = _values(class_)
    return values(self) == values(other)


def _hash_of(self: Any) -> int:
    class_: Any = type(self)
    return hash(_values(class_)(self))


def _described(self: Any) -> str:
    told = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self))
    return f"{self.__class__.__qualname__}({', '.join(told)})"


def _refuse_to_set(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
