"""T5: compile LLVM IR to assembly for RV64IM. Usage: run IR ASSEMBLY.

Every value has one home for the entire function: the most used ones, weighted by loop depth, one of
eleven callee-saved registers; the others a stack slot. A value of less than 64 bits is stored
sign-extended, one of one bit as 0 or 1.
"""

import re
import sys
from collections import Counter
from pathlib import Path

from scenarios.pipeline.compiler.solutions.ir import (
    IrBlock,
    IrFunction,
    IrInstruction,
    IrModule,
    compute_type_size,
    get_element_type,
    parse_ir_module,
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


def find_bit_width(kind: str) -> int:
    """Return the width of a value. Raises ValueError if it does not fit into a register."""
    width = 64 if kind == "ptr" else int(kind[1:])
    if width > 64:
        raise ValueError(f"{kind} does not fit into a register")
    return width


def compute_loop_depths(function: IrFunction) -> "dict[str, int]":
    """Return the loop depth of each block: a backward branch forms a loop of the blocks in
    between.
    """
    place = {block.name: at for at, block in enumerate(function.blocks)}
    depth = dict.fromkeys(place, 0)
    for at, block in enumerate(function.blocks):
        for label in block.after:
            for between in function.blocks[place[label] : at + 1]:
                depth[between.name] += 1
    return depth


class FunctionAssembler:
    """The assembly of one function."""

    def __init__(self, function: IrFunction, number: int) -> None:
        self.function, self.number = function, number
        self.lines: list[str] = []
        self.made = 0
        self.types = dict((name, kind) for kind, name in function.parameters)
        self.allocas: dict[str, int] = {}
        self.fused: dict[str, IrInstruction] = {}
        for block in function.blocks:
            for each in block.body:
                if each.result:
                    self.types[each.result] = each.gives
        self.uses = self.count_weighted_uses()
        self.find_fused_comparisons()
        self.homes: dict[str, str | int] = {}
        self.frame = self.assign_homes()

    def count_weighted_uses(self) -> "Counter[str]":
        depth = compute_loop_depths(self.function)
        found: Counter[str] = Counter()
        for block in self.function.blocks:
            for each in block.body:
                names = [*each.args, each.result]
                for name in names:
                    if name in self.types:
                        found[name] += 10 ** min(depth[block.name], 6)
        return found

    def find_fused_comparisons(self) -> None:
        """Find the comparisons used only by their block's branch, which does the comparison."""
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

    def assign_homes(self) -> int:
        """Assign a home to every value; return the size of the frame."""
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
                    at += (compute_type_size(each.type) + 7) // 8 * 8
        return (at + 15) // 16 * 16

    def emit(self, line: str) -> None:
        self.lines.append(f"\t{line}")

    def label(self, block: str) -> str:
        return f".L{self.number}_{block[1:]}".replace('"', "")

    def make_label(self) -> str:
        self.made += 1
        return f".L{self.number}__{self.made}"

    def emit_with_offset(self, op: str, register: str, offset: int, base: str = "sp") -> None:
        """Emit a load, store or addition with an offset of any size; clobbers t6."""
        if -2048 <= offset < 2048:
            text = (
                f"{register}, {base}, {offset}" if op == "addi" else f"{register}, {offset}({base})"
            )
            self.emit(f"{op} {text}")
            return
        self.emit(f"li t6, {offset}")
        self.emit(f"add t6, t6, {base}")
        self.emit(f"mv {register}, t6" if op == "addi" else f"{op} {register}, 0(t6)")

    def load_value(self, value: str, spare: str) -> str:
        """Return the register that contains a value; load it into `spare` if it has none."""
        number = self.parse_immediate(value)
        if number == 0:
            return "zero"
        if number is not None:
            self.emit(f"li {spare}, {number}")
        elif value.startswith("@"):
            self.emit(f"la {spare}, {value[1:]}")
        elif value in self.allocas:
            self.emit_with_offset("addi", spare, self.allocas[value])
        else:
            home = self.homes[value]
            if isinstance(home, str):
                return home
            self.emit_with_offset("ld", spare, home)
        return spare

    def parse_immediate(self, value: str) -> "int | None":
        if value in ZEROES:
            return 0
        if value == "true":
            return 1
        return int(value) if re.fullmatch(r"-?\d+", value) else None

    def find_target_register(self, name: str) -> str:
        """Return the register for computing a result."""
        home = self.homes[name]
        return home if isinstance(home, str) else "t0"

    def store_result(self, name: str, register: str = "") -> None:
        """Move a result to its home."""
        home = self.homes[name]
        if isinstance(home, int):
            self.emit_with_offset("sd", register or "t0", home)
        elif register and register != home:
            self.emit(f"mv {home}, {register}")

    def assemble(self) -> "list[str]":
        function = self.function
        name = function.name[1:]
        self.lines += ["\t.text", f"\t.globl {name}", "\t.p2align 2", f"{name}:"]
        self.emit_with_offset("addi", "sp", -self.frame)
        for at, register in enumerate(["ra", *self.saved]):
            self.emit_with_offset("sd", register, self.saves + 8 * at)
        for at, (_, parameter) in enumerate(function.parameters):
            if at < 8:
                self.store_result(parameter, f"a{at}")
            else:
                self.emit_with_offset("ld", "t0", self.frame + 8 * (at - 8))
                self.store_result(parameter, "t0")
        for at, block in enumerate(function.blocks):
            self.lines.append(f"{self.label(block.name)}:")
            following = function.blocks[at + 1].name if at + 1 < len(function.blocks) else ""
            for each in block.body:
                self.emit_instruction(block, each, following)
        return self.lines

    def emit_instruction(self, block: IrBlock, each: IrInstruction, following: str) -> None:
        if each.result in self.fused or each.op in ("phi", "alloca"):
            return
        if each.op in WIDE:
            self.emit_arithmetic(each)
        elif each.op in ("br", "switch"):
            self.emit_branch(block, each, following)
        else:
            getattr(self, f"do_{each.op}")(each)

    def emit_arithmetic(self, each: IrInstruction) -> None:
        width, to = find_bit_width(each.type), self.find_target_register(each.result)
        number = self.parse_immediate(each.args[1])
        if number is not None and each.op == "sub":
            number = -number
        small = number is not None and -2048 <= number < 2048
        op = "add" if each.op == "sub" and small else each.op
        if small and op in IMMEDIATE and width in (1, 32, 64):
            narrow = "w" if width == 32 and op == "add" else ""
            self.emit(
                f"{IMMEDIATE[op]}{narrow} {to}, {self.load_value(each.args[0], 't0')}, {number}"
            )
            if width == 1:
                self.emit(f"andi {to}, {to}, 1")
        else:
            left, right = self.load_value(each.args[0], "t0"), self.load_value(each.args[1], "t1")
            if width not in (1, 32, 64) and each.op in ("udiv", "urem", "lshr"):
                left, right = (
                    self.zero_extend(left, "t0", width),
                    self.zero_extend(right, "t1", width),
                )
            table = NARROW if width == 32 and each.op in NARROW else WIDE
            self.emit(f"{table[each.op]} {to}, {left}, {right}")
            if width not in (32, 64):
                self.sign_extend(to, to, width)
        self.store_result(each.result)

    def zero_extend(self, register: str, to: str, width: int) -> str:
        """Zero-extend a value; return its register."""
        if width < 12:
            self.emit(f"andi {to}, {register}, {(1 << width) - 1}")
        elif width < 64:
            self.emit(f"slli {to}, {register}, {64 - width}")
            self.emit(f"srli {to}, {to}, {64 - width}")
        else:
            return register
        return to

    def sign_extend(self, to: str, register: str, width: int) -> None:
        """Sign-extend a value, or mask a single bit."""
        if width == 1:
            self.emit(f"andi {to}, {register}, 1")
        elif width == 32:
            self.emit(f"sext.w {to}, {register}")
        elif width < 64:
            self.emit(f"slli {to}, {register}, {64 - width}")
            self.emit(f"srai {to}, {to}, {64 - width}")
        elif to != register:
            self.emit(f"mv {to}, {register}")

    def do_icmp(self, each: IrInstruction) -> None:
        to = self.find_target_register(each.result)
        left, right = self.load_comparison_operands(each)
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
        self.store_result(each.result)

    def load_comparison_operands(self, each: IrInstruction) -> "tuple[str, str]":
        left, right = self.load_value(each.args[0], "t0"), self.load_value(each.args[1], "t1")
        if each.type == "i1" and each.how[0] == "s":
            self.emit(f"neg t0, {left}")
            self.emit(f"neg t1, {right}")
            return "t0", "t1"
        return left, right

    def do_sext(self, each: IrInstruction) -> None:
        to, value = self.find_target_register(each.result), self.load_value(each.args[0], "t0")
        if each.type == "i1":
            self.emit(f"neg {to}, {value}")
        elif to != value:
            self.emit(f"mv {to}, {value}")
        self.store_result(each.result)

    def do_zext(self, each: IrInstruction) -> None:
        to, value = self.find_target_register(each.result), self.load_value(each.args[0], "t0")
        if each.type != "i1":
            value = self.zero_extend(value, to, find_bit_width(each.type))
        if to != value:
            self.emit(f"mv {to}, {value}")
        self.store_result(each.result)

    def do_trunc(self, each: IrInstruction) -> None:
        to = self.find_target_register(each.result)
        self.sign_extend(to, self.load_value(each.args[0], "t0"), find_bit_width(each.how))
        self.store_result(each.result)

    def do_freeze(self, each: IrInstruction) -> None:
        self.store_result(each.result, self.load_value(each.args[0], "t0"))

    do_ptrtoint = do_inttoptr = do_bitcast = do_freeze

    def do_load(self, each: IrInstruction) -> None:
        to = self.find_target_register(each.result)
        self.emit_access(LOADS[compute_type_size(each.type)], to, each.args[0])
        if each.type == "i1":
            self.emit(f"andi {to}, {to}, 1")
        self.store_result(each.result)

    def do_store(self, each: IrInstruction) -> None:
        self.emit_access(
            STORES[compute_type_size(each.type)], self.load_value(each.args[0], "t0"), each.args[1]
        )

    def emit_access(self, op: str, register: str, pointer: str) -> None:
        if pointer in self.allocas:
            self.emit_with_offset(op, register, self.allocas[pointer])
        else:
            self.emit(f"{op} {register}, 0({self.load_value(pointer, 't1')})")

    def do_getelementptr(self, each: IrInstruction) -> None:
        to, kind = self.find_target_register(each.result), each.type
        base = self.load_value(each.args[0], "t0")
        for nth, (index, _width) in enumerate(zip(each.args[1:], each.types, strict=False)):
            if nth:
                kind = get_element_type(kind)
            base = self.emit_element_address(base, index, compute_type_size(kind), to)
        if base != to:
            self.emit(f"mv {to}, {base}")
        self.store_result(each.result)

    def emit_element_address(self, base: str, index: str, size: int, to: str) -> str:
        """Emit the address at `base` plus `size` times `index`; return its register."""
        number = self.parse_immediate(index)
        if number is not None:
            if number:
                self.emit_with_offset("addi", to, number * size, base)
                return to
            return base
        steps = self.load_value(index, "t1")
        if size & (size - 1):
            self.emit(f"li t2, {size}")
            self.emit(f"mul t1, {steps}, t2")
        elif size > 1:
            self.emit(f"slli t1, {steps}, {size.bit_length() - 1}")
        self.emit(f"add {to}, {base}, {'t1' if size > 1 else steps}")
        return to

    def do_select(self, each: IrInstruction) -> None:
        end = self.make_label()
        condition = self.load_value(each.args[0], "t0")
        yes, no = self.load_value(each.args[1], "t1"), self.load_value(each.args[2], "t2")
        self.emit(f"mv t3, {yes}")
        self.emit(f"bnez {condition}, {end}")
        self.emit(f"mv t3, {no}")
        self.lines.append(f"{end}:")
        self.store_result(each.result, "t3")

    def do_call(self, each: IrInstruction) -> None:
        if each.how.startswith("@llvm."):
            self.emit_intrinsic(each)
            return
        for at, value in enumerate(each.args):
            if at < 8:
                self.load_argument(value, f"a{at}")
            else:
                self.emit_with_offset("sd", self.load_value(value, "t0"), 8 * (at - 8))
        self.emit(f"call {each.how[1:]}")
        if each.result:
            self.store_result(each.result, "a0")

    def load_argument(self, value: str, register: str) -> None:
        found = self.load_value(value, register)
        if found != register:
            self.emit(f"mv {register}, {found}")

    def emit_intrinsic(self, each: IrInstruction) -> None:
        name = each.how.split(".")[1]
        if f"@{name}" in COPIES:
            for at in range(3):
                self.load_argument(each.args[at], f"a{at}")
            self.emit(f"call {name}")
        elif name in ("smax", "smin", "umax", "umin"):
            end = self.make_label()
            left, right = self.load_value(each.args[0], "t0"), self.load_value(each.args[1], "t1")
            self.emit(f"mv t3, {left}")
            how = BRANCHES[f"{name[0]}{'ge' if name[1:] == 'max' else 'le'}"]
            self.emit(f"{how.format(left, right)}, {end}")
            self.emit(f"mv t3, {right}")
            self.lines.append(f"{end}:")
            self.store_result(each.result, "t3")
        elif name == "abs":
            value = self.load_value(each.args[0], "t0")
            self.emit(f"srai t1, {value}, 63")
            self.emit(f"xor t3, {value}, t1")
            self.emit("sub t3, t3, t1")
            self.sign_extend("t3", "t3", find_bit_width(each.type))
            self.store_result(each.result, "t3")
        elif each.result:
            raise ValueError(f"{each.how}: not understood")

    def do_ret(self, each: IrInstruction) -> None:
        if each.args:
            self.load_argument(each.args[0], "a0")
        for at, register in enumerate(["ra", *self.saved]):
            self.emit_with_offset("ld", register, self.saves + 8 * at)
        self.emit_with_offset("addi", "sp", self.frame)
        self.emit("ret")

    def do_unreachable(self, each: IrInstruction) -> None:
        self.emit("ebreak")

    def emit_branch(self, block: IrBlock, each: IrInstruction, following: str) -> None:
        """Jump to the next block after copying the values of its phis."""
        if each.op == "switch":
            value = self.load_value(each.args[0], "t0")
            for number, label in zip(each.args[1:], each.labels[1:], strict=False):
                self.emit(f"li t1, {number}")
                self.emit_conditional_jump(
                    block, label, f"bne {value}, t1, {{}}", f"beq {value}, t1, {{}}"
                )
        elif each.args:
            test = self.fused.get(each.args[0])
            if test is not None:
                registers = self.load_comparison_operands(test)
                go, skip = BRANCHES[test.how], BRANCHES[OPPOSITE[test.how]]
                yes, no = f"{go.format(*registers)}, {{}}", f"{skip.format(*registers)}, {{}}"
            else:
                register = self.load_value(each.args[0], "t0")
                yes, no = f"bnez {register}, {{}}", f"beqz {register}, {{}}"
            self.emit_conditional_jump(block, each.labels[0], no, yes)
        label = each.labels[0] if each.op == "switch" else each.labels[-1]
        self.emit_phi_copies(block.name, label)
        if label != following:
            self.emit(f"j {self.label(label)}")

    def emit_conditional_jump(self, block: IrBlock, label: str, skip: str, go: str) -> None:
        """Jump to a block on a condition; if it has phis, branch around their copies otherwise."""
        if not self.find_phis(label):
            self.emit(go.format(self.label(label)))
            return
        around = self.make_label()
        self.emit(skip.format(around))
        self.emit_phi_copies(block.name, label)
        self.emit(f"j {self.label(label)}")
        self.lines.append(f"{around}:")

    def find_phis(self, label: str) -> "list[IrInstruction]":
        block = next(block for block in self.function.blocks if block.name == label)
        return [each for each in block.body if each.op == "phi"]

    def emit_phi_copies(self, come: str, label: str) -> None:
        """Assign all phis in parallel: a value is copied before its home is overwritten."""
        waiting: list[tuple[str, str]] = []
        for each in self.find_phis(label):
            value = each.args[each.labels.index(come)]
            if value != each.result:
                waiting.append((each.result, value))
        held: dict[str, str] = {}
        while waiting:
            needed = {held.get(value, value) for _, value in waiting}
            free = [pair for pair in waiting if pair[0] not in needed]
            if not free:  # a cycle: save one of them
                name = waiting[0][0]
                register = self.load_value(name, "t4")
                if register != "t4":
                    self.emit(f"mv t4, {register}")
                held[name] = "t4"
                continue
            for pair in free:
                self.emit_phi_copy(pair[0], pair[1], held)
                waiting.remove(pair)
                if held.get(pair[1]) == "t4" and all(value != pair[1] for _, value in waiting):
                    held.clear()

    def emit_phi_copy(self, name: str, value: str, held: "dict[str, str]") -> None:
        if value in held:
            self.store_result(name, held[value])
            return
        to = self.find_target_register(name)
        self.store_result(name, self.load_value(value, to))


OPPOSITE = {
    "eq": "ne", "ne": "eq", "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip
PIECE = re.compile(r"\[\d+ x |[\[\]]|zeroinitializer|c\"[^\"]*\"|-?\d+|true|false|i\d+")


def render_global(name: str, kind: str, line: str) -> "list[str]":
    """Return the directives of a global with its initial value."""
    text = line.partition(f"{kind} ")[2] if kind.startswith("[") else line
    value = text if kind.startswith("[") else line.partition(f" {kind} ")[2]
    words = [word for word in render_value_directives(kind, value)]
    where = "\t.rodata" if " constant " in line else "\t.data"
    section = "\t.section .rodata" if where == "\t.rodata" else "\t.data"
    return [section, "\t.p2align 3", f"\t.globl {name[1:]}", f"{name[1:]}:", *words]


def render_value_directives(kind: str, text: str) -> "list[str]":
    """Return the directives for the value of a type at the beginning of a text."""
    text = text.strip()
    if text.startswith(("zeroinitializer", "undef", "poison")):
        return [f"\t.zero {compute_type_size(kind)}"]
    if text.startswith('c"'):
        inside = text[2 : text.index('"', 2)]
        codes = re.findall(r"\\[0-9A-Fa-f]{2}|.", inside, re.DOTALL)
        return [f"\t.byte {int(c[1:], 16) if len(c) == 3 else ord(c)}" for c in codes]
    if kind.startswith("["):
        found: list[str] = []
        for part in split_elements(text):
            found += render_value_directives(
                get_element_type(kind), part.strip()[len(get_element_type(kind)) :]
            )
        return found
    word = text.replace(",", " ").split()[0]
    number = {"true": 1, "false": 0, "null": 0}.get(word)
    directive = {1: ".byte", 2: ".half", 4: ".word", 8: ".dword"}[compute_type_size(kind)]
    return [f"\t{directive} {int(word) if number is None else number}"]


def split_elements(text: str) -> "list[str]":
    """Split the text between the outermost brackets at its top-level commas."""
    depth, started, found = 0, 1, list[str]()
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                return [*found, text[started:at]]
        elif letter == "," and depth == 1:
            found.append(text[started:at])
            started = at + 1
    raise ValueError(f"{text}: a bracket is missing")


def render_assembly(module: IrModule) -> str:
    """Return the assembly of a module."""
    lines: list[str] = []
    for number, function in enumerate(module.functions):
        lines += FunctionAssembler(function, number).assemble()
    for name, kind, line in module.globals:
        lines += render_global(name, kind, line)
    return "\n".join(lines) + "\n"


def main(given: str, to: str) -> None:
    """Read the IR, write the assembly."""
    Path(to).write_text(render_assembly(parse_ir_module(Path(given).read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
