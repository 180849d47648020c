"""Parse LLVM IR as clang generates it for the small C: functions, blocks, instructions.

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
BINARY_OPERATIONS = frozenset(
    ["add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor"]
)  # fmt: skip
CASTS = frozenset(["sext", "zext", "trunc", "ptrtoint", "inttoptr", "bitcast"])
TERMINATORS = frozenset(("br", "switch", "ret", "unreachable"))


@dataclass
class IrInstruction:
    """One instruction; `type` is its operand type."""

    op: str
    result: str = ""
    type: str = ""
    args: "list[str]" = field(default_factory=list)
    labels: "list[str]" = field(default_factory=list)
    """Targets of a branch, or the predecessors of a phi's values."""
    types: "list[str]" = field(default_factory=list)
    """Types of a call's arguments, or of a getelementptr's indices."""
    how: str = ""
    """Predicate of an icmp, result type of a cast, or the called function."""

    @property
    def gives(self) -> str:
        """The type of the result."""
        if self.op == "icmp":
            return "i1"
        if self.op in ("getelementptr", "alloca"):
            return "ptr"
        return self.how if self.op in CASTS else self.type


@dataclass
class IrBlock:
    name: str
    body: "list[IrInstruction]" = field(default_factory=list)

    @property
    def last(self) -> IrInstruction:
        return self.body[-1]

    @property
    def after(self) -> "list[str]":
        """The successors, without duplicates."""
        return list(dict.fromkeys(self.last.labels))


@dataclass
class IrFunction:
    head: str
    name: str
    gives: str
    parameters: "list[tuple[str, str]]"
    """Type and name of each."""
    blocks: "list[IrBlock]" = field(default_factory=list)


@dataclass
class IrModule:
    globals: "list[tuple[str, str, str]]" = field(default_factory=list)
    """Name, type, and full line of each."""
    functions: "list[IrFunction]" = field(default_factory=list)
    rest: "list[str]" = field(default_factory=list)
    """All other lines."""


class IrLine:
    """A tokeniser for the words of one line."""

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
        """Skip attributes: words with parentheses or a number after them."""
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
            size, kind = (
                (compute_type_size(kind), kind)
                if not size
                else (compute_type_size(get_element_type(kind)), get_element_type(kind))
            )
            far += int(self.take()) * size
        self.take(")")
        return f"{name}+{far}" if far else name


VALUES = frozenset(
    ["true", "false", "null", "undef", "poison", "zeroinitializer", "getelementptr", "none"]
)


def compute_type_size(kind: str) -> int:
    """Return the size of a type in memory, in bytes."""
    if kind.startswith("["):
        return int(kind[1 : kind.index(" ")]) * compute_type_size(get_element_type(kind))
    if kind == "ptr":
        return 8
    bits = int(kind[1:])
    return max(1, 1 << ((bits + 7) // 8 - 1).bit_length())


def get_element_type(kind: str) -> str:
    """Return the element type of an array."""
    return kind[kind.index(" x ") + 3 : -1]


def parse_ir_module(text: str) -> IrModule:
    """Parse a module. Raises ValueError for unsupported syntax."""
    module, function = IrModule(), None
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("define"):
            function = parse_function_head(line)
            module.functions.append(function)
        elif line.startswith("}"):
            function = None
        elif function is None:
            if line.startswith("@"):
                module.globals.append(parse_global(line))
            elif line.strip():
                module.rest.append(line)
        elif label := re.match(r'([\w.$]+|"[^"]*"):', line):
            function.blocks.append(IrBlock(name=f"%{label[1]}"))
        elif line.strip() and not line.strip().startswith(";"):
            whole = line
            while whole.count("[") > whole.count("]"):
                whole += " " + next(lines).strip()
            if not function.blocks:
                function.blocks.append(IrBlock(name=find_entry_label(function)))
            function.blocks[-1].body.append(parse_instruction(whole))
    return module


def find_entry_label(function: IrFunction) -> str:
    """Return the implicit label of the first block: the number after the parameters'."""
    named = [name for _, name in function.parameters]
    return f"%{len(named)}" if all(name[1:].isdigit() for name in named) else "%entry"


def parse_function_head(text: str) -> IrFunction:
    """Parse a `define` line into a function without blocks."""
    line = IrLine(text)
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
    return IrFunction(head=text, name=name, gives=gives, parameters=parameters)


def parse_global(text: str) -> "tuple[str, str, str]":
    """Return a global's name, type and full line."""
    line = IrLine(text)
    name = line.take()
    line.take("=")
    while not line.sees("global", "constant"):
        line.take()
    line.take()
    return name, line.type(), text


def parse_instruction(text: str) -> IrInstruction:
    """Parse one line."""
    line = IrLine(text)
    result = ""
    if line.words[1:2] == ["="]:
        result = line.take()
        line.take("=")
    line.flags()
    op = line.take()
    line.flags()
    made = IrInstruction(op=op, result=result)
    if op in BINARY_OPERATIONS:
        made.type = line.type()
        made.args = [line.value(), line.take(",") and line.value()]
    elif op in CASTS:
        made.type, made.args = line.type(), [line.value()]
        line.take("to")
        made.how = line.type()
    else:
        OTHERS[op](line, made) if op in OTHERS else reject_instruction(line)
    return made


def reject_instruction(line: IrLine) -> None:
    """Raise ValueError for an unsupported instruction."""
    raise ValueError(f"{' '.join(line.words)}: not understood")


def parse_icmp(line: IrLine, made: IrInstruction) -> None:
    """`icmp HOW TYPE A, B`."""
    made.how = line.take()
    made.type = line.type()
    made.args = [line.value(), line.take(",") and line.value()]


def parse_load(line: IrLine, made: IrInstruction) -> None:
    """`load TYPE, ptr P`."""
    made.type = line.type()
    line.take(",")
    line.take("ptr")
    made.args = [line.value()]


def parse_store(line: IrLine, made: IrInstruction) -> None:
    """`store TYPE V, ptr P`."""
    made.type, made.args = line.type(), [line.value()]
    line.take(",")
    line.take("ptr")
    made.args.append(line.value())


def parse_getelementptr(line: IrLine, made: IrInstruction) -> None:
    """`getelementptr TYPE, ptr P, INDICES`."""
    made.type = line.type()
    line.take(",")
    line.take("ptr")
    made.args = [line.value()]
    while line.takes(","):
        made.types.append(line.type())
        made.args.append(line.value())


def parse_branch(line: IrLine, made: IrInstruction) -> None:
    """`br label %x`, or a conditional branch with two labels."""
    if not line.takes("label"):
        made.type, made.args = line.type(), [line.value()]
        line.take(",")
        line.take("label")
    made.labels.append(line.take())
    if line.takes(","):
        line.take("label")
        made.labels.append(line.take())


def parse_switch(line: IrLine, made: IrInstruction) -> None:
    """`switch TYPE V, label %else [ TYPE N, label %x ... ]`."""
    parse_branch(line, made)
    line.take("[")
    while not line.takes("]"):
        line.type()
        made.args.append(line.take())
        line.take(",")
        line.take("label")
        made.labels.append(line.take())


def parse_phi(line: IrLine, made: IrInstruction) -> None:
    """`phi TYPE [ V, %from ], ...`."""
    made.type = line.type()
    while not made.args or line.takes(","):
        line.take("[")
        made.args.append(line.value())
        line.take(",")
        made.labels.append(line.take())
        line.take("]")


def parse_select(line: IrLine, made: IrInstruction) -> None:
    """`select i1 C, TYPE A, TYPE B`."""
    line.type()
    made.args = [line.value()]
    for _ in range(2):
        line.take(",")
        made.type = line.type()
        made.args.append(line.value())


def parse_call(line: IrLine, made: IrInstruction) -> None:
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


def parse_ret(line: IrLine, made: IrInstruction) -> None:
    """`ret TYPE V`, or `ret void`."""
    made.type = line.type()
    if made.type != "void":
        made.args = [line.value()]


def parse_alloca(line: IrLine, made: IrInstruction) -> None:
    """`alloca TYPE`."""
    made.type = line.type()


def parse_freeze(line: IrLine, made: IrInstruction) -> None:
    """`freeze TYPE V`."""
    made.type, made.args = line.type(), [line.value()]


def parse_unreachable(line: IrLine, made: IrInstruction) -> None:
    """`unreachable` has no operands."""


OTHERS = {
    "icmp": parse_icmp,
    "load": parse_load,
    "store": parse_store,
    "getelementptr": parse_getelementptr,
    "br": parse_branch,
    "switch": parse_switch,
    "phi": parse_phi,
    "select": parse_select,
    "call": parse_call,
    "ret": parse_ret,
    "alloca": parse_alloca,
    "freeze": parse_freeze,
    "unreachable": parse_unreachable,
}
