"""T5: LLVM IR into assembly for RV64IM. Usage: run IR ASSEMBLY.

Every value has a home for the whole function: the most used ones, weighted by how deep in loops
they are used, one of the eleven registers that calls keep; the others a place on the stack. A
value of less than 64 bits is kept with its sign extended, one of one bit as 0 or 1.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from scenarios.compiler.solutions.ir import (
    Block,
    Function,
    Instruction,
    Module,
    inner,
    measure,
    read,
)

KEPT = [f"s{n}" for n in range(1, 12)]
ZEROES = frozenset(("false", "null", "undef", "poison", "zeroinitializer", "none"))
NARROW = {
    "add": "addw", "sub": "subw", "mul": "mulw", "sdiv": "divw", "udiv": "divuw",
    "srem": "remw", "urem": "remuw", "shl": "sllw", "lshr": "srlw", "ashr": "sraw",
}  # fmt: skip
WIDE = {
    "add": "add", "sub": "sub", "mul": "mul", "sdiv": "div", "udiv": "divu", "srem": "rem",
    "urem": "remu", "shl": "sll", "lshr": "srl", "ashr": "sra", "and": "and", "or": "or",
    "xor": "xor",
}  # fmt: skip
IMMEDIATE = {"add": "addi", "and": "andi", "or": "ori", "xor": "xori"}
BRANCHES = {
    "eq": "beq {0}, {1}", "ne": "bne {0}, {1}", "slt": "blt {0}, {1}", "sge": "bge {0}, {1}",
    "sgt": "blt {1}, {0}", "sle": "bge {1}, {0}", "ult": "bltu {0}, {1}", "uge": "bgeu {0}, {1}",
    "ugt": "bltu {1}, {0}", "ule": "bgeu {1}, {0}",
}  # fmt: skip
LOADS = {1: "lb", 2: "lh", 4: "lw", 8: "ld"}
STORES = {1: "sb", 2: "sh", 4: "sw", 8: "sd"}
COPIES = ("@memset", "@memcpy", "@memmove")


def bits(kind: str) -> int:
    """The width of a value; ValueError where it does not fit into a register."""
    width = 64 if kind == "ptr" else int(kind[1:])
    if width > 64:
        raise ValueError(f"{kind} does not fit into a register")
    return width


def loops(function: Function) -> "dict[str, int]":
    """How deep in loops each block is: a branch back makes one of all blocks in between."""
    place = {block.name: at for at, block in enumerate(function.blocks)}
    depth = dict.fromkeys(place, 0)
    for at, block in enumerate(function.blocks):
        for label in block.after:
            for between in function.blocks[place[label] : at + 1]:
                depth[between.name] += 1
    return depth


class Code:
    """The assembly of one function."""

    def __init__(self, function: Function, number: int) -> None:
        self.function, self.number = function, number
        self.lines: list[str] = []
        self.made = 0
        self.types = dict((name, kind) for kind, name in function.parameters)
        self.allocas: dict[str, int] = {}
        self.fused: dict[str, Instruction] = {}
        for block in function.blocks:
            for each in block.body:
                if each.result:
                    self.types[each.result] = each.gives
        self.uses = self.counted()
        self.fuse()
        self.homes: dict[str, str | int] = {}
        self.frame = self.settle()

    def counted(self) -> "Counter[str]":
        depth = loops(self.function)
        found: Counter[str] = Counter()
        for block in self.function.blocks:
            for each in block.body:
                names = [*each.args, each.result]
                for name in names:
                    if name in self.types:
                        found[name] += 10 ** min(depth[block.name], 6)
        return found

    def fuse(self) -> None:
        """A comparison that only its block's branch looks at is made by the branch."""
        used = Counter(
            arg for block in self.function.blocks for each in block.body for arg in each.args
        )
        for block in self.function.blocks:
            last = block.last
            if last.op != "br" or not last.args or used[last.args[0]] != 1:
                continue
            for each in block.body:
                if each.result == last.args[0] and each.op == "icmp" and each.type != "i1":
                    self.fused[each.result] = each

    def settle(self) -> int:
        """Give every value its home; the size of the frame."""
        calls = [each for block in self.function.blocks for each in block.body if each.op == "call"]
        at = max([0, *(8 * (len(each.args) - 8) for each in calls)])
        names = [name for name in self.types if name not in self.fused]
        for block in self.function.blocks:
            for each in block.body:
                if each.op == "alloca":
                    names.remove(each.result)
        best = sorted(names, key=lambda name: -self.uses[name])
        for name, register in zip(best, KEPT, strict=False):
            self.homes[name] = register
        self.saved = [str(self.homes[name]) for name in best[: len(KEPT)]]
        for name in best[len(KEPT) :]:
            self.homes[name] = at
            at += 8
        self.saves = at
        at += 8 * (len(self.saved) + 1)
        for block in self.function.blocks:
            for each in block.body:
                if each.op == "alloca":
                    self.allocas[each.result] = at
                    at += (measure(each.type) + 7) // 8 * 8
        return (at + 15) // 16 * 16

    def emit(self, line: str) -> None:
        self.lines.append(f"\t{line}")

    def label(self, block: str) -> str:
        return f".L{self.number}_{block[1:]}".replace('"', "")

    def fresh(self) -> str:
        self.made += 1
        return f".L{self.number}__{self.made}"

    def far(self, op: str, register: str, offset: int, base: str = "sp") -> None:
        """A load, store or sum with an offset of any size; t6 is used up."""
        if -2048 <= offset < 2048:
            text = (
                f"{register}, {base}, {offset}" if op == "addi" else f"{register}, {offset}({base})"
            )
            self.emit(f"{op} {text}")
            return
        self.emit(f"li t6, {offset}")
        self.emit(f"add t6, t6, {base}")
        self.emit(f"mv {register}, t6" if op == "addi" else f"{op} {register}, 0(t6)")

    def get(self, value: str, spare: str) -> str:
        """The register in which a value is; `spare` where it had none."""
        number = self.constant(value)
        if number == 0:
            return "zero"
        if number is not None:
            self.emit(f"li {spare}, {number}")
        elif value.startswith("@"):
            self.emit(f"la {spare}, {value[1:]}")
        elif value in self.allocas:
            self.far("addi", spare, self.allocas[value])
        else:
            home = self.homes[value]
            if isinstance(home, str):
                return home
            self.far("ld", spare, home)
        return spare

    def constant(self, value: str) -> "int | None":
        if value in ZEROES:
            return 0
        if value == "true":
            return 1
        return int(value) if re.fullmatch(r"-?\d+", value) else None

    def into(self, name: str) -> str:
        """The register in which a result is to be made."""
        home = self.homes[name]
        return home if isinstance(home, str) else "t0"

    def keep(self, name: str, register: str = "") -> None:
        """Bring a result home."""
        home = self.homes[name]
        if isinstance(home, int):
            self.far("sd", register or "t0", home)
        elif register and register != home:
            self.emit(f"mv {home}, {register}")

    def whole(self) -> "list[str]":
        function = self.function
        name = function.name[1:]
        self.lines += ["\t.text", f"\t.globl {name}", "\t.p2align 2", f"{name}:"]
        self.far("addi", "sp", -self.frame)
        for at, register in enumerate(["ra", *self.saved]):
            self.far("sd", register, self.saves + 8 * at)
        for at, (_, parameter) in enumerate(function.parameters):
            if at < 8:
                self.keep(parameter, f"a{at}")
            else:
                self.far("ld", "t0", self.frame + 8 * (at - 8))
                self.keep(parameter, "t0")
        for at, block in enumerate(function.blocks):
            self.lines.append(f"{self.label(block.name)}:")
            following = function.blocks[at + 1].name if at + 1 < len(function.blocks) else ""
            for each in block.body:
                self.one(block, each, following)
        return self.lines

    def one(self, block: Block, each: Instruction, following: str) -> None:
        if each.result in self.fused or each.op in ("phi", "alloca"):
            return
        if each.op in WIDE:
            self.arithmetic(each)
        elif each.op in ("br", "switch"):
            self.leave(block, each, following)
        else:
            getattr(self, f"do_{each.op}")(each)

    def arithmetic(self, each: Instruction) -> None:
        width, to = bits(each.type), self.into(each.result)
        number = self.constant(each.args[1])
        if number is not None and each.op == "sub":
            number = -number
        small = number is not None and -2048 <= number < 2048
        op = "add" if each.op == "sub" and small else each.op
        if small and op in IMMEDIATE and width in (1, 32, 64):
            narrow = "w" if width == 32 and op == "add" else ""
            self.emit(f"{IMMEDIATE[op]}{narrow} {to}, {self.get(each.args[0], 't0')}, {number}")
            if width == 1:
                self.emit(f"andi {to}, {to}, 1")
        else:
            left, right = self.get(each.args[0], "t0"), self.get(each.args[1], "t1")
            if width not in (1, 32, 64) and each.op in ("udiv", "urem", "lshr"):
                left, right = self.zeroed(left, "t0", width), self.zeroed(right, "t1", width)
            table = NARROW if width == 32 and each.op in NARROW else WIDE
            self.emit(f"{table[each.op]} {to}, {left}, {right}")
            if width not in (32, 64):
                self.trimmed(to, to, width)
        self.keep(each.result)

    def zeroed(self, register: str, to: str, width: int) -> str:
        """The value with zeroes above it."""
        if width < 12:
            self.emit(f"andi {to}, {register}, {(1 << width) - 1}")
        elif width < 64:
            self.emit(f"slli {to}, {register}, {64 - width}")
            self.emit(f"srli {to}, {to}, {64 - width}")
        else:
            return register
        return to

    def trimmed(self, to: str, register: str, width: int) -> None:
        """The value with its sign extended, or a bit alone."""
        if width == 1:
            self.emit(f"andi {to}, {register}, 1")
        elif width == 32:
            self.emit(f"sext.w {to}, {register}")
        elif width < 64:
            self.emit(f"slli {to}, {register}, {64 - width}")
            self.emit(f"srai {to}, {to}, {64 - width}")
        elif to != register:
            self.emit(f"mv {to}, {register}")

    def do_icmp(self, each: Instruction) -> None:
        to = self.into(each.result)
        left, right = self.compared(each)
        how = each.how
        if how in ("eq", "ne"):
            if right != "zero":
                self.emit(f"xor t0, {left}, {right}")
                left = "t0"
            self.emit(f"{'seqz' if how == 'eq' else 'snez'} {to}, {left}")
        else:
            if how[1:] in ("gt", "le"):
                left, right = right, left
            self.emit(f"slt{'u' if how[0] == 'u' else ''} {to}, {left}, {right}")
            if how[1:] in ("le", "ge"):
                self.emit(f"xori {to}, {to}, 1")
        self.keep(each.result)

    def compared(self, each: Instruction) -> "tuple[str, str]":
        left, right = self.get(each.args[0], "t0"), self.get(each.args[1], "t1")
        if each.type == "i1" and each.how[0] == "s":
            self.emit(f"neg t0, {left}")
            self.emit(f"neg t1, {right}")
            return "t0", "t1"
        return left, right

    def do_sext(self, each: Instruction) -> None:
        to, value = self.into(each.result), self.get(each.args[0], "t0")
        if each.type == "i1":
            self.emit(f"neg {to}, {value}")
        elif to != value:
            self.emit(f"mv {to}, {value}")
        self.keep(each.result)

    def do_zext(self, each: Instruction) -> None:
        to, value = self.into(each.result), self.get(each.args[0], "t0")
        if each.type != "i1":
            value = self.zeroed(value, to, bits(each.type))
        if to != value:
            self.emit(f"mv {to}, {value}")
        self.keep(each.result)

    def do_trunc(self, each: Instruction) -> None:
        to = self.into(each.result)
        self.trimmed(to, self.get(each.args[0], "t0"), bits(each.how))
        self.keep(each.result)

    def do_freeze(self, each: Instruction) -> None:
        self.keep(each.result, self.get(each.args[0], "t0"))

    do_ptrtoint = do_inttoptr = do_bitcast = do_freeze

    def do_load(self, each: Instruction) -> None:
        to = self.into(each.result)
        self.access(LOADS[measure(each.type)], to, each.args[0])
        if each.type == "i1":
            self.emit(f"andi {to}, {to}, 1")
        self.keep(each.result)

    def do_store(self, each: Instruction) -> None:
        self.access(STORES[measure(each.type)], self.get(each.args[0], "t0"), each.args[1])

    def access(self, op: str, register: str, pointer: str) -> None:
        if pointer in self.allocas:
            self.far(op, register, self.allocas[pointer])
        else:
            self.emit(f"{op} {register}, 0({self.get(pointer, 't1')})")

    def do_getelementptr(self, each: Instruction) -> None:
        to, kind = self.into(each.result), each.type
        base = self.get(each.args[0], "t0")
        for nth, (index, _width) in enumerate(zip(each.args[1:], each.types, strict=False)):
            if nth:
                kind = inner(kind)
            base = self.moved(base, index, measure(kind), to)
        if base != to:
            self.emit(f"mv {to}, {base}")
        self.keep(each.result)

    def moved(self, base: str, index: str, size: int, to: str) -> str:
        """An address `size` times `index` further on."""
        number = self.constant(index)
        if number is not None:
            if number:
                self.far("addi", to, number * size, base)
                return to
            return base
        steps = self.get(index, "t1")
        if size & (size - 1):
            self.emit(f"li t2, {size}")
            self.emit(f"mul t1, {steps}, t2")
        elif size > 1:
            self.emit(f"slli t1, {steps}, {size.bit_length() - 1}")
        self.emit(f"add {to}, {base}, {'t1' if size > 1 else steps}")
        return to

    def do_select(self, each: Instruction) -> None:
        end = self.fresh()
        condition = self.get(each.args[0], "t0")
        yes, no = self.get(each.args[1], "t1"), self.get(each.args[2], "t2")
        self.emit(f"mv t3, {yes}")
        self.emit(f"bnez {condition}, {end}")
        self.emit(f"mv t3, {no}")
        self.lines.append(f"{end}:")
        self.keep(each.result, "t3")

    def do_call(self, each: Instruction) -> None:
        if each.how.startswith("@llvm."):
            self.intrinsic(each)
            return
        for at, value in enumerate(each.args):
            if at < 8:
                self.argument(value, f"a{at}")
            else:
                self.far("sd", self.get(value, "t0"), 8 * (at - 8))
        self.emit(f"call {each.how[1:]}")
        if each.result:
            self.keep(each.result, "a0")

    def argument(self, value: str, register: str) -> None:
        found = self.get(value, register)
        if found != register:
            self.emit(f"mv {register}, {found}")

    def intrinsic(self, each: Instruction) -> None:
        name = each.how.split(".")[1]
        if f"@{name}" in COPIES:
            for at in range(3):
                self.argument(each.args[at], f"a{at}")
            self.emit(f"call {name}")
        elif name in ("smax", "smin", "umax", "umin"):
            end = self.fresh()
            left, right = self.get(each.args[0], "t0"), self.get(each.args[1], "t1")
            self.emit(f"mv t3, {left}")
            how = BRANCHES[f"{name[0]}{'ge' if name[1:] == 'max' else 'le'}"]
            self.emit(f"{how.format(left, right)}, {end}")
            self.emit(f"mv t3, {right}")
            self.lines.append(f"{end}:")
            self.keep(each.result, "t3")
        elif name == "abs":
            value = self.get(each.args[0], "t0")
            self.emit(f"srai t1, {value}, 63")
            self.emit(f"xor t3, {value}, t1")
            self.emit("sub t3, t3, t1")
            self.trimmed("t3", "t3", bits(each.type))
            self.keep(each.result, "t3")
        elif each.result:
            raise ValueError(f"{each.how}: not understood")

    def do_ret(self, each: Instruction) -> None:
        if each.args:
            self.argument(each.args[0], "a0")
        for at, register in enumerate(["ra", *self.saved]):
            self.far("ld", register, self.saves + 8 * at)
        self.far("addi", "sp", self.frame)
        self.emit("ret")

    def do_unreachable(self, each: Instruction) -> None:
        self.emit("ebreak")

    def leave(self, block: Block, each: Instruction, following: str) -> None:
        """Go on in another block, with the values of its phis in place."""
        if each.op == "switch":
            value = self.get(each.args[0], "t0")
            for number, label in zip(each.args[1:], each.labels[1:], strict=False):
                self.emit(f"li t1, {number}")
                self.edge(block, label, f"bne {value}, t1, {{}}", f"beq {value}, t1, {{}}")
        elif each.args:
            test = self.fused.get(each.args[0])
            if test is not None:
                registers = self.compared(test)
                go, skip = BRANCHES[test.how], BRANCHES[OPPOSITE[test.how]]
                yes, no = f"{go.format(*registers)}, {{}}", f"{skip.format(*registers)}, {{}}"
            else:
                register = self.get(each.args[0], "t0")
                yes, no = f"bnez {register}, {{}}", f"beqz {register}, {{}}"
            self.edge(block, each.labels[0], no, yes)
        label = each.labels[0] if each.op == "switch" else each.labels[-1]
        self.copies(block.name, label)
        if label != following:
            self.emit(f"j {self.label(label)}")

    def edge(self, block: Block, label: str, skip: str, go: str) -> None:
        """Go to a block if a test says so; where it has phis, around their copies if not."""
        if not self.phis(label):
            self.emit(go.format(self.label(label)))
            return
        around = self.fresh()
        self.emit(skip.format(around))
        self.copies(block.name, label)
        self.emit(f"j {self.label(label)}")
        self.lines.append(f"{around}:")

    def phis(self, label: str) -> "list[Instruction]":
        block = next(block for block in self.function.blocks if block.name == label)
        return [each for each in block.body if each.op == "phi"]

    def copies(self, come: str, label: str) -> None:
        """All phis take their values at once: a value is copied before its home is written."""
        waiting: list[tuple[str, str]] = []
        for each in self.phis(label):
            value = each.args[each.labels.index(come)]
            if value != each.result:
                waiting.append((each.result, value))
        held: dict[str, str] = {}
        while waiting:
            needed = {held.get(value, value) for _, value in waiting}
            free = [pair for pair in waiting if pair[0] not in needed]
            if not free:  # a circle: one of them is put aside
                name = waiting[0][0]
                register = self.get(name, "t4")
                if register != "t4":
                    self.emit(f"mv t4, {register}")
                held[name] = "t4"
                continue
            for pair in free:
                self.take(pair[0], pair[1], held)
                waiting.remove(pair)
                if held.get(pair[1]) == "t4" and all(value != pair[1] for _, value in waiting):
                    held.clear()

    def take(self, name: str, value: str, held: "dict[str, str]") -> None:
        if value in held:
            self.keep(name, held[value])
            return
        to = self.into(name)
        self.keep(name, self.get(value, to))


OPPOSITE = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip
PIECE = re.compile(r"\[\d+ x |[\[\]]|zeroinitializer|c\"[^\"]*\"|-?\d+|true|false|i\d+")


def data(name: str, kind: str, line: str) -> "list[str]":
    """A global with its initial value."""
    text = line.partition(f"{kind} ")[2] if kind.startswith("[") else line
    value = text if kind.startswith("[") else line.partition(f" {kind} ")[2]
    words = [word for word in numbers(kind, value)]
    where = "\t.rodata" if " constant " in line else "\t.data"
    section = "\t.section .rodata" if where == "\t.rodata" else "\t.data"
    return [section, "\t.p2align 3", f"\t.globl {name[1:]}", f"{name[1:]}:", *words]


def numbers(kind: str, text: str) -> "list[str]":
    """The directives for a value of a type, which stands at the beginning of a text."""
    text = text.strip()
    if text.startswith(("zeroinitializer", "undef", "poison")):
        return [f"\t.zero {measure(kind)}"]
    if text.startswith('c"'):
        inside = text[2 : text.index('"', 2)]
        codes = re.findall(r"\\[0-9A-Fa-f]{2}|.", inside, re.DOTALL)
        return [f"\t.byte {int(c[1:], 16) if len(c) == 3 else ord(c)}" for c in codes]
    if kind.startswith("["):
        found: list[str] = []
        for part in parts(text):
            found += numbers(inner(kind), part.strip()[len(inner(kind)) :])
        return found
    word = text.replace(",", " ").split()[0]
    number = {"true": 1, "false": 0, "null": 0}.get(word)
    directive = {1: ".byte", 2: ".half", 4: ".word", 8: ".dword"}[measure(kind)]
    return [f"\t{directive} {int(word) if number is None else number}"]


def parts(text: str) -> "list[str]":
    """What stands between the outermost brackets at the beginning, cut at its commas."""
    depth, begun, found = 0, 1, list[str]()
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                return [*found, text[begun:at]]
        elif letter == "," and depth == 1:
            found.append(text[begun:at])
            begun = at + 1
    raise ValueError(f"{text}: a bracket is missing")


def assembly(module: Module) -> str:
    """The whole module."""
    lines: list[str] = []
    for number, function in enumerate(module.functions):
        lines += Code(function, number).whole()
    for name, kind, line in module.globals:
        lines += data(name, kind, line)
    return "\n".join(lines) + "\n"


def main(given: str, to: str) -> None:
    """Read the IR, write the assembly."""
    Path(to).write_text(assembly(read(Path(given).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
