"""The `main` of a program: it reads, repeats the work of its functions, and prints."""

from random import Random

from msgspec import Struct

from scenarios.pipeline.compiler.programs.nodes import (
    Assignment,
    Binary,
    Block,
    Call,
    Declaration,
    Declarator,
    Expression,
    For,
    Function,
    Number,
    Place,
    Return,
    Statement,
    While,
)
from scenarios.pipeline.compiler.programs.scope import Array, KnownFunction, NameSource, Scope
from scenarios.pipeline.compiler.programs.statements import StatementWriter

_SPACE, _LINE = Number("' '", 32), Number("'\\n'", 10)


class Band(Struct, frozen=True):
    """What programs of one difficulty are made of."""

    tokens: range
    functions: tuple[int, ...]
    statements: tuple[int, ...]
    rounds: tuple[int, ...]
    """Statements that are repeated."""
    chance: float
    """Of each feature to be in a program."""


class MainWriter:
    """Draws `main`, which uses the functions and tables that are known by then."""

    def __init__(self, rng: Random, features: frozenset[str], band: Band) -> None:
        self.rng, self.features, self.band = rng, features, band
        self.length = rng.choice((5, 6, 7, 8, 8, 10, 12, 16))
        self.names = NameSource(rng)
        self.known: list[KnownFunction] = []
        self.globals = Scope(
            scalars=[], constants=[], bounds={}, arrays=[], globals=frozenset(), recent=[]
        )
        self.items: list[Declaration | Function] = []

    def make_writer(self) -> StatementWriter:
        self.names.start_function()
        return StatementWriter(self.rng, self.features, self.names, self.known, self.length)

    def fold(self, scope: Scope, writer: StatementWriter) -> Expression:
        """Return a value that depends on the variables of a function, so that few are idle."""
        value = writer.draw_value(scope)
        for name in [each for each in scope.scalars if each not in self.globals.scalars][-3:]:
            value = Binary(
                self.rng.choice("+-^" if "bits" in self.features else "+-"), value, Place(name)
            )
        return value

    def draw_main(self) -> Block:
        writer, scope = self.make_writer(), self.globals.open()
        total = self.names.make_long()
        body: list[Statement] = [Assignment(Place("count"), "=", Call("get_int"))]
        for name in ("rounds", total):
            body.append(Declaration((Declarator(name, (), Call("get_int")),)))
        scope.scalars.append(total)
        for array in [each for each in scope.arrays if not each.constant]:
            body += self._fill(array)
        if "text" in self.features:
            body += self._read_text(scope)
        for _ in range(self.rng.choice(self.band.statements)):
            body += writer.draw_statement(scope, 0)
        body.append(self._write_rounds(writer, scope.open(), total))
        return Block((*body, *self._report(scope, writer)))

    def _write_rounds(self, writer: StatementWriter, scope: Scope, total: str) -> For:
        """Repeat the work as often as the input says, so that it is more than reading."""
        writer.loops, scope.constants = 1, [*scope.constants, *["round", total] * 2]
        body: list[Statement] = []
        for each in self.known:
            if writer.expressions.can_call(each, scope):
                body += self._use(each, writer, scope, total)
        for _ in range(self.rng.choice(self.band.rounds)):
            body += writer.draw_statement(scope, 1)
        factor = Number(str(by := self.rng.choice((3, 5, 7, 31, 33))), by)
        old = Binary("*", Place(total), factor)
        new = Binary(self.rng.choice("+-"), old, writer.draw_value(scope))
        body.append(Assignment(Place(total), "=", new))
        writer.loops = 0
        return self.loop("round", Place("rounds"), *body)

    def _use(
        self, known: KnownFunction, writer: StatementWriter, scope: Scope, total: str
    ) -> list[Statement]:
        """Call a function, and keep what it gives."""
        call = writer.expressions.draw_call(known, scope, [])
        if not known.function.gives_int:
            return [call]
        return [Assignment(Place(total), self.rng.choice(("+=", "-=")), call)]

    def _fill(self, array: Array) -> list[Statement]:
        """Read an array, or its rows, from the input."""
        if len(array.sizes) == 1:
            read = Assignment(Place(array.name, (Place("i"),)), "=", Call("get_int"))
            return [self.loop("i", Place("count"), read)]
        element = Place(array.name, (Place("i"), Place("j")))
        value = Binary("+", Binary("*", Place("i"), Number("7", 7)), Place("j"))
        inner = self.loop("j", Place("count"), Assignment(element, "=", value))
        return [self.loop("i", Number(str(array.sizes[0]), array.sizes[0]), inner)]

    def loop(self, name: str, bound: Expression, *inner: Statement) -> For:
        return For(
            Declaration((Declarator(name, (), Number("0", 0)),)),
            Binary("<", Place(name), bound),
            Assignment(Place(name), "+=", Number("1", 1)),
            Block(inner),
        )

    def _read_text(self, scope: Scope) -> list[Statement]:
        """Read characters to the end of the input, and keep a sum of them."""
        name, total = self.names.make_short(), self.names.make_long()
        scope.scalars.append(total)
        factor = self.rng.choice((3, 7, 31))
        keep = Assignment(
            Place(total),
            "=",
            Binary("+", Binary("*", Place(total), Number(str(factor), factor)), Place(name)),
        )
        read = Assignment(Place(name), "=", Call("get_char"))
        return [
            Declaration((Declarator(name, (), Call("get_char")),)),
            Declaration((Declarator(total, (), Number("0", 0)),)),
            While(Binary(">=", Place(name), Number("0", 0)), Block((keep, read))),
        ]

    def _report(self, scope: Scope, writer: StatementWriter) -> list[Statement]:
        """Print what the program has computed, and return a part of it."""
        body: list[Statement] = []
        lists = [each for each in scope.arrays if len(each.sizes) == 1 and not each.constant]
        for array in lists[:2]:
            shown = Call("put_int", (Place(array.name, (Place("k"),)),))
            body.append(self.loop("k", Place("count"), shown, Call("put_char", (_SPACE,))))
        total = self.fold(scope, writer)
        return [
            *body,
            Call("put_int", (total,)),
            Call("put_char", (_LINE,)),
            Return(Place(self.rng.choice(scope.scalars))),
        ]
