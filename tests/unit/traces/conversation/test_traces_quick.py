"""A quicker way to make a value makes the same values."""

import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from traces.fast_dataclass import with_fast_init
from traces.model import Chunk, Exchange, Request, Response


@dataclass(frozen=True, slots=True, kw_only=True)
class Slow:
    one: int
    two: str = "b"
    three: tuple[int, ...] = ()


@with_fast_init
@dataclass(frozen=True, slots=True, kw_only=True)
class Swift:
    one: int
    two: str = "b"
    three: tuple[int, ...] = ()


def test_a_quick_value_is_what_it_would_have_been() -> None:
    assert inspect.signature(Swift) == inspect.signature(Slow)
    assert repr(Swift(one=1, three=(2,))) == repr(Slow(one=1, three=(2,))).replace("Slow", "Swift")
    assert replace(Swift(one=1), two="c") == Swift(one=1, two="c") != Swift(one=1)
    assert hash(Swift(one=1)) == hash(Swift(one=1, two="b", three=()))
    assert pickle.loads(pickle.dumps(Swift(one=1))) == Swift(one=1)


@pytest.mark.parametrize("wrong", [{}, {"one": 1, "four": 4}])
def test_a_quick_value_refuses_what_it_would_have_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Swift(**wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Swift(1)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Chunk, Exchange, Request, Response])
def test_values_stay_frozen(kind: type[object]) -> None:
    request = Request(method="GET", url="http://a/")
    given = {
        Chunk: Chunk(at=0.0, data=b""),
        Exchange: Exchange(seq=1, request=request),
        Request: request,
        Response: Response(status=200),
    }
    value = given[kind]
    for name in kind.__slots__:  # type: ignore[attr-defined]
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, None)


def test_a_default_that_is_made_anew_is_refused() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Listed:
        some: list[int] = field(default_factory=list)

    with pytest.raises(TypeError, match="Listed.some"):
        with_fast_init(Listed)
