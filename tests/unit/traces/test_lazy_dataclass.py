"""Whoever uses a lazy dataclass sees what `dataclasses.dataclass` makes of the same class."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import partial
from typing import Any, ClassVar, cast

import pytest

from traces.lazy_dataclass import dataclass, lazy_dataclass
from traces.model import Chunk, Exchange, Request, Response

type Classes = dict[str, Any]


def define(decorate: Callable[..., Any]) -> Classes:
    """The same classes by `dataclasses.dataclass` or by the lazy one."""

    @decorate(frozen=True, slots=True, kw_only=True)
    class Named:
        one: int
        two: str = "b"
        listed: list[int] = field(default_factory=list, compare=False)
        fixed: int = field(default=3, init=False, repr=False)
        shared: ClassVar[int] = 7

    @decorate(frozen=True, slots=True)
    class Placed[T]:
        item: T
        later: int = field(default=0, kw_only=True)
        code: int = field(default=1, hash=False)

        def twice(self) -> int:
            return 2 * self.later

    @decorate(slots=True)
    class Open:
        x: int
        made: list[int] = field(default_factory=list, init=False)
        y: int = 2

        def __post_init__(self) -> None:
            self.y += 1

    @decorate(slots=True)
    class Wider(Open):
        z: int = 5

    @decorate(frozen=True, slots=True, kw_only=True)
    class Deeper(Named):
        three: float = float("nan")

    @decorate(slots=True, eq=False)
    class ByIdentity:
        x: int = 1

    @decorate(frozen=True, slots=True)
    class Alike:
        x: int
        set_x: int = 1
        make_x: list[int] = field(default_factory=list)
        default_x: int = 2

    @decorate(frozen=True, slots=True)
    class Empty:
        pass

    return {k: v for k, v in locals().items() if isinstance(v, type)}


PLAIN, LAZY = define(dataclasses.dataclass), define(lazy_dataclass)
ARGUMENTS: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
    ("Named", (), {"one": 1}),
    ("Named", (), {"one": 1, "two": "c", "listed": [4]}),
    ("Named", (), {}),
    ("Named", (1,), {}),
    ("Named", (), {"one": 1, "fixed": 4}),
    ("Placed", ("a",), {}),
    ("Placed", ([],), {"later": 4}),
    ("Placed", ("a", 2, 3), {}),
    ("Open", (1,), {}),
    ("Open", (1, 4), {}),
    ("Open", (), {"x": 1, "y": 8, "no": 9}),
    ("Wider", (1, 2, 3), {}),
    ("Deeper", (), {"one": 1, "three": 2.0}),
    ("Deeper", (), {"one": 1}),
    ("ByIdentity", (), {}),
    ("Alike", (7, 8, [9]), {}),
    ("Empty", (), {}),
)


def behaviour(kinds: Classes, name: str, given: Any, named: Any) -> list[object]:
    """What can be seen of a value, errors included."""

    def attempt(action: Callable[[], object]) -> object:
        try:
            return action()
        except Exception as error:
            return type(error), str(error)

    kind = kinds[name]
    value, other = attempt(lambda: kind(*given, **named)), attempt(lambda: kind(*given, **named))
    if not isinstance(value, kind):
        return [value]
    value, other = cast(Any, value), cast(Any, other)
    return [
        repr(value).replace("0x", "")[:40],
        value == other,
        value != other,
        value == 3,
        copy.copy(value) == value,
        attempt(lambda: type(hash(value))),
        attempt(lambda: hash(value) == hash(other)),
        asdict(value) == asdict(other),
        attempt(lambda: repr(replace(value, **named))),
        attempt(lambda: repr(copy.replace(value, **named))),
        [
            (x.name, str(x.type), x.default, x.init, x.compare, x.kw_only)
            for x in fields(kind)
            if x.name != "three"
        ],
        kind.__match_args__,
        kind.__slots__,
        kind.__qualname__,
        *(attempt(partial(setattr, value, x.name, 1)) for x in fields(kind)),
        *(attempt(partial(delattr, value, x.name)) for x in fields(kind)),
    ]


@pytest.mark.parametrize(("name", "given", "named"), ARGUMENTS)
def test_a_lazy_class_behaves_as_a_dataclass(name: str, given: Any, named: Any) -> None:
    assert behaviour(LAZY, name, given, named) == behaviour(PLAIN, name, given, named)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_its_signature_is_that_of_a_dataclass(name: str) -> None:
    lazy, plain = (inspect.signature(kinds[name]) for kinds in (LAZY, PLAIN))
    assert [(p.name, p.kind, str(p.annotation)) for p in lazy.parameters.values()] == [
        (p.name, p.kind, str(p.annotation)) for p in plain.parameters.values()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    one: int
    two: tuple[int, ...] = ()


Open = LAZY["Open"]


def test_a_value_is_pickled_and_matched() -> None:
    assert pickle.loads(pickle.dumps(Kept(one=1))) == Kept(one=1)
    assert dataclasses.is_dataclass(Kept)
    match LAZY["Open"](1):
        case Open(x, y):
            assert (x, y) == (1, 3)


def test_nothing_is_generated_before_it_is_used() -> None:
    @dataclass(frozen=True, slots=True)
    class Unused:
        x: int

    def is_generated(name: str) -> bool:
        return inspect.isfunction(vars(Unused)[name])

    assert not is_generated("__init__")
    value = Unused(1)
    assert is_generated("__init__")
    assert not is_generated("__eq__")
    assert value == Unused(1)
    assert is_generated("__eq__")
    assert not is_generated("__hash__")


def test_threads_generate_a_method_once() -> None:
    for _ in range(20):

        @dataclass(frozen=True, slots=True)
        class Raced:
            x: int
            y: tuple[int, ...] = ()

        with ThreadPoolExecutor(8) as pool:
            values = list(pool.map(Raced, range(64)))
        assert [each.x for each in values] == list(range(64))


def test_a_class_with_methods_of_its_own_keeps_them() -> None:
    @dataclass(frozen=True, slots=True)
    class Quiet:
        secret: str

        def __repr__(self) -> str:
            return "Quiet()"

    assert repr(Quiet("x")) == "Quiet()"
    assert Quiet("x") == Quiet("x")


@pytest.mark.parametrize("kind", [Chunk, Exchange, Request, Response])
def test_values_stay_frozen(kind: Any) -> None:
    request = Request(method="GET", url="http://a/")
    given: dict[object, object] = {
        Chunk: Chunk(at=0.0, data=b""),
        Exchange: Exchange(seq=1, request=request),
        Request: request,
        Response: Response(status=200),
    }
    for name in kind.__slots__:
        with pytest.raises(FrozenInstanceError):
            setattr(given[kind], name, None)
