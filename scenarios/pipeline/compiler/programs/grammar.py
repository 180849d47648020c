"""Draw a program: its tables, its functions and a `main` that reads, computes and prints."""

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
    If,
    Number,
    Parameter,
    Place,
    Program,
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


BANDS = {
    "easy": Band(range(90, 211), (0, 0, 1, 1), (0, 0, 1), (0, 1, 2), 0.45),
    "middle": Band(range(211, 341), (1, 1, 2), (1, 2), (1, 2), 0.6),
    "hard": Band(range(341, 861), (2, 3, 3, 4), (2, 3), (1, 2, 3), 0.8),
}
FEATURES = (
    *("product", "bits", "shift", "quotient", "truth", "unary", "logic", "characters"),
    *("hexadecimal", "element", "for", "while", "call", "print", "block", "array", "jumps"),
    *("parameters", "tables", "globals", "recursion", "text"),
)
RARE = ("signed",)


def draw_program(rng: Random, band: Band) -> Program:
    """Return a program, which may turn out to be too long, too slow or undefined."""
    features = {each for each in FEATURES if rng.random() < band.chance}
    features |= {each for each in RARE if rng.random() < band.chance / 4}
    return _ProgramWriter(rng, frozenset(features), band).write()


class _ProgramWriter:
    def __init__(self, rng: Random, features: frozenset[str], band: Band) -> None:
        self.rng, self.features, self.band = rng, features, band
        self.length = rng.choice((5, 6, 7, 8, 8, 10, 12, 16))
        self.names = NameSource(rng)
        self.known: list[KnownFunction] = []
        self.globals = Scope(
            scalars=[], constants=[], bounds={}, arrays=[], globals=frozenset(), recent=[]
        )
        self.items: list[Declaration | Function] = []

    def write(self) -> Program:
        self.items.append(Declaration((Declarator("count"),)))
        self.globals.constants.append("count")
        if "globals" in self.features:
            self._add_scalars()
        for _ in range(self.rng.choice((1, 2)) if "tables" in self.features else 0):
            self._add_table()
        seen = [*self.globals.scalars, *(each.name for each in self.globals.arrays)]
        self.globals.globals = frozenset(seen)
        for _ in range(self.rng.choice(self.band.functions)):
            self._add_function()
        if "recursion" in self.features:
            self._add_recursion()
        main = Function("main", (), self._write_main())
        return Program((*self._declare_some(), main))

    def _declare_some(self) -> list[Declaration | Function]:
        """Declare a function before the others, so that it could be defined later."""
        functions = [each for each in self.items if isinstance(each, Function)]
        if not functions or self.rng.random() < 0.7:
            return self.items
        early = self.rng.choice(functions)
        declared = Function(early.name, early.parameters, None, early.gives_int)
        at = self.items.index(functions[0])
        return [*self.items[:at], declared, *self.items[at:]]

    def _add_scalars(self) -> None:
        names = [self.names.make_long() for _ in range(self.rng.choice((1, 2)))]
        values = [Number(str(value), value) for value in (0, self.rng.randrange(1, 999))]
        declarators = [
            Declarator(name, (), value if self.rng.random() < 0.5 else None)
            for name, value in zip(names, values, strict=False)
        ]
        self.items.append(Declaration(tuple(declarators)))
        self.globals.scalars += names

    def _add_table(self) -> None:
        name, rows = self.names.make_long(), self.rng.choice((0, 0, 2, 3))
        sizes = (rows, self.length) if rows else (self.length,)
        constant = self.rng.random() < 0.4
        first = None
        if constant or self.rng.random() < 0.3:
            row = self._draw_row()
            first = (row, self._draw_row()) if rows else row
        self.items.append(Declaration((Declarator(name, sizes, first),), constant=constant))
        self.globals.arrays.append(Array(name, sizes, constant))

    def _draw_row(self) -> tuple[Number, ...]:
        count = self.rng.randrange(max(2, self.length - 6), self.length + 1)
        values = (self.rng.randrange(1, 1000) for _ in range(count))
        return tuple(Number(str(value), value) for value in values)

    def _make_writer(self) -> StatementWriter:
        self.names.start_function()
        return StatementWriter(self.rng, self.features, self.names, self.known, self.length)

    def _draw_parameters(self) -> tuple[Parameter, ...]:
        if "parameters" not in self.features:
            return ()
        kinds = ("int", "int", "array", "constant", "rows") if self.globals.arrays else ("int",)
        found = []
        for kind in self.rng.choices(kinds, k=self.rng.choice((1, 2, 2, 3))):
            sizes = {"int": (), "rows": (0, self.length)}.get(kind, (0,))
            found.append(Parameter(self.names.make_short(), sizes, kind in ("constant", "rows")))
        return tuple(found)

    def _add_function(self) -> None:
        writer, scope = self._make_writer(), self.globals.open()
        name, parameters = self.names.make_long(), self._draw_parameters()
        writer.pure = self.rng.random() < 0.5
        idle = not self.globals.scalars and not any(each.sizes for each in parameters)
        gives_int = writer.pure or idle or self.rng.random() < 0.5
        for each in parameters:
            if each.sizes:
                sizes = (*each.sizes[1:],)
                shape = (2, *sizes) if sizes else (self.length,)
                scope.arrays.append(Array(each.name, shape, each.constant or writer.pure))
            else:
                scope.scalars.append(each.name)
        body = [*writer.draw_block(scope, 0).statements]
        for _ in range(self.rng.choice(self.band.statements)):
            body += writer.draw_statement(scope, 0)
        if gives_int:
            body.append(Return(self._fold(scope, writer)))
        elif not body:
            body.append(Return(None))
        function = Function(name, parameters, Block(tuple(body)), gives_int)
        self.items.append(function)
        self.known.append(KnownFunction(function, writer.pure))

    def _fold(self, scope: Scope, writer: StatementWriter) -> Expression:
        """Return a value that depends on the variables of a function, so that few are idle."""
        value = writer.draw_value(scope)
        for name in [each for each in scope.scalars if each not in self.globals.scalars][-3:]:
            value = Binary(
                self.rng.choice("+-^" if "bits" in self.features else "+-"), value, Place(name)
            )
        return value

    def _add_recursion(self) -> None:
        """Add a function that calls itself with less, once or twice."""
        writer, scope = self._make_writer(), self.globals.open()
        name = self.names.make_long()
        depth, value = self.names.make_short(), self.names.make_short()
        scope.scalars += [value]
        less = Binary("-", Place(depth), Number("1", 1))
        ways = self.rng.choice((1, 2))
        calls = [Call(name, (less, self._vary(value, depth))) for _ in range(ways)]
        factor = Number(str(by := self.rng.choice((3, 5, 9))), by)
        result: Expression = Binary("-", Binary("*", calls[0], factor), writer.draw_value(scope, 1))
        if len(calls) > 1:
            result = Binary(self.rng.choice("-+"), result, calls[1])
        stop = If(
            Binary("<=", Place(depth), Number("0", 0)),
            Block((Return(writer.draw_value(scope, 1)),)),
        )
        function = Function(
            name, (Parameter(depth), Parameter(value)), Block((stop, Return(result)))
        )
        self.items.append(function)
        most = self.rng.randrange(4, 7) if ways > 1 else self.rng.randrange(5, 30)
        caller = Function(
            self.names.make_long(),
            (Parameter(value),),
            Block((Return(Call(name, (Number(str(most), most), Place(value)))),)),
        )
        self.items.append(caller)
        self.known.append(KnownFunction(caller, pure=True))

    def _vary(self, value: str, depth: str) -> Expression:
        """Return an argument that no two calls have in common."""
        number = Number(str(by := self.rng.randrange(2, 40)), by)
        return Binary(self.rng.choice("+-"), Binary("*", Place(value), number), Place(depth))

    def _write_main(self) -> Block:
        writer, scope = self._make_writer(), self.globals.open()
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
        return self._loop("round", Place("rounds"), *body)

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
            return [self._loop("i", Place("count"), read)]
        element = Place(array.name, (Place("i"), Place("j")))
        value = Binary("+", Binary("*", Place("i"), Number("7", 7)), Place("j"))
        inner = self._loop("j", Place("count"), Assignment(element, "=", value))
        return [self._loop("i", Number(str(array.sizes[0]), array.sizes[0]), inner)]

    def _loop(self, name: str, bound: Expression, *inner: Statement) -> For:
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
            body.append(self._loop("k", Place("count"), shown, Call("put_char", (_SPACE,))))
        total = self._fold(scope, writer)
        return [
            *body,
            Call("put_int", (total,)),
            Call("put_char", (_LINE,)),
            Return(Place(self.rng.choice(scope.scalars))),
        ]
