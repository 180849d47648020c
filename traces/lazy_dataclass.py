"""Dataclasses whose methods are generated when they are first used.

`dataclasses.dataclass` compiles all methods of a class when its module is imported, which takes
0.5 to 1 ms of CPU. A command imports 150 classes and creates values of a third of them, so that
took a quarter of its start. Here a class with slots gets descriptors instead, and each is replaced
by its method when it is first used. `dataclasses.fields`, `replace`, `copy`, `pickle` and `match`
work as with any dataclass.

`__init__` of a frozen class is faster, too: that of `dataclass` sets each field by name with
`object.__setattr__`, since the class's own raises; this one calls the slots. Each replayed request
creates eight values of six fields, which took a sixth of its time.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import KW_ONLY, MISSING, Field, FrozenInstanceError, InitVar, fields
from reprlib import recursive_repr
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, get_origin

OPTIONS = frozenset({"frozen", "slots", "kw_only", "eq"})
OWN_METHODS = frozenset(
    {
        "__init__",
        "__repr__",
        "__eq__",
        "__hash__",
        "__setattr__",
        "__delattr__",
        "__getstate__",
        "__setstate__",
        "__replace__",
        "__match_args__",
    }
)
"""A class that defines one of these is left to `dataclasses.dataclass`."""
FACTS = ("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__replace__")
"""Attributes that `dataclasses.dataclass` makes without generating code."""
_generating = RLock()


class _Ungenerated:
    """A class attribute that is generated when it is first used."""

    __slots__ = ("_generate", "_name")

    def __init__(self, name: str, generate: Callable[[str], object]) -> None:
        self._name, self._generate = name, generate

    def __get__(self, instance: object, owner: type) -> Any:
        with _generating:
            made: Any = self._generate(self._name)
        return made.__get__(instance, owner) if callable(made) else made


def lazy_dataclass(cls: type | None = None, /, **options: bool) -> Any:
    """Decorate as `dataclasses.dataclass` does; what cannot be lazy is generated at once."""

    def decorate(cls: type) -> type:
        if _can_be_lazy(cls, options):
            return _make_lazy_dataclass(cls, options)
        return dataclasses.dataclass(cls, **options)

    return decorate if cls is None else decorate(cls)


def _can_be_lazy(cls: type, options: dict[str, bool]) -> bool:
    """Whether it has slots, as its bases have, and its methods are those of a dataclass."""
    return (
        options.get("slots", False)
        and options.keys() <= OPTIONS
        and not OWN_METHODS & vars(cls).keys()
        and not any(
            kind in (KW_ONLY, InitVar) or isinstance(kind, InitVar | str)
            for kind in cls.__annotations__.values()
        )
        and all("__slots__" in vars(b) for b in cls.__mro__ if "__dataclass_fields__" in vars(b))
    )


def _make_lazy_dataclass(plain: type, options: dict[str, bool]) -> type:
    """Return the class again, with slots and with methods that are not generated yet."""
    frozen, eq = options.get("frozen", False), options.get("eq", True)

    def generate(name: str) -> object:
        if isinstance(vars(made)["__dataclass_fields__"], _Ungenerated):
            _add_facts(plain, made, options)
        if isinstance(vars(made)[name], _Ungenerated):
            setattr(made, name, _METHODS[name](made, frozen))
        return vars(made)[name]

    names = ["__init__", "__repr__", *FACTS]
    names += (["__eq__", "__hash__"] if frozen else ["__eq__"]) if eq else []
    slots = _list_own_slots(plain)
    gone = {*slots, "__dict__", "__weakref__"}
    namespace = {name: value for name, value in vars(plain).items() if name not in gone}
    namespace |= {name: _Ungenerated(name, generate) for name in names}
    namespace |= {"__slots__": slots, "__qualname__": plain.__qualname__}
    made = type(plain)(plain.__name__, plain.__bases__, namespace)
    if frozen:
        _freeze(made)
    return made


def _list_own_slots(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of this class that no base has as slots."""
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    return tuple(
        name
        for name, kind in vars(cls).get("__annotations__", {}).items()
        if name not in inherited and ClassVar not in (kind, get_origin(kind))
    )


def _add_facts(plain: type, made: type, options: dict[str, bool]) -> None:
    """Have `dataclass` find the fields of the plain class, and move them to the other."""
    plain.__doc__ = plain.__name__  # without one, `dataclass` writes it from the signature
    inherits = any("__dataclass_fields__" in vars(base) for base in plain.__mro__[1:])
    frozen = inherits and options.get("frozen", False)  # which generates code, and has to fit bases
    facts: type = dataclasses.dataclass(
        plain,
        init=False,
        repr=False,
        eq=False,
        frozen=frozen,
        kw_only=options.get("kw_only", False),
    )
    vars(facts)["__dataclass_params__"].frozen = options.get("frozen", False)
    for name in FACTS:
        setattr(made, name, vars(facts)[name])


def _generate_method(cls: type, head: str, lines: list[str], names: dict[str, object]) -> Any:
    name = head.partition("(")[0]
    exec(f"def {head}:\n" + "".join(f"    {line}\n" for line in lines or ["pass"]), names)
    method: Any = names[name]
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    method.__module__ = cls.__module__
    return method


def _generate_init(cls: type, frozen: bool) -> object:
    names: dict[str, object] = {"MISSING": MISSING}
    arguments: dict[bool, list[str]] = {False: [], True: []}
    lines = list[str]()
    for each in _list_fields(cls):
        names[f"__set_{each.name}__"] = getattr(cls, each.name).__set__
        names[f"__default_{each.name}__"] = each.default
        names[f"__make_{each.name}__"] = each.default_factory
        if each.init:
            arguments[bool(each.kw_only)].append(each.name + _default_of(each))
        if value := _initial_value_of(each):
            place = f"__set_{each.name}__(self, {value})"
            lines.append(place if frozen else f"self.{each.name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    keywords = ["*", *arguments[True]] if arguments[True] else []
    head = f"__init__({', '.join(['self', *arguments[False], *keywords])})"
    method = _generate_method(cls, head, lines, names)
    method.__annotations__ = {x.name: x.type for x in _list_fields(cls) if x.init}
    method.__annotations__["return"] = None
    return method


def _default_of(field: Field[Any]) -> str:
    """Return the default of an argument of `__init__` in source code."""
    if field.default_factory is not MISSING:
        return "=MISSING"
    return "" if field.default is MISSING else f"=__default_{field.name}__"


def _initial_value_of(field: Field[Any]) -> str | None:
    """Return what `__init__` sets the field to, in source code; None if it leaves it unset."""
    name, is_made = field.name, field.default_factory is not MISSING
    if field.init:
        return f"__make_{name}__() if {name} is MISSING else {name}" if is_made else name
    if is_made:
        return f"__make_{name}__()"
    return None if field.default is MISSING else f"__default_{name}__"


def _generate_repr(cls: type, frozen: bool) -> object:
    values = ", ".join(f"{x.name}={{self.{x.name}!r}}" for x in _list_fields(cls) if x.repr)
    line = f'return f"{{self.__class__.__qualname__}}({values})"'
    return recursive_repr()(_generate_method(cls, "__repr__(self)", [line], {}))


def _generate_eq(cls: type, frozen: bool) -> object:
    terms = [f"self.{x.name}==other.{x.name}" for x in _list_fields(cls) if x.compare]
    lines = ["if self is other:", "    return True", "if other.__class__ is self.__class__:"]
    lines += [f"    return {' and '.join(terms) or 'True'}", "return NotImplemented"]
    return _generate_method(cls, "__eq__(self, other)", lines, {})


def _generate_hash(cls: type, frozen: bool) -> object:
    hashed = [
        f"self.{x.name}," for x in _list_fields(cls) if (x.compare if x.hash is None else x.hash)
    ]
    return _generate_method(cls, "__hash__(self)", [f"return hash(({' '.join(hashed)}))"], {})


_METHODS: dict[str, Callable[[type, bool], object]] = {
    "__init__": _generate_init,
    "__repr__": _generate_repr,
    "__eq__": _generate_eq,
    "__hash__": _generate_hash,
}


def _list_fields(cls: Any) -> tuple[Field[Any], ...]:
    return fields(cls)


def _freeze(cls: Any) -> None:
    """Refuse assignments as `dataclass` does, and let `pickle` set the fields nevertheless."""

    def set_attribute(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: object, name: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__setattr__, cls.__delattr__ = set_attribute, delete_attribute
    cls.__getstate__, cls.__setstate__ = _get_state, _set_state


def _get_state(self: Any) -> list[object]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = lazy_dataclass
