"""Reading LLVM IR as clang writes it for the small C: functions, blocks, instructions.

Attributes, flags and metadata are dropped. A pointer that is a constant expression over a global
becomes `@name` or `@name+offset`.
"""

import re
from dataclasses import dataclass, field

WORD = re.compile(
    r'c"[^"]*"|"[^"]*"|[%@][\w.$]+|[%@]"[^"]*"|-?\d+|[\w.]+|\.\.\.|[()\[\]{}<>,=:*#!]'
)
COMMENT = re.compile(r"\s*;.*$")
TYPE = re.compile(r"i\d+|ptr|void")
FLAGS = frozenset(
    [
        "nuw",
        "nsw",
        "nusw",
        "exact",
        "disjoint",
        "nneg",
        "samesign",
        "inbounds",
        "tail",
        "musttail",
        "notail",
        "fast",
        "volatile",
    ]
)
TWO = frozenset(
    ["add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor"]
)  # fmt: skip
CASTS = frozenset(["sext", "zext", "trunc", "ptrtoint", "inttoptr", "bitcast"])
ENDS = frozenset(("br", "switch", "ret", "unreachable"))


@dataclass
class Instruction:
    """One instruction; `type` is that of what it computes with."""

    op: str
    result: str = ""
    type: str = ""
    args: "list[str]" = field(default_factory=list)
    labels: "list[str]" = field(default_factory=list)
    """Where a branch leads, or where the values of a phi come from."""
    types: "list[str]" = field(default_factory=list)
    """Of the arguments of a call, or the indices of a getelementptr."""
    how: str = ""
    """The predicate of an icmp, the type that a cast gives, the function that is called."""

    @property
    def gives(self) -> str:
        """The type of the result."""
        if self.op == "icmp":
            return "i1"
        if self.op in ("getelementptr", "alloca"):
            return "ptr"
        return self.how if self.op in CASTS else self.type


@dataclass
class Block:
    name: str
    body: "list[Instruction]" = field(default_factory=list)

    @property
    def last(self) -> Instruction:
        return self.body[-1]

    @property
    def after(self) -> "list[str]":
        """Where it leads, each once."""
        return list(dict.fromkeys(self.last.labels))


@dataclass
class Function:
    head: str
    name: str
    gives: str
    parameters: "list[tuple[str, str]]"
    """Type and name of each."""
    blocks: "list[Block]" = field(default_factory=list)


@dataclass
class Module:
    globals: "list[tuple[str, str, str]]" = field(default_factory=list)
    """Name, type, and the whole line of each."""
    functions: "list[Function]" = field(default_factory=list)
    rest: "list[str]" = field(default_factory=list)
    """All other lines."""


class Line:
    """The words of one line."""

    def __init__(self, text: str) -> None:
        self.words = WORD.findall(COMMENT.sub("", text) if '"' not in text else text)
        self.at = 0

    def sees(self, *words: str) -> bool:
        return self.at < len(self.words) and self.words[self.at] in words

    def take(self, word: str = "") -> str:
        if self.at == len(self.words) or (word and self.words[self.at] != word):
            raise ValueError(f"{' '.join(self.words)}: {word or 'a word'} is missing at {self.at}")
        self.at += 1
        return str(self.words[self.at - 1])

    def takes(self, word: str) -> bool:
        if self.sees(word):
            self.at += 1
            return True
        return False

    def flags(self) -> None:
        while self.sees(*FLAGS):
            self.at += 1

    def type(self) -> str:
        if self.takes("["):
            count = self.take()
            self.take("x")
            whole = f"[{count} x {self.type()}]"
            self.take("]")
            return whole
        found = self.take()
        if not TYPE.fullmatch(found):
            raise ValueError(f"{' '.join(self.words)}: {found} is no type that is known here")
        return found

    def attributes(self) -> None:
        """All up to the value: words, with parentheses or a number behind them."""
        while self.at < len(self.words):
            word = self.words[self.at]
            if word == "align":
                self.at += 2
            elif re.fullmatch(r"[a-z_]+", word) and word not in VALUES:
                self.at += 1
                if self.sees("("):
                    self.parentheses()
            else:
                return

    def parentheses(self) -> None:
        depth = 0
        while True:
            word = self.take()
            depth += (word == "(") - (word == ")")
            if depth == 0:
                return

    def value(self) -> str:
        self.attributes()
        if self.sees("getelementptr"):
            return self.address()
        return self.take()

    def address(self) -> str:
        self.take("getelementptr")
        self.flags()
        self.take("(")
        kind = self.type()
        self.take(",")
        self.type()
        name, _, offset = self.value().partition("+")
        far, size = int(offset or 0), 0
        while self.takes(","):
            self.type()
            size, kind = (measure(kind), kind) if not size else (measure(inner(kind)), inner(kind))
            far += int(self.take()) * size
        self.take(")")
        return f"{name}+{far}" if far else name


VALUES = frozenset(
    ["true", "false", "null", "undef", "poison", "zeroinitializer", "getelementptr", "none"]
)


def measure(kind: str) -> int:
    """Bytes that a value of a type takes in memory."""
    if kind.startswith("["):
        return int(kind[1 : kind.index(" ")]) * measure(inner(kind))
    if kind == "ptr":
        return 8
    bits = int(kind[1:])
    return max(1, 1 << ((bits + 7) // 8 - 1).bit_length())


def inner(kind: str) -> str:
    """The type of an element of an array."""
    return kind[kind.index(" x ") + 3 : -1]


def read(text: str) -> Module:
    """The module; ValueError for what is not understood."""
    module, function = Module(), None
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("define"):
            function = begun(line)
            module.functions.append(function)
        elif line.startswith("}"):
            function = None
        elif function is None:
            if line.startswith("@"):
                module.globals.append(declared(line))
            elif line.strip():
                module.rest.append(line)
        elif label := re.match(r'([\w.$]+|"[^"]*"):', line):
            function.blocks.append(Block(name=f"%{label[1]}"))
        elif line.strip() and not line.strip().startswith(";"):
            whole = line
            while whole.count("[") > whole.count("]"):
                whole += " " + next(lines).strip()
            if not function.blocks:
                function.blocks.append(Block(name=first(function)))
            function.blocks[-1].body.append(instruction(whole))
    return module


def first(function: Function) -> str:
    """What the first block is called where it has no label: the number after the parameters'."""
    named = [name for _, name in function.parameters]
    return f"%{len(named)}" if all(name[1:].isdigit() for name in named) else "%entry"


def begun(text: str) -> Function:
    """A function by its `define` line, without blocks yet."""
    line = Line(text)
    line.take("define")
    while not TYPE.fullmatch(line.words[line.at]):
        line.take()
        if line.sees("("):
            line.parentheses()
    gives, name = line.type(), line.take()
    line.take("(")
    parameters: list[tuple[str, str]] = []
    while not line.takes(")"):
        kind = line.type()
        parameters.append((kind, line.value()))
        line.takes(",")
    return Function(head=text, name=name, gives=gives, parameters=parameters)


def declared(text: str) -> "tuple[str, str, str]":
    """A global: its name, its type and what it begins with."""
    line = Line(text)
    name = line.take()
    line.take("=")
    while not line.sees("global", "constant"):
        line.take()
    line.take()
    return name, line.type(), text


def instruction(text: str) -> Instruction:
    """What one line says."""
    line = Line(text)
    result = ""
    if line.words[1:2] == ["="]:
        result = line.take()
        line.take("=")
    line.flags()
    op = line.take()
    line.flags()
    made = Instruction(op=op, result=result)
    if op in TWO:
        made.type = line.type()
        made.args = [line.value(), line.take(",") and line.value()]
    elif op in CASTS:
        made.type, made.args = line.type(), [line.value()]
        line.take("to")
        made.how = line.type()
    else:
        OTHERS[op](line, made) if op in OTHERS else unknown(line)
    return made


def unknown(line: Line) -> None:
    """Refuse an instruction that is not of the language."""
    raise ValueError(f"{' '.join(line.words)}: not understood")


def icmp(line: Line, made: Instruction) -> None:
    """`icmp HOW TYPE A, B`."""
    made.how = line.take()
    made.type = line.type()
    made.args = [line.value(), line.take(",") and line.value()]


def load(line: Line, made: Instruction) -> None:
    """`load TYPE, ptr P`."""
    made.type = line.type()
    line.take(",")
    line.take("ptr")
    made.args = [line.value()]


def store(line: Line, made: Instruction) -> None:
    """`store TYPE V, ptr P`."""
    made.type, made.args = line.type(), [line.value()]
    line.take(",")
    line.take("ptr")
    made.args.append(line.value())


def getelementptr(line: Line, made: Instruction) -> None:
    """`getelementptr TYPE, ptr P, INDICES`."""
    made.type = line.type()
    line.take(",")
    line.take("ptr")
    made.args = [line.value()]
    while line.takes(","):
        made.types.append(line.type())
        made.args.append(line.value())


def branch(line: Line, made: Instruction) -> None:
    """`br label %x`, or on a condition to one of two."""
    if not line.takes("label"):
        made.type, made.args = line.type(), [line.value()]
        line.take(",")
        line.take("label")
    made.labels.append(line.take())
    if line.takes(","):
        line.take("label")
        made.labels.append(line.take())


def switch(line: Line, made: Instruction) -> None:
    """`switch TYPE V, label %else [ TYPE N, label %x ... ]`."""
    branch(line, made)
    line.take("[")
    while not line.takes("]"):
        line.type()
        made.args.append(line.take())
        line.take(",")
        line.take("label")
        made.labels.append(line.take())


def phi(line: Line, made: Instruction) -> None:
    """`phi TYPE [ V, %from ], ...`."""
    made.type = line.type()
    while not made.args or line.takes(","):
        line.take("[")
        made.args.append(line.value())
        line.take(",")
        made.labels.append(line.take())
        line.take("]")


def select(line: Line, made: Instruction) -> None:
    """`select i1 C, TYPE A, TYPE B`."""
    line.type()
    made.args = [line.value()]
    for _ in range(2):
        line.take(",")
        made.type = line.type()
        made.args.append(line.value())


def call(line: Line, made: Instruction) -> None:
    """`call TYPE @name(ARGUMENTS)`."""
    while not TYPE.fullmatch(line.words[line.at]):
        line.take()
        if line.sees("("):
            line.parentheses()
    made.type, made.how = line.type(), line.take()
    line.take("(")
    while not line.takes(")"):
        made.types.append(line.type())
        made.args.append(line.value())
        line.takes(",")


def ret(line: Line, made: Instruction) -> None:
    """`ret TYPE V`, or of nothing."""
    made.type = line.type()
    if made.type != "void":
        made.args = [line.value()]


def alloca(line: Line, made: Instruction) -> None:
    """`alloca TYPE`."""
    made.type = line.type()


def freeze(line: Line, made: Instruction) -> None:
    """`freeze TYPE V`."""
    made.type, made.args = line.type(), [line.value()]


def nothing(line: Line, made: Instruction) -> None:
    """`unreachable` has no words behind it."""


OTHERS = {
    "icmp": icmp, "load": load, "store": store, "getelementptr": getelementptr, "br": branch,
    "switch": switch, "phi": phi, "select": select, "call": call, "ret": ret, "alloca": alloca,
    "freeze": freeze, "unreachable": nothing,
}  # fmt: skip
