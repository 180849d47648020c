"""Draw expressions that are always defined, whatever the values of their variables."""

from random import Random

from scenarios.pipeline.compiler.programs.nodes import (
    LARGEST,
    Binary,
    Call,
    Expression,
    Number,
    Parameter,
    Place,
    Unary,
)
from scenarios.pipeline.compiler.programs.scope import Array, KnownFunction, Scope

COMPARISONS = ("<", ">", "<=", ">=", "==", "!=")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCXYZ0123456789+-*/<>=.,:;!?()[]{}#@_&|^%~"
_ESCAPES = {"\\n": 10, "\\t": 9, "\\\\": 92, "\\'": 39, '\\"': 34, "\\0": 0}
_KINDS = {
    "sum": 10,
    "product": 3,
    "bits": 2,
    "shift": 2,
    "quotient": 3,
    "signed": 1,
    "truth": 2,
    "unary": 2,
    "call": 4,
}


class ExpressionWriter:
    """Draws expressions of the kinds that a program has."""

    def __init__(self, rng: Random, features: frozenset[str]) -> None:
        self.rng, self.features = rng, features
        self._kinds = [kind for kind in _KINDS if kind in features or kind == "sum"]
        self._weights = [_KINDS[kind] for kind in self._kinds]

    def draw(self, scope: Scope, known: list[KnownFunction], depth: int) -> Expression:
        """Return an expression of at most `depth` levels, which changes nothing."""
        if depth == 0 or self.rng.random() < 0.15:
            return self.draw_leaf(scope, known)
        [kind] = self.rng.choices(self._kinds, self._weights)
        left = self._draw_varying(scope, known, depth - 1)
        match kind:
            case "product":
                return self._join("*", left, self.draw(scope, known, depth - 1))
            case "bits":
                return self._join("&|^", left, self.draw(scope, known, depth - 1))
            case "shift":
                return Binary(self.rng.choice(("<<", ">>")), left, self.draw_number(1, 7))
            case "quotient" | "signed":
                return self._draw_quotient(left, signed=kind == "signed")
            case "truth":
                return self.draw_test(scope, known, depth - 1)
            case "unary":
                return Unary(self.rng.choice("--~!"), left)
            case "call" if pure := self.list_pure(known, scope):
                return self.draw_call(self.rng.choice(pure), scope, known)
            case _:
                return self._join("+-", left, self.draw(scope, known, depth - 1))

    def _join(self, signs: str, left: Expression, right: Expression) -> Binary:
        """Join two operands, which are not the same: `x - x` would be a number in disguise."""
        other = self.draw_number(2, 99) if left == right else right
        return Binary(self.rng.choice(signs), left, other)

    def _draw_varying(self, scope: Scope, known: list[KnownFunction], depth: int) -> Expression:
        """Return an expression that is no number, if there is a variable."""
        found = self.draw(scope, known, depth)
        readable = scope.list_readable()
        return Place(self.rng.choice(readable)) if isinstance(found, Number) and readable else found

    def draw_leaf(self, scope: Scope, known: list[KnownFunction]) -> Expression:
        """Return a variable, an element of an array or a number."""
        readable = scope.list_readable()
        if scope.arrays and self.rng.random() < 0.3:
            return self.draw_element(self.rng.choice(scope.arrays), scope, known)
        if readable and self.rng.random() < 0.75:
            return Place(self.rng.choice(readable))
        return self.draw_number()

    def draw_number(self, minimum: int = 0, most: int = 99) -> Number:
        """Return a number in decimal, as a character, or in hexadecimal."""
        value = self.rng.randrange(minimum, most + 1)
        style = self.rng.random()
        if most > 32 and "characters" in self.features and style < 0.15:
            return self.draw_character()
        if "hexadecimal" in self.features and style < 0.3 and value % 16 != 14:  # C reads 0xe-1
            return Number(self.rng.choice((f"0x{value:x}", f"0X{value:X}")), value)
        if most == 99 and style > 0.97:
            return Number(str(LARGEST), LARGEST)
        return Number(str(value), value)

    def draw_character(self) -> Number:
        """Return a letter, a sign or an escape in quotes."""
        if self.rng.random() < 0.2:
            text = self.rng.choice(tuple(_ESCAPES))
            return Number(f"'{text}'", _ESCAPES[text])
        letter = self.rng.choice(_LETTERS)
        return Number(f"'{letter}'", ord(letter))

    def draw_element(self, array: Array, scope: Scope, known: list[KnownFunction]) -> Place:
        """Return an element of an array, with indices that are inside of it."""
        again = [each for each in scope.recent if each.name == array.name]
        if again and self.rng.random() < 0.5:
            return self.rng.choice(again)
        indices = tuple(self.draw_index(size, scope, known) for size in array.sizes)
        scope.recent.append(Place(array.name, indices))
        return scope.recent[-1]

    def draw_index(self, size: int, scope: Scope, known: list[KnownFunction]) -> Expression:
        """Return an expression that is at least 0 and less than `size`."""
        counters = [name for name, bound in scope.bounds.items() if bound <= size]
        if counters and self.rng.random() < 0.8:
            return Place(self.rng.choice(counters))
        if not (readable := scope.list_readable()) or self.rng.random() < 0.3:
            return self.draw_number(0, size - 1)
        value: Expression = Place(self.rng.choice(readable))
        if self.rng.random() < 0.4:
            value = Binary("+", value, self.draw_number(1, 9))
        mask = size - 1 if size & (size - 1) == 0 else 255
        masked = Binary("&", value, Number(str(mask), mask))
        return masked if mask < size else Binary("%", masked, Number(str(size), size))

    def draw_test(self, scope: Scope, known: list[KnownFunction], depth: int) -> Expression:
        """Return a comparison, or several with `&&`, `||` and `!`."""
        if depth > 0 and "logic" in self.features and self.rng.random() < 0.35:
            left = self.draw_test(scope, known, depth - 1)
            right = self.draw_test(scope, known, depth - 1)
            joined = Binary(self.rng.choice(("&&", "||")), left, right)
            return Unary("!", joined) if self.rng.random() < 0.15 else joined
        left, right = self._draw_varying(scope, known, min(depth, 1)), self.draw_leaf(scope, known)
        return Binary(
            self.rng.choice(COMPARISONS), left, self.draw_number() if left == right else right
        )

    def draw_call(self, known: KnownFunction, scope: Scope, others: list[KnownFunction]) -> Call:
        """Return a call; arguments are small expressions, arrays and rows."""
        arguments = tuple(
            self._draw_argument(each, scope, others) for each in known.function.parameters
        )
        return Call(known.function.name, arguments)

    def list_pure(self, known: list[KnownFunction], scope: Scope) -> list[KnownFunction]:
        """Return the functions that an expression may call."""
        return [each for each in known if each.pure and self.can_call(each, scope)]

    def can_call(self, known: KnownFunction, scope: Scope) -> bool:
        """Return whether there is an array for each parameter that is one."""
        return all(
            not each.sizes or self._list_arguments(each, scope)
            for each in known.function.parameters
        )

    def _draw_argument(
        self, parameter: Parameter, scope: Scope, known: list[KnownFunction]
    ) -> Expression:
        if not parameter.sizes:
            return self.draw(scope, [], 1)
        array = self.rng.choice(self._list_arguments(parameter, scope))
        rows = array.sizes[: len(array.sizes) - len(parameter.sizes)]
        return Place(array.name, tuple(self.draw_index(size, scope, known) for size in rows))

    def _list_arguments(self, parameter: Parameter, scope: Scope) -> list[Array]:
        """Return the arrays that fit; a row of two dimensions fits as well."""
        return [
            array
            for array in scope.arrays
            if len(array.sizes) >= len(parameter.sizes)
            and (parameter.constant or not array.constant)
        ]

    def _draw_quotient(self, left: Expression, *, signed: bool) -> Expression:
        """Divide by a number; only `signed` may divide what is negative."""
        sign, by = self.rng.choice("/%%"), self.rng.randrange(2, 30)
        if not signed:
            mask = self.rng.choice((127, 255, 1023, 65535))
            return Binary(sign, Binary("&", left, Number(str(mask), mask)), Number(str(by), by))
        if self.rng.random() < 0.2:
            return Binary(sign, left, Unary("-", Number(str(by), by)))
        return Binary(sign, left, Number(str(by), by))
