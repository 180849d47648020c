"""Draw statements: assignments, conditions, loops that come to their end, calls, output."""

from collections.abc import Callable
from random import Random

from scenarios.pipeline.compiler.programs.expressions import ExpressionWriter
from scenarios.pipeline.compiler.programs.nodes import (
    Assignment,
    Binary,
    Block,
    Call,
    Declaration,
    Declarator,
    Expression,
    For,
    If,
    Jump,
    Number,
    Place,
    Statement,
    While,
)
from scenarios.pipeline.compiler.programs.scope import Array, KnownFunction, NameSource, Scope

_KINDS = {
    "assign": 8,
    "update": 4,
    "element": 5,
    "if": 4,
    "for": 5,
    "while": 2,
    "call": 3,
    "print": 2,
    "block": 1,
    "local": 2,
    "array": 1,
}
_ALWAYS = frozenset(("assign", "update", "if", "local"))


class StatementWriter:
    """Draws the statements of one function."""

    def __init__(
        self,
        rng: Random,
        features: frozenset[str],
        names: NameSource,
        known: list[KnownFunction],
        length: int,
    ) -> None:
        self.rng, self.features, self.names, self.length = rng, features, names, length
        self.expressions = ExpressionWriter(rng, features)
        self.known, self.depth, self.loops = known, 2, 0
        self.pure = False
        """Whether the function may neither print nor write to what others see."""

    def draw_block(self, scope: Scope, count: int, nested: int = 0) -> Block:
        """Return a block of so many statements, each with at most two levels in it."""
        inner = scope.open()
        drawn = (self.draw_statement(inner, nested) for _ in range(count))
        return Block(tuple(each for some in drawn for each in some))

    def draw_statement(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        """Return a statement, or a few that belong together."""
        kinds = [kind for kind in _KINDS if kind in self.features | _ALWAYS]
        [kind] = self.rng.choices(kinds, [_KINDS[each] for each in kinds])
        if nested >= 2 and kind in ("if", "for", "while", "block"):
            kind = "assign"
        elif nested and kind in ("local", "array"):
            kind = "update"
        draw: Callable[[Scope, int], tuple[Statement, ...]] = getattr(self, f"_draw_{kind}")
        return draw(scope, nested)

    def draw_value(self, scope: Scope, depth: int | None = None) -> Expression:
        """Return an expression; in nested loops without calls, which would be many."""
        known = self.known if self.loops < 2 else []
        return self.expressions.draw(scope, known, self.depth if depth is None else depth)

    def _draw_assign(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        if not (names := self._list_writable(scope)):
            return self._draw_local(scope, nested)
        place, value = Place(self.rng.choice(names)), self.draw_value(scope)
        if self.loops or self.rng.random() < 0.6:
            value = Binary(self.rng.choice("+-"), Binary("*", place, Number("3", 3)), value)
        return (Assignment(place, "=", value),)

    def _draw_update(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        if not (names := self._list_writable(scope)):
            return self._draw_local(scope, nested)
        place = Place(self.rng.choice(names))
        if "quotient" in self.features and self.rng.random() < 0.2:
            sign, by = self.rng.choice(("/=", "%=")), self.rng.randrange(2, 99)
            masked = Assignment(place, "=", Binary("&", place, Number("65535", 65535)))
            return (masked, Assignment(place, sign, Number(str(by), by)))
        sign = self.rng.choice(("+=", "+=", "-=", "*="))
        return (Assignment(place, sign, self.draw_value(scope, 1)),)

    def _draw_element(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        arrays = [each for each in scope.arrays if self._can_write(each, scope)]
        if not arrays:
            return self._draw_assign(scope, nested)
        place = self.expressions.draw_element(self.rng.choice(arrays), scope, [])
        sign = self.rng.choice(("=", "=", "+=", "-="))
        return (Assignment(place, sign, self.draw_value(scope)),)

    def _draw_if(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        test = self._draw_test(scope)
        then = self.draw_block(scope, self.rng.choice((1, 1, 2)), nested + 1)
        if self.loops and self.rng.random() < 0.12 and "jumps" in self.features:
            then = Block((Jump(self.rng.choice(("break", "continue"))),))
        otherwise = None
        if self.rng.random() < 0.35:
            otherwise = self.draw_block(scope, 1, nested + 1)
            then = Block((Jump(""),)) if self.rng.random() < 0.1 else then
        return (If(test, then, otherwise),)

    def _draw_test(self, scope: Scope) -> Expression:
        """Return a condition, whose right part calls a function that changes something at times."""
        impure = [
            each
            for each in self.known
            if not each.pure and each.function.gives_int and self.expressions.can_call(each, scope)
        ]
        test = self.expressions.draw_test(scope, [], 1)
        if self.pure or self.loops >= 2 or "logic" not in self.features:
            impure = []
        if impure and self.rng.random() < 0.5:
            call = self.expressions.draw_call(self.rng.choice(impure), scope, [])
            return Binary(self.rng.choice(("&&", "||")), test, call)
        if self.rng.random() < 0.15:
            return self.draw_value(scope, 1)
        return test

    def _draw_for(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        name, inner = self.names.make_short(), scope.open()
        bound = self.rng.choice((self.length, self.length, self.length, self.rng.randrange(3, 9)))
        counter, start = Place(name), self.rng.choice((0, 0, 0, 1))
        inner.bounds[name] = bound
        if self.rng.random() < 0.2:
            first, test = bound - 1, Binary(">=", counter, Number("0", 0))
            step = Assignment(counter, "-=", Number("1", 1))
        else:
            by = self.rng.choice((1, 1, 1, 2))
            first, test = start, Binary("<", counter, self._draw_bound(bound, scope))
            step = Assignment(counter, "+=", Number(str(by), by))
        value = Number(str(first), first)
        body = self._draw_body(inner, nested)
        if self.rng.random() < 0.75:
            declared = Declaration((Declarator(name, (), value),))
            return (For(declared, test, step, body),)
        before = Declaration((Declarator(name, (), value),))
        if self.rng.random() < 0.5:
            return (before, For(None, test, step, body))
        return (before, For(Assignment(counter, "=", value), test, step, body))

    def _draw_bound(self, bound: int, scope: Scope) -> Expression:
        """Return the bound, or the number of inputs if it is the length of the arrays."""
        if bound == self.length and self.rng.random() < 0.8:
            return Place("count")
        return Number(str(bound), bound)

    def _draw_while(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        """Return a loop over the digits of a number, or one that counts down."""
        name, inner = self.names.make_short(), scope.open()
        counter = Place(name)
        inner.constants.append(name)
        if self.rng.random() < 0.5:
            first: Expression = Binary("&", self.draw_value(scope, 1), Number("1023", 1023))
            step = Assignment(counter, "/=", Number("3", 3))
        else:
            first = self.expressions.draw_number(2, 9)
            step = Assignment(counter, "-=", Number("1", 1))
        test: Expression = Binary(">", counter, Number("0", 0))
        if self.rng.random() < 0.3:
            test = counter
        body = self._draw_body(inner, nested)
        whole = Block((step, *body.statements))
        return (Declaration((Declarator(name, (), first),)), While(test, whole))

    def _draw_body(self, scope: Scope, nested: int) -> Block:
        self.loops += 1
        body = self.draw_block(scope, self.rng.choice((1, 2, 2, 3)), nested + 1)
        self.loops -= 1
        return body

    def _draw_call(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        known = [each for each in self.known if self.expressions.can_call(each, scope)]
        if self.pure or self.loops >= 2:
            known = [each for each in known if each.pure]
        if not known:
            return self._draw_assign(scope, nested)
        chosen = self.rng.choice(known)
        call = self.expressions.draw_call(chosen, scope, [])
        names = self._list_writable(scope)
        if not chosen.function.gives_int or not names:
            return (call,)
        return (Assignment(Place(self.rng.choice(names)), "=", call),)

    def _draw_print(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        if self.pure or self.loops:
            return self._draw_assign(scope, nested)
        number = Call("put_int", (self.draw_value(scope, 1),))
        end = Call("put_char", (self.rng.choice((Number("' '", 32), Number("'\\n'", 10))),))
        return (number, end)

    def _draw_block(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        """Return a block with a variable of its own, which hides another one at times."""
        inner = scope.open()
        names = [*self._list_writable(scope)]
        hidden = bool(names) and self.rng.random() < 0.4
        name = self.rng.choice(names) if hidden else self.names.make_short()
        first = self.draw_value(scope, 1) if not hidden else self.expressions.draw_number()
        declared = Declaration((Declarator(name, (), first),))
        if not hidden:
            inner.scalars.append(name)
        body = self.draw_block(inner, 2, nested + 1)
        others = [each for each in names if each != name]
        used = Assignment(Place(self.rng.choice(others or [name])), "+=", Place(name))
        return (Block((declared, *body.statements, used)),)

    def _draw_local(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        """Return a declaration of one variable or two, or of one that is assigned to next."""
        name = self.names.make_short()
        first = self.draw_value(scope)
        if self.rng.random() < 0.2:
            scope.scalars.append(name)
            declared = Declaration((Declarator(name),))
            return (declared, Assignment(Place(name), "=", first))
        if self.rng.random() < 0.2:
            scope.constants.append(name)
            return (Declaration((Declarator(name, (), first),), constant=True),)
        declarators = [Declarator(name, (), first)]
        if self.rng.random() < 0.3:
            other = self.names.make_short()
            declarators.append(Declarator(other, (), self.draw_value(scope, 1)))
            scope.scalars.append(other)
        scope.scalars.append(name)
        return (Declaration(tuple(declarators)),)

    def _draw_array(self, scope: Scope, nested: int) -> tuple[Statement, ...]:
        """Return a local array, whose initialiser leaves most of its elements out."""
        name, rows = self.names.make_short(), self.rng.choice((0, 0, 2, 3))
        sizes = (rows, self.length) if rows else (self.length,)
        filled = self.rng.randrange(1, 4)
        row = tuple(self.draw_value(scope, 1) for _ in range(filled))
        first = (row, (self.expressions.draw_number(),)) if rows else row
        scope.arrays.append(Array(name, sizes))
        return (Declaration((Declarator(name, sizes, first),)),)

    def _list_writable(self, scope: Scope) -> list[str]:
        return [each for each in scope.scalars if not self.pure or each not in scope.globals]

    def _can_write(self, array: Array, scope: Scope) -> bool:
        return not array.constant and (not self.pure or array.name not in scope.globals)
