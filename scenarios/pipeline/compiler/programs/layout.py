"""Write a program as text, in a layout of its own: blanks, braces, comments, parentheses."""

from random import Random

from scenarios.pipeline.compiler.programs.expressions import COMPARISONS
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
    Parameter,
    Place,
    Program,
    Return,
    Statement,
    Unary,
    While,
)

_LEVELS = ("||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")
_TIGHTNESS = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs.split()}
_UNARY = len(_LEVELS)


def write_source(program: Program, rng: Random, comments: list[str]) -> bytes:
    """Return the program's source; each of `comments` is used once at most."""
    writer = _SourceWriter(rng, comments)
    parts = [writer.write_item(item) for item in program.items]
    return ("\n".join(parts) + "\n").encode()


class _SourceWriter:
    def __init__(self, rng: Random, comments: list[str]) -> None:
        self._rng, self._comments = rng, comments
        self._indent = rng.choice(("  ", "    ", "\t"))
        self._blank = rng.choice((" ", " ", ""))
        self._brace = rng.choice((" {", " {", "{", "\n{"))
        self._extra = rng.choice((0.0, 0.05, 0.15))
        self._bare = rng.random()

    def write_item(self, item: Declaration | Function) -> str:
        if isinstance(item, Declaration):
            return f"{self._write_declaration(item)};{self._comment()}"
        parameters = ", ".join(map(self._write_parameter, item.parameters)) or "void"
        head = f"{'int' if item.gives_int else 'void'} {item.name}({parameters})"
        if item.body is None:
            return f"{head};"
        return f"{head}{self._write_block(item.body, 0)}\n"

    def _comment(self) -> str:
        """Return a comment for the end of a line, or nothing."""
        if not self._comments or self._rng.random() > 0.12:
            return ""
        text = self._comments.pop()
        return self._rng.choice((f" // {text}", f" /* {text} */", f"/* {text}\n   of it */"))

    def _write_parameter(self, each: Parameter) -> str:
        sizes = "".join(f"[{size or ''}]" for size in each.sizes)
        return f"{'const ' if each.constant else ''}int {each.name}{sizes}"

    def _write_declaration(self, node: Declaration) -> str:
        listed = ", ".join(map(self._write_declarator, node.declarators))
        return f"{'const ' if node.constant else ''}int {listed}"

    def _write_declarator(self, each: Declarator) -> str:
        text = each.name + "".join(f"[{size}]" for size in each.sizes)
        if each.initialiser is None:
            return text
        return f"{text}{self._blank}={self._blank}{self._write_initialiser(each.initialiser)}"

    def _write_initialiser(self, value: Initialiser) -> str:
        if isinstance(value, tuple):
            return f"{{{f',{self._blank}'.join(map(self._write_initialiser, value))}}}"
        return self._write(value)

    def _write_block(self, block: Block, depth: int) -> str:
        pad = self._indent * depth
        lines = [self._write_statement(each, depth + 1) for each in block.statements]
        brace = self._brace.replace("\n", f"\n{pad}")
        return f"{brace}{self._comment()}\n" + "".join(lines) + f"{pad}}}"

    def _write_body(self, block: Block, depth: int) -> str:
        """Write the body of a loop or condition, a single statement at times without braces."""
        [first, *rest] = block.statements
        simple = isinstance(first, Assignment | Call | Jump | Return)
        if simple and not rest and self._rng.random() < self._bare:
            return f"\n{self._write_statement(first, depth + 1)}"
        return f"{self._write_block(block, depth)}\n"

    def _write_statement(self, node: Statement, depth: int) -> str:
        pad = self._indent * depth
        match node:
            case Block():
                return f"{pad}{self._write_block(node, depth).lstrip()}\n"
            case If():
                return pad + self._write_if(node, depth)
            case While():
                return f"{pad}while ({self._write(node.test)}){self._write_body(node.body, depth)}"
            case For():
                return f"{pad}for ({self._write_head(node)}){self._write_body(node.body, depth)}"
            case _:
                return f"{pad}{self._write_simple(node)};{self._comment()}\n"

    def _write_simple(self, node: Statement) -> str:
        match node:
            case Declaration():
                return self._write_declaration(node)
            case Assignment():
                return self._write_assignment(node)
            case Jump(word):
                return word
            case Return(value):
                return f"return {self._write(value)}" if value else "return"
            case Call():
                return self._write(node)
            case _:
                raise TypeError(f"{node} has statements in it")

    def _write_if(self, node: If, depth: int) -> str:
        text = f"if ({self._write(node.test)}){self._write_body(node.then, depth)}"
        if node.otherwise is None:
            return text
        [first, *rest] = node.otherwise.statements
        pad = self._indent * depth
        if isinstance(first, If) and not rest:
            return f"{text}{pad}else {self._write_if(first, depth)}"
        return f"{text}{pad}else{self._write_body(node.otherwise, depth)}"

    def _write_head(self, node: For) -> str:
        first = "" if node.first is None else self._write_simple(node.first)
        test = "" if node.test is None else f" {self._write(node.test)}"
        step = "" if node.step is None else f" {self._write_assignment(node.step)}"
        return f"{first};{test};{step}"

    def _write_assignment(self, node: Assignment) -> str:
        signed = f"{self._blank}{node.sign}{self._blank}"
        return f"{self._write(node.place)}{signed}{self._write(node.value)}"

    def _write(self, node: Expression, minimum: int = 0) -> str:
        """Write an expression, in parentheses if it binds less than `least`."""
        text, tightness = self._write_bare(node)
        if tightness < minimum or (tightness <= _UNARY and self._rng.random() < self._extra):
            return f"({text})"
        return text

    def _write_bare(self, node: Expression) -> tuple[str, int]:
        match node:
            case Number(text):
                return text, _UNARY + 1
            case Place(name, indices):
                return name + "".join(f"[{self._write(each)}]" for each in indices), _UNARY + 1
            case Call(name, arguments):
                return f"{name}({f',{self._blank}'.join(map(self._write, arguments))})", _UNARY + 1
            case Unary(sign, operand):
                return f"{sign}{self._write(operand, _UNARY + (sign == '-'))}", _UNARY
            case Binary(sign, left, right):
                level = _TIGHTNESS[sign]
                chained = sign in COMPARISONS  # clang refuses x < y < z
                first, second = self._write(left, level + chained), self._write(right, level + 1)
                blank = " " if second.startswith("-") else self._blank
                return f"{first}{self._blank}{sign}{blank}{second}", level
