"""T3: compile a syntax tree to LLVM IR. Usage: run TREE IR."""

import json
import sys
from pathlib import Path
from typing import Any

Node = dict[str, Any]

ARITHMETIC = {
    "+": "add", "-": "sub", "*": "mul", "/": "sdiv", "%": "srem",
    "&": "and", "|": "or", "^": "xor", "<<": "shl", ">>": "ashr",
}  # fmt: skip
COMPARISONS = {"<": "slt", ">": "sgt", "<=": "sle", ">=": "sge", "==": "eq", "!=": "ne"}
RUNTIME = """\
declare signext i32 @get_int()
declare signext i32 @get_char()
declare void @put_int(i32 signext)
declare void @put_char(i32 signext)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


def get_children(node: Node) -> list[Any]:
    """Return the children of a node."""
    found: list[Any] = node.get("inner", [])
    return found


def parse_dimensions(kind: str) -> list[int]:
    """Return the array dimensions of a type."""
    return [int(part.rstrip("]")) for part in kind.split("[")[1:]]


def to_llvm_type(kind: str) -> str:
    """Convert a type of the small C to LLVM's."""
    if "*" in kind:
        return "ptr"
    whole = "i32"
    for size in reversed(parse_dimensions(kind)):
        whole = f"[{size} x {whole}]"
    return whole


def format_initial_value(node: "Node | None", kind: str) -> str:
    """Return a global's initial value, with its type."""
    whole = to_llvm_type(kind)
    if node is None:
        return f"{whole} {'zeroinitializer' if parse_dimensions(kind) else '0'}"
    if node["kind"] == "InitListExpr":
        part = "int" + "".join(f"[{size}]" for size in parse_dimensions(kind)[1:])
        given = [format_initial_value(each, part) for each in get_children(node)]
        rest = [format_initial_value(None, part)] * (parse_dimensions(kind)[0] - len(given))
        return f"{whole} [{', '.join(given + rest)}]"
    return f"i32 {evaluate_constant(node)}"


def evaluate_constant(node: Node) -> int:
    """Return the value of a constant."""
    if node["kind"] == "UnaryOperator":
        return -evaluate_constant(get_children(node)[0])
    return int(node["value"])


class FunctionGenerator:
    """Generates one function; its variables are allocas of its first block."""

    def __init__(self, node: Node, globals: dict[str, str]) -> None:
        self.allocas: list[str] = []
        self.lines: list[str] = []
        self.scopes = [globals, {}]
        self.loops: list[tuple[str, str]] = []
        self.made = 0
        self.open = True
        self.text = self.generate(node)

    def generate(self, node: Node) -> str:
        gives = to_llvm_type(node["type"].partition(" (")[0]) if node["type"][0] == "i" else "void"
        *parameters, body = get_children(node)
        words = []
        for at, each in enumerate(parameters):
            kind = to_llvm_type(each["type"])
            words.append(f"{kind}{' signext' if kind == 'i32' else ''} %p{at}")
            if kind == "ptr":
                self.scopes[-1][each["name"]] = f"%p{at}"
            else:
                self.emit(f"store i32 %p{at}, ptr {self.local(each)}")
        self.statement(body)
        if self.open:
            self.emit("ret void" if gives == "void" else "ret i32 0")
        how = "" if gives == "void" else "signext "
        head = f"define {how}{gives} @{node['name']}({', '.join(words)}) {{\nentry:\n"
        return head + "".join(f"{line}\n" for line in self.allocas + self.lines) + "}\n"

    def emit(self, line: str) -> None:
        """Emit an instruction, in a new block if the code is unreachable."""
        if not self.open:
            self.lines.append(f"{self.name('dead')[1:]}:")
        self.lines.append(f"  {line}")
        self.open = line.split()[0] not in ("br", "ret")

    def jump(self, label: str) -> None:
        if self.open:
            self.emit(f"br label {label}")

    def value(self, line: str) -> str:
        name = self.name("v")
        self.emit(f"{name} = {line}")
        return name

    def name(self, letter: str) -> str:
        self.made += 1
        return f"%{letter}{self.made}"

    def label(self, name: str) -> None:
        self.jump(name)
        self.lines.append(f"{name[1:]}:")
        self.open = True

    def local(self, declared: Node) -> str:
        place = self.name("x")
        self.allocas.append(f"  {place} = alloca {to_llvm_type(declared['type'])}")
        self.scopes[-1][declared["name"]] = place
        return place

    def find(self, name: str) -> str:
        return next(scope[name] for scope in reversed(self.scopes) if name in scope)

    def statement(self, node: Node) -> None:
        parts = get_children(node)
        match node["kind"]:
            case "CompoundStmt":
                self.scopes.append({})
                for part in parts:
                    self.statement(part)
                self.scopes.pop()
            case "DeclStmt":
                for part in parts:
                    self.declare(part)
            case "IfStmt":
                self.branch(parts)
            case "WhileStmt":
                self.loop(parts[0], None, parts[1])
            case "ForStmt":
                self.scopes.append({})
                if parts[0]:
                    self.statement(parts[0])
                self.loop(parts[1], parts[2], parts[3])
                self.scopes.pop()
            case "BreakStmt":
                self.jump(self.loops[-1][1])
            case "ContinueStmt":
                self.jump(self.loops[-1][0])
            case "ReturnStmt":
                self.emit(f"ret i32 {self.expression(parts[0])}" if parts else "ret void")
            case "NullStmt":
                pass
            case "CompoundAssignOperator":
                place = self.address(parts[0])
                right = self.expression(parts[1])
                left = self.value(f"load i32, ptr {place}")
                result = self.value(f"{ARITHMETIC[node['value'][:-1]]} i32 {left}, {right}")
                self.emit(f"store i32 {result}, ptr {place}")
            case "BinaryOperator" if node["value"] == "=":
                right = self.expression(parts[1])
                self.emit(f"store i32 {right}, ptr {self.address(parts[0])}")
            case _:
                self.expression(node)

    def declare(self, node: Node) -> None:
        """Declare a variable; its name is in scope in its initial value, but not yet
        initialised.
        """
        place = self.local(node)
        if not get_children(node):
            return
        first = get_children(node)[0]
        if first["kind"] != "InitListExpr":
            self.emit(f"store i32 {self.expression(first)}, ptr {place}")
            return
        size = 4
        for each in parse_dimensions(node["type"]):
            size *= each
        self.emit(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {size}, i1 false)")
        self.fill(first, place, 0, parse_dimensions(node["type"]))

    def fill(self, node: Node, place: str, at: int, left: list[int]) -> None:
        if node["kind"] != "InitListExpr":
            to = self.value(f"getelementptr i32, ptr {place}, i64 {at}")
            self.emit(f"store i32 {self.expression(node)}, ptr {to}")
            return
        step = 1
        for each in left[1:]:
            step *= each
        for nth, part in enumerate(get_children(node)):
            self.fill(part, place, at + nth * step, left[1:])

    def branch(self, parts: list[Node]) -> None:
        then, other, end = self.name("then"), self.name("else"), self.name("end")
        self.condition(parts[0], then, other)
        self.label(then)
        self.statement(parts[1])
        self.jump(end)
        self.label(other)
        if len(parts) > 2:
            self.statement(parts[2])
        self.label(end)

    def loop(self, condition: "Node | None", step: "Node | None", body: Node) -> None:
        test, again, on, end = (self.name(name) for name in ("test", "body", "step", "end"))
        self.label(test)
        if condition:
            self.condition(condition, again, end)
        self.label(again)
        self.loops.append((on, end))
        self.statement(body)
        self.loops.pop()
        self.label(on)
        if step:
            self.statement(step)
        self.jump(test)
        self.label(end)

    def condition(self, node: Node, yes: str, no: str) -> None:
        """Branch on a condition with short-circuit evaluation."""
        parts = get_children(node)
        if node.get("value") == "!" and node["kind"] == "UnaryOperator":
            self.condition(parts[0], no, yes)
        elif node.get("value") in ("&&", "||"):
            between = self.name("and")
            left = (between, no) if node["value"] == "&&" else (yes, between)
            self.condition(parts[0], *left)
            self.label(between)
            self.condition(parts[1], yes, no)
        elif node.get("value") in COMPARISONS:
            test = self.comparison(node)
            self.emit(f"br i1 {test}, label {yes}, label {no}")
        else:
            test = self.value(f"icmp ne i32 {self.expression(node)}, 0")
            self.emit(f"br i1 {test}, label {yes}, label {no}")

    def comparison(self, node: Node) -> str:
        left, right = (self.expression(part) for part in get_children(node))
        return self.value(f"icmp {COMPARISONS[node['value']]} i32 {left}, {right}")

    def expression(self, node: Node) -> str:
        parts = get_children(node)
        match node["kind"]:
            case "IntegerLiteral" | "CharacterLiteral":
                return str(node["value"])
            case "DeclRefExpr" | "ArraySubscriptExpr":
                place = self.address(node)
                if "[" in node["type"] or "*" in node["type"]:
                    return place
                return self.value(f"load i32, ptr {place}")
            case "CallExpr":
                return self.call(node)
            case "UnaryOperator" if node["value"] == "-":
                return self.value(f"sub i32 0, {self.expression(parts[0])}")
            case "UnaryOperator" if node["value"] == "~":
                return self.value(f"xor i32 {self.expression(parts[0])}, -1")
            case "BinaryOperator" if node["value"] in ARITHMETIC:
                left, right = (self.expression(part) for part in parts)
                return self.value(f"{ARITHMETIC[node['value']]} i32 {left}, {right}")
            case "BinaryOperator" if node["value"] in COMPARISONS:
                return self.value(f"zext i1 {self.comparison(node)} to i32")
            case _:
                return self.truth(node)

    def truth(self, node: Node) -> str:
        """Return the value of a condition as 1 or 0."""
        yes, no, end = self.name("yes"), self.name("no"), self.name("end")
        self.condition(node, yes, no)
        self.label(yes)
        self.jump(end)
        self.label(no)
        self.label(end)
        return self.value(f"phi i32 [ 1, {yes} ], [ 0, {no} ]")

    def address(self, node: Node) -> str:
        if node["kind"] == "DeclRefExpr":
            return self.find(node["name"])
        array, index = get_children(node)
        base = self.address(array)
        far = self.value(f"sext i32 {self.expression(index)} to i64")
        return self.value(f"getelementptr {to_llvm_type(node['type'])}, ptr {base}, i64 {far}")

    def call(self, node: Node) -> str:
        function, *given = get_children(node)
        words = []
        for each in given:
            kind = "ptr" if "[" in each["type"] or "*" in each["type"] else "i32"
            how = " signext" if kind == "i32" else ""
            words.append(f"{kind}{how} {self.expression(each)}")
        line = f"@{function['name']}({', '.join(words)})"
        if node["type"] == "void":
            self.emit(f"call void {line}")
            return ""
        return self.value(f"call signext i32 {line}")


def generate_module(tree: Node) -> str:
    """Return the IR of a program."""
    text, globals = [RUNTIME], dict[str, str]()
    for node in get_children(tree):
        if node["kind"] == "VarDecl":
            globals[node["name"]] = f"@{node['name']}"
            first = get_children(node)[0] if get_children(node) else None
            how = "constant" if node["type"].startswith("const") else "global"
            text.append(f"@{node['name']} = {how} {format_initial_value(first, node['type'])}\n")
        elif get_children(node) and get_children(node)[-1]["kind"] == "CompoundStmt":
            text.append(FunctionGenerator(node, globals).text)
    return "\n".join(text)


def main(given: str, to: str) -> None:
    """Read the tree, write the IR."""
    Path(to).write_text(generate_module(json.loads(Path(given).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
