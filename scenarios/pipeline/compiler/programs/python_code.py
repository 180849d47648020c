"""Translate a program of the small C into Python, with the names that the interpreter gives."""

from itertools import count

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
    Initialiser,
    Jump,
    Number,
    Place,
    Program,
    Return,
    Statement,
    Unary,
    While,
)

_CALLS = {"/": "div", "%": "mod", "<<": "shl", ">>": "shr"}
_WRAPPED = frozenset("+-*")
_TRUTHS = frozenset(("<", ">", "<=", ">=", "==", "!="))
_LOGIC = {"&&": "and", "||": "or"}


def translate_program(program: Program) -> str:
    """Return Python whose `main()` is the program; a scalar is a list of one element."""
    writer = _PythonWriter()
    for item in program.items:
        if isinstance(item, Declaration):
            writer.declare(item, blank=0)
        elif item.body is not None:
            writer.define(item, item.body)
    return "\n".join(writer.lines)


class _PythonWriter:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers, self._depth = count(), 0
        self._scopes: list[dict[str, str]] = [{}]
        self._steps: list[Assignment | None] = []

    def define(self, function: Function, body: Block) -> None:
        names = {each.name: self._make_name(each.name) for each in function.parameters}
        self._write(f"def f_{function.name}({', '.join(names.values())}):")
        self._depth += 1
        self._write("step()")
        for each in function.parameters:
            if not each.sizes:
                self._write(f"{names[each.name]} = [{names[each.name]}]")
                names[each.name] += "[0]"
        self._scopes.append(names)
        self._write_statement(body)
        self._scopes.pop()
        self._depth -= 1

    def declare(self, declaration: Declaration, blank: int | None) -> None:
        """Write a declaration; `blank` is the value of what has no initialiser."""
        for each in declaration.declarators:
            name = self._make_name(each.name)
            self._write(f"{name} = {self._make_value(each, blank)}")
            self._scopes[-1][each.name] = name if each.sizes else f"{name}[0]"

    def _make_value(self, declarator: Declarator, blank: int | None) -> str:
        first = declarator.initialiser
        if not declarator.sizes:
            return f"[{blank if first is None else self._translate_initialiser(first, ())}]"
        if first is None:
            sizes = declarator.sizes
            row = f"[{blank}] * {sizes[-1]}"
            return row if len(sizes) == 1 else f"[{row} for _ in range({sizes[0]})]"
        return self._translate_initialiser(first, declarator.sizes)

    def _translate_initialiser(self, value: Initialiser, sizes: tuple[int, ...]) -> str:
        """Return a value of these dimensions; what is left out is 0."""
        if not isinstance(value, tuple):
            return self._translate(value)
        inner = [self._translate_initialiser(each, sizes[1:]) for each in value]
        zero = "0" if len(sizes) == 1 else f"[0] * {sizes[1]}"
        return f"[{', '.join([*inner, *[zero] * (sizes[0] - len(inner))])}]"

    def _make_name(self, name: str) -> str:
        return f"{name}_{next(self._numbers)}"

    def _write(self, line: str) -> None:
        self.lines.append(f"{' ' * self._depth}{line}")

    def _write_body(self, *statements: Statement | None) -> None:
        self._depth += 1
        for each in statements:
            if each is not None:
                self._write_statement(each)
        self._write("pass")
        self._depth -= 1

    def _write_statement(self, node: Statement) -> None:
        match node:
            case Block():
                self._scopes.append({})
                for each in node.statements:
                    self._write_statement(each)
                self._write("pass")
                self._scopes.pop()
            case Declaration():
                self.declare(node, blank=None)
            case Assignment(place, sign, value):
                right = value if sign == "=" else Binary(sign[0], place, value)
                self._write(f"{self._translate(place)} = {self._translate(right)}")
            case If():
                self._write(f"if {self._translate(node.test)}:")
                self._write_body(node.then)
                self._write("else:")
                self._write_body(node.otherwise)
            case While():
                self._write_loop(node.test, None, node.body)
            case For():
                self._scopes.append({})
                if node.first is not None:
                    self._write_statement(node.first)
                self._write_loop(node.test, node.step, node.body)
                self._scopes.pop()
            case Call():
                self._write(self._translate(node))
            case Jump():
                self._write_jump(node.word)
            case Return(value):
                self._write(f"return {self._translate(value) if value else ''}")

    def _write_loop(self, test: Expression | None, step: Assignment | None, body: Block) -> None:
        self._write(f"while {self._translate(test) if test else 'True'}:")
        self._steps.append(step)
        self._depth += 1
        self._write("step()")
        self._depth -= 1
        self._write_body(body, step)
        self._steps.pop()

    def _write_jump(self, word: str) -> None:
        if word == "continue" and (step := self._steps[-1]) is not None:
            self._write_statement(step)
        self._write(word or "pass")

    def _translate(self, node: Expression) -> str:
        match node:
            case Number():
                return str(node.value)
            case Place(name, indices):
                found = next(scope[name] for scope in reversed(self._scopes) if name in scope)
                return found + "".join(f"[at({self._translate(each)})]" for each in indices)
            case Call(name, arguments):
                return f"f_{name}({', '.join(map(self._translate, arguments))})"
            case Unary("!", operand):
                return f"int(not {self._translate(operand)})"
            case Unary(sign, operand):
                return f"w({sign}{self._translate(operand)})"
            case Binary(sign, left, right):
                return self._translate_binary(sign, self._translate(left), self._translate(right))

    def _translate_binary(self, sign: str, left: str, right: str) -> str:
        if sign in _CALLS:
            return f"{_CALLS[sign]}({left}, {right})"
        if sign in _LOGIC:
            return f"int(bool({left} {_LOGIC[sign]} {right}))"
        if sign in _TRUTHS:
            return f"int({left} {sign} {right})"
        return f"w({left} {sign} {right})" if sign in _WRAPPED else f"({left} {sign} {right})"
