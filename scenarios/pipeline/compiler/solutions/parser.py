"""T2: parse tokens into a typed syntax tree. Usage: run TOKENS TREE."""

import json
import sys
from pathlib import Path
from typing import Any

Node = dict[str, Any]

TIGHTNESS = {
    "*": 10, "/": 10, "%": 10,
    "+": 9, "-": 9,
    "<<": 8, ">>": 8,
    "<": 7, ">": 7, "<=": 7, ">=": 7,
    "==": 6, "!=": 6,
    "&": 5, "^": 4, "|": 3, "&&": 2, "||": 1,
}  # fmt: skip
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=")
ESCAPES = {"n": 10, "t": 9, "0": 0, "\\": 92, "'": 39, '"': 34}
RUNTIME = {
    "get_int": "int (void)",
    "get_char": "int (void)",
    "put_int": "void (int)",
    "put_char": "void (int)",
}


def make_node(kind: str, inner: "list[Node | None] | None" = None, **facts: str) -> Node:
    """Return a node without empty fields."""
    made: Node = {"kind": kind, **facts}
    if inner:
        made["inner"] = inner
    return made


def find_pointee_type(kind: str) -> str:
    """Return the element type of an array or the target type of a pointer."""
    if kind.endswith(" *"):
        return kind[:-2]
    if " (*)" in kind:
        return kind.replace(" (*)", "")
    opening = kind.index("[")
    return kind[:opening] + kind[kind.index("]") + 1 :]


class SyntaxParser:
    """Parses one program; the scopes map each name to its declared type."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens = [*tokens, ("eof", "")]
        self.at = 0
        self.scopes: list[dict[str, str]] = [dict(RUNTIME)]

    def sees(self, *texts: str) -> bool:
        return self.tokens[self.at][1] in texts

    def take(self, text: str = "") -> str:
        found = self.tokens[self.at][1]
        if text and found != text:
            raise SystemExit(f"token {self.at + 1}: {found!r} where {text!r} is wanted")
        self.at += 1
        return found

    def takes(self, text: str) -> bool:
        if self.sees(text):
            self.at += 1
            return True
        return False

    def declare(self, name: str, kind: str) -> None:
        self.scopes[-1][name] = kind

    def type_of(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise SystemExit(f"{name} is not declared")

    def program(self) -> Node:
        inner: list[Node | None] = []
        while self.tokens[self.at][0] != "eof":
            if self.tokens[self.at][1] == "void" or self.tokens[self.at + 2][1] == "(":
                inner.append(self.function())
            else:
                inner += self.declarators()
        return make_node("TranslationUnitDecl", inner)

    def function(self) -> Node:
        gives, name = self.take(), self.take()
        self.take("(")
        parameters: list[Node | None] = []
        if self.takes("void"):
            pass
        else:
            parameters.append(self.parameter())
            while self.takes(","):
                parameters.append(self.parameter())
        self.take(")")
        kinds = ", ".join(each["type"] for each in parameters if each) or "void"
        self.declare(name, f"{gives} ({kinds})")
        if not self.takes(";"):
            self.scopes.append({each["name"]: each["type"] for each in parameters if each})
            body = self.block()
            self.scopes.pop()
            parameters.append(body)
        return make_node("FunctionDecl", parameters, name=name, type=f"{gives} ({kinds})")

    def parameter(self) -> Node:
        kind = "const int" if self.takes("const") else "int"
        self.take("int")
        name = self.take()
        if self.takes("["):
            self.take("]")
            kind += f" (*){self.size()}" if self.sees("[") else " *"
        return make_node("ParmVarDecl", name=name, type=kind)

    def size(self) -> str:
        self.take("[")
        number = int(self.take(), 0)
        self.take("]")
        return f"[{number}]"

    def declarators(self) -> list[Node]:
        kind = "const int" if self.takes("const") else "int"
        self.take("int")
        found = [self.declarator(kind)]
        while self.takes(","):
            found.append(self.declarator(kind))
        self.take(";")
        return found

    def declarator(self, kind: str) -> Node:
        name = self.take()
        while self.sees("["):
            kind += self.size()
        self.declare(name, kind)
        made = make_node("VarDecl", name=name, type=kind)
        if self.takes("="):
            made["inner"] = [self.initialiser(kind)]
        return made

    def initialiser(self, kind: str) -> Node:
        if not self.takes("{"):
            return self.expression()
        inner: list[Node | None] = [self.initialiser(find_pointee_type(kind))]
        while self.takes(","):
            inner.append(self.initialiser(find_pointee_type(kind)))
        self.take("}")
        return make_node("InitListExpr", inner, type=kind)

    def block(self) -> Node:
        self.take("{")
        self.scopes.append({})
        inner: list[Node | None] = []
        while not self.takes("}"):
            inner.append(self.statement())
        self.scopes.pop()
        return make_node("CompoundStmt", inner)

    def statement(self) -> Node:
        if self.sees("{"):
            return self.block()
        if self.sees("const", "int"):
            return make_node("DeclStmt", [*self.declarators()])
        if self.takes(";"):
            return make_node("NullStmt")
        if self.takes("if"):
            return self.branch()
        if self.takes("while"):
            condition = self.in_parentheses()
            return make_node("WhileStmt", [condition, self.statement()])
        if self.takes("for"):
            return self.loop()
        if self.sees("break", "continue"):
            made = make_node("BreakStmt" if self.take() == "break" else "ContinueStmt")
        elif self.takes("return"):
            made = make_node("ReturnStmt", None if self.sees(";") else [self.expression()])
        else:
            made = self.assignment()
        self.take(";")
        return made

    def branch(self) -> Node:
        inner: list[Node | None] = [self.in_parentheses(), self.statement()]
        if self.takes("else"):
            inner.append(self.statement())
        return make_node("IfStmt", inner)

    def loop(self) -> Node:
        self.take("(")
        self.scopes.append({})
        first: Node | None = None
        if self.sees("const", "int"):
            first = make_node("DeclStmt", [*self.declarators()])
        else:
            first = None if self.sees(";") else self.assignment()
            self.take(";")
        condition = None if self.sees(";") else self.expression()
        self.take(";")
        step = None if self.sees(")") else self.assignment()
        self.take(")")
        body = self.statement()
        self.scopes.pop()
        return make_node("ForStmt", [first, condition, step, body])

    def assignment(self) -> Node:
        """Parse an assignment, or a call used as a statement."""
        left = self.unary()
        if not self.sees(*ASSIGNMENTS):
            return left
        sign = self.take()
        kind = "BinaryOperator" if sign == "=" else "CompoundAssignOperator"
        return make_node(kind, [left, self.expression()], value=sign, type="int")

    def in_parentheses(self) -> Node:
        self.take("(")
        found = self.expression()
        self.take(")")
        return found

    def expression(self, loosest: int = 1) -> Node:
        left = self.unary()
        while (tightness := TIGHTNESS.get(self.tokens[self.at][1], 0)) >= loosest:
            sign = self.take()
            right = self.expression(tightness + 1)
            left = make_node("BinaryOperator", [left, right], value=sign, type="int")
        return left

    def unary(self) -> Node:
        if self.sees("-", "!", "~"):
            sign = self.take()
            return make_node("UnaryOperator", [self.unary()], value=sign, type="int")
        return self.primary()

    def primary(self) -> Node:
        kind, text = self.tokens[self.at]
        if text == "(":
            return self.in_parentheses()
        self.take()
        if kind == "numeric_constant":
            return make_node("IntegerLiteral", value=str(int(text, 0)), type="int")
        if kind == "char_constant":
            code = ESCAPES[text[2]] if text[1] == "\\" else ord(text[1])
            return make_node("CharacterLiteral", value=str(code), type="int")
        if kind != "identifier":
            raise SystemExit(f"token {self.at}: {text!r} begins no expression")
        found = make_node("DeclRefExpr", name=text, type=self.type_of(text))
        if self.takes("("):
            return self.call(found)
        while self.takes("["):
            index = self.expression()
            self.take("]")
            found = make_node(
                "ArraySubscriptExpr", [found, index], type=find_pointee_type(found["type"])
            )
        return found

    def call(self, function: Node) -> Node:
        inner: list[Node | None] = [function]
        if not self.takes(")"):
            inner.append(self.expression())
            while self.takes(","):
                inner.append(self.expression())
            self.take(")")
        return make_node("CallExpr", inner, type=function["type"].partition(" (")[0])


def main(given: str, to: str) -> None:
    """Read the tokens, write the tree."""
    said = [json.loads(line) for line in Path(given).read_text().splitlines()]
    tree = SyntaxParser([(each["kind"], each["text"]) for each in said]).program()
    Path(to).write_text(json.dumps(tree, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
