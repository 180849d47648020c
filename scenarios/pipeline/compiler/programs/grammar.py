"""Draw a program: its tables, its functions and a `main` that reads, computes and prints."""

from random import Random

from scenarios.pipeline.compiler.programs.main_function import Band, MainWriter
from scenarios.pipeline.compiler.programs.nodes import (
    Binary,
    Block,
    Call,
    Declaration,
    Declarator,
    Expression,
    Function,
    If,
    Number,
    Parameter,
    Place,
    Program,
    Return,
)
from scenarios.pipeline.compiler.programs.scope import Array, KnownFunction

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


class _ProgramWriter(MainWriter):
    """Draws the tables and the functions, then `main`."""

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
        main = Function("main", (), self.draw_main())
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

    def _draw_parameters(self) -> tuple[Parameter, ...]:
        if "parameters" not in self.features:
            return ()
        kinds = ("int", "int", "array", "constant", "rows") if self.globals.arrays else ("int",)
        found = []
        for kind in self.rng.choices(kinds, k=self.rng.choice((1, 2, 2, 3))):
            sizes = {"int": (), "rows": (0, self.length)}.get(kind, (0,))
            name = self.names.make_short()
            constant = kind == "constant" or (kind == "rows" and len(name) == 1)
            found.append(Parameter(name, sizes, constant))
        return tuple(found)

    def _add_function(self) -> None:
        writer, scope = self.make_writer(), self.globals.open()
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
            body.append(Return(self.fold(scope, writer)))
        elif not body:
            body.append(Return(None))
        function = Function(name, parameters, Block(tuple(body)), gives_int)
        self.items.append(function)
        self.known.append(KnownFunction(function, writer.pure))

    def _add_recursion(self) -> None:
        """Add a function that calls itself with less, once or twice."""
        writer, scope = self.make_writer(), self.globals.open()
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
