"""T4: optimise LLVM IR. Usage: run IR BETTER.

The passes are promotion of variables to SSA values, inlining of small functions, constant folding,
common subexpression elimination, loop-invariant code motion and dead code elimination. A module
with unsupported syntax is left unchanged.
"""

import sys
from collections import Counter
from pathlib import Path

from scenarios.pipeline.compiler.solutions.ir import (
    BINARY_OPERATIONS,
    CASTS,
    IrBlock,
    IrFunction,
    IrInstruction,
    IrModule,
    parse_ir_module,
)

SMALL = 40
"""Largest function that is inlined, in instructions."""
LARGE = 600
"""Size of a function, in instructions, from which nothing is inlined into it."""
ROUNDS = 6
IO_FUNCTIONS = frozenset(("@get_int", "@get_char", "@put_int", "@put_char"))
"""Functions that do not change the program's memory."""
EFFECTS = frozenset(("store", "call", "br", "switch", "ret", "unreachable"))
PURE = BINARY_OPERATIONS | CASTS | {"icmp", "getelementptr", "select", "freeze"}
SWAPPED = {
    "slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle", "eq": "eq", "ne": "ne",
    "ult": "ugt", "ugt": "ult", "ule": "uge", "uge": "ule",
}  # fmt: skip
INVERSE = {
    "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "eq": "ne", "ne": "eq",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip


class ControlFlow:
    """The control flow graph of a function, with unreachable blocks removed."""

    def __init__(self, function: IrFunction) -> None:
        self.named = {block.name: block for block in function.blocks}
        order: list[str] = []
        seen = {function.blocks[0].name}
        stack = [(function.blocks[0].name, iter(function.blocks[0].after))]
        while stack:
            name, rest = stack[-1]
            after = next(rest, None)
            if after is None:
                order.append(name)
                stack.pop()
            elif after not in seen:
                seen.add(after)
                stack.append((after, iter(self.named[after].after)))
        self.order = order[::-1]
        function.blocks = [block for block in function.blocks if block.name in seen]
        self.before: dict[str, list[str]] = {name: [] for name in self.order}
        for name in self.order:
            for after in self.named[name].after:
                self.before[after].append(name)
        for block in function.blocks:
            for each in block.body:
                if each.op == "phi":
                    remove_phi_inputs(each, set(each.labels) - set(self.before[block.name]))
        self.above = self.dominators()
        self.below: dict[str, list[str]] = {name: [] for name in self.order}
        for name, above in self.above.items():
            if name != above:
                self.below[above].append(name)

    def dominators(self) -> dict[str, str]:
        """Return each block's immediate dominator; the first block's is itself."""
        place = {name: at for at, name in enumerate(self.order)}
        above = {self.order[0]: self.order[0]}
        changed = True
        while changed:
            changed = False
            for name in self.order[1:]:
                known = [each for each in self.before[name] if each in above]
                found = known[0]
                for other in known[1:]:
                    while found != other:
                        if place[found] > place[other]:
                            found = above[found]
                        else:
                            other = above[other]
                if above.get(name) != found:
                    above[name], changed = found, True
        return above

    def dominates(self, one: str, other: str) -> bool:
        while other != one and self.above[other] != other:
            other = self.above[other]
        return one == other

    def frontier(self, name: str) -> set[str]:
        """Return the dominance frontier of a block."""
        if not hasattr(self, "meets"):
            self.meets: dict[str, set[str]] = {each: set() for each in self.order}
            for each in self.order:
                if len(self.before[each]) > 1:
                    for way in self.before[each]:
                        while way != self.above[each]:
                            self.meets[way].add(each)
                            way = self.above[way]
        return self.meets[name]


def remove_phi_inputs(phi: IrInstruction, labels: set[str]) -> None:
    """Remove predecessors from a phi."""
    left = [
        (value, label)
        for value, label in zip(phi.args, phi.labels, strict=True)
        if label not in labels
    ]
    phi.args, phi.labels = [value for value, _ in left], [label for _, label in left]


def replace_values(function: IrFunction, instead: dict[str, str]) -> None:
    """Replace values by name throughout a function."""
    if not instead:
        return
    for block in function.blocks:
        for each in block.body:
            for at, value in enumerate(each.args):
                while value in instead:
                    value = instead[value]
                each.args[at] = value


def promote_variables(function: IrFunction) -> None:
    """Promote variables that are only loaded and stored to values."""
    flow = ControlFlow(function)
    kinds = {
        each.result: each.type
        for block in function.blocks
        for each in block.body
        if each.op == "alloca" and not each.type.startswith("[")
    }
    for block in function.blocks:
        for each in block.body:
            kept = each.args if each.op != "store" else each.args[:1]
            for value in kept if each.op != "load" else ():
                kinds.pop(value, None)
    place: dict[str, tuple[str, str]] = {}
    for at, (name, kind) in enumerate(kinds.items()):
        insert_phis(flow, name, kind, f"{name}.{at}", place)
    instead: dict[str, str] = {}
    stack = [(function.blocks[0].name, dict.fromkeys(kinds, "0"))]
    for name, kind in kinds.items():
        stack[0][1][name] = "null" if kind == "ptr" else "0"
    while stack:
        name, held = stack.pop()
        block = flow.named[name]
        left = []
        for each in block.body:
            if each.op == "phi" and each.result in place:
                held[place[each.result][0]] = each.result
            if each.op == "load" and each.args[0] in kinds:
                instead[each.result] = held[each.args[0]]
            elif each.op == "store" and each.args[1] in kinds:
                held[each.args[1]] = each.args[0]
            elif each.result not in kinds:
                left.append(each)
        block.body = left
        for after in block.after:
            for each in flow.named[after].body:
                if each.op == "phi" and each.result in place:
                    each.args.append(held[place[each.result][0]])
                    each.labels.append(name)
        stack += [(below, dict(held)) for below in flow.below[name]]
    replace_values(function, instead)


def insert_phis(
    flow: ControlFlow, name: str, kind: str, result: str, place: dict[str, tuple[str, str]]
) -> None:
    """Insert phis for a variable wherever two of its values can meet."""
    waiting = [
        block
        for block in flow.order
        if any(each.op == "store" and each.args[1] == name for each in flow.named[block].body)
    ]
    done: set[str] = set()
    while waiting:
        for meets in flow.frontier(waiting.pop()):
            if meets not in done:
                done.add(meets)
                waiting.append(meets)
                made = IrInstruction(op="phi", result=f"{result}.{len(done)}", type=kind)
                place[made.result] = (name, meets)
                flow.named[meets].body.insert(0, made)


def parse_constant(value: str) -> int | None:
    """Return the constant of a value; None if it is not a constant."""
    if value in ("true", "false"):
        return int(value == "true")
    return int(value) if value.lstrip("-").isdigit() else None


def format_constant(found: int, kind: str) -> str:
    """Return a constant of a type, wrapped around."""
    if kind == "i1":
        return "true" if found & 1 else "false"
    width = int(kind[1:])
    found &= (1 << width) - 1
    return str(found - (1 << width) if found >> (width - 1) else found)


def evaluate_operation(op: str, kind: str, left: int, right: int) -> int | None:
    """Evaluate an operation on constants; None if it has no result."""
    width = int(kind[1:])
    mask = (1 << width) - 1
    if op in ("sdiv", "srem", "udiv", "urem"):
        if right == 0 or op[0] == "u":
            return None
        whole = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return whole if op == "sdiv" else left - whole * right
    if op in ("shl", "lshr", "ashr") and not 0 <= right < width:
        return None
    match op:
        case "add":
            return left + right
        case "sub":
            return left - right
        case "mul":
            return left * right
        case "and":
            return left & right
        case "or":
            return left | right
        case "xor":
            return left ^ right
        case "shl":
            return left << right
        case "ashr":
            return left >> right
        case _:
            return (left & mask) >> right


def evaluate_comparison(how: str, kind: str, left: int, right: int) -> bool:
    """Evaluate a comparison of two numbers."""
    if how[0] == "u":
        mask = (1 << int(kind[1:])) - 1
        left, right = left & mask, right & mask
    order = how.lstrip("su") if how not in ("eq", "ne") else how
    found = {"eq": left == right, "ne": left != right, "lt": left < right, "le": left <= right}
    return found.get(order, left > right if order == "gt" else left >= right)


def simplify_instruction(each: IrInstruction, made: dict[str, IrInstruction]) -> str | None:
    """Return the known value of an instruction's result, or None; may simplify the instruction."""
    if each.op in BINARY_OPERATIONS:
        return fold_arithmetic(each, made)
    if each.op == "icmp":
        return fold_comparison(each, made)
    if each.op in ("sext", "zext", "trunc"):
        value = parse_constant(each.args[0])
        if value is None:
            return None
        signed = -value if each.op == "sext" and each.type == "i1" else value
        if each.op == "zext" and each.type != "i1":
            signed &= (1 << int(each.type[1:])) - 1
        return format_constant(signed, each.how)
    if each.op == "select":
        test = parse_constant(each.args[0])
        if test is not None:
            return each.args[1 if test else 2]
        return each.args[1] if each.args[1] == each.args[2] else None
    if each.op == "phi":
        others = {value for value in each.args if value != each.result}
        return others.pop() if len(others) == 1 else None
    if each.op == "freeze":
        return each.args[0]
    if each.op == "getelementptr" and all(value == "0" for value in each.args[1:]):
        return each.args[0]
    return None


def fold_arithmetic(each: IrInstruction, made: dict[str, IrInstruction]) -> str | None:
    """Return the result of an operation if it is known without computing it, or None."""
    left, right = (parse_constant(value) for value in each.args)
    if left is not None and right is not None:
        found = evaluate_operation(each.op, each.type, left, right)
        return None if found is None else format_constant(found, each.type)
    if left is not None and each.op in ("add", "mul", "and", "or", "xor"):
        each.args.reverse()
        left, right = right, left
    one = each.args[0]
    if right == 0:
        if each.op in ("add", "sub", "or", "xor", "shl", "ashr", "lshr"):
            return one
        return format_constant(0, each.type) if each.op in ("mul", "and") else None
    if right == 1 and each.op in ("mul", "sdiv"):
        return one
    if right == -1 and each.op == "and":
        return one
    if each.op == "sub" and right is not None:
        right = -right
        each.op, each.args[1] = "add", format_constant(right, each.type)
    inside = made.get(one)
    if each.op in ("add", "mul") and inside is not None and inside.op == each.op:
        other = parse_constant(inside.args[1])
        if other is not None and right is not None:  # (x + 1) + 2 is x + 3
            found = evaluate_operation(each.op, each.type, other, right)
            each.args = [inside.args[0], format_constant(found or 0, each.type)]
    inverted = each.op == "xor" and each.type == "i1" and right == 1
    if inverted and inside is not None and inside.op == "icmp":
        each.op, each.type, each.how = "icmp", inside.type, INVERSE[inside.how]
        each.args = list(inside.args)
    return None


def fold_comparison(each: IrInstruction, made: dict[str, IrInstruction]) -> str | None:
    """Return the result of a comparison if it is known without computing it, or None."""
    left, right = (parse_constant(value) for value in each.args)
    if left is not None and right is not None:
        return "true" if evaluate_comparison(each.how, each.type, left, right) else "false"
    if left is not None:
        each.args.reverse()
        each.how, left, right = SWAPPED[each.how], right, left
    inside = made.get(each.args[0])
    bit = inside is not None and inside.op == "zext" and inside.type == "i1"
    if inside is not None and bit and right == 0 and each.how in ("eq", "ne"):
        if each.how == "ne":
            return inside.args[0]
        each.op, each.type, each.how = "xor", "i1", ""
        each.args = [inside.args[0], "true"]
    return None


def simplify_values(function: IrFunction) -> bool:
    """Fold constants, and remove computations that a dominating block has done."""
    flow = ControlFlow(function)
    made = {each.result: each for block in function.blocks for each in block.body if each.result}
    instead: dict[str, str] = {}
    stack: list[tuple[str, dict[tuple[str, ...], str]]] = [(flow.order[0], {})]
    while stack:
        name, known = stack.pop()
        for each in flow.named[name].body:
            each.args = [resolve_value(instead, value) for value in each.args]
            if not each.result:
                continue
            if (value := simplify_instruction(each, made)) is not None and value != each.result:
                instead[each.result] = resolve_value(instead, value)
            elif each.op in PURE:
                key = (each.op, each.type, each.how, *each.types, *each.args)
                if key in known:
                    instead[each.result] = known[key]
                known.setdefault(key, each.result)
        stack += [(below, dict(known)) for below in flow.below[name]]
    replace_values(function, instead)
    for block in function.blocks:
        block.body = [each for each in block.body if each.result not in instead or not each.result]
    return bool(instead)


def resolve_value(instead: dict[str, str], value: str) -> str:
    """Return the value at the end of a chain of replacements."""
    while value in instead:
        value = instead[value]
    return value


def forward_memory_values(function: IrFunction) -> None:
    """Replace a load by the value loaded from or stored to the same place earlier in its block."""
    made = {each.result: each for block in function.blocks for each in block.body if each.result}
    instead: dict[str, str] = {}
    for block in function.blocks:
        known: dict[tuple[str, str], str] = {}
        for each in block.body:
            each.args = [resolve_value(instead, value) for value in each.args]
            if each.op == "load":
                if (each.type, each.args[0]) in known:
                    instead[each.result] = known[each.type, each.args[0]]
                known.setdefault((each.type, each.args[0]), each.result)
            elif each.op == "store":
                place = each.args[1]
                known = {
                    key: value
                    for key, value in known.items()
                    if is_distinct_memory(made, key[1], place)
                }
                known[get_stored_type(each), place] = each.args[0]
            elif each.op == "call" and each.how not in IO_FUNCTIONS:
                known.clear()
    replace_values(function, instead)
    for block in function.blocks:
        block.body = [each for each in block.body if not each.result or each.result not in instead]


def get_stored_type(store: IrInstruction) -> str:
    """Return the type of the stored value."""
    return store.type


def is_distinct_memory(made: dict[str, IrInstruction], one: str, other: str) -> bool:
    """Return whether two addresses are certainly in different variables or arrays."""
    one, other = find_base_object(made, one), find_base_object(made, other)
    known = [
        each.startswith("@") or (each in made and made[each].op == "alloca")
        for each in (one, other)
    ]
    return one != other and all(known)


def find_base_object(made: dict[str, IrInstruction], place: str) -> str:
    """Return the object that contains a place."""
    while place in made and made[place].op == "getelementptr":
        place = made[place].args[0]
    return place.partition("+")[0]


def simplify_branches(function: IrFunction) -> None:
    """Simplify branches with a known target, empty blocks, and blocks with a single predecessor."""
    for block in function.blocks:
        last = block.last
        if last.op == "br" and last.args:
            test = parse_constant(last.args[0])
            if test is not None or last.labels[0] == last.labels[1]:
                last.labels = [last.labels[0 if test != 0 else 1]]
                last.args = []
    flow = ControlFlow(function)
    for block in function.blocks[1:]:
        if len(block.body) == 1 and block.last.op == "br" and not block.last.args:
            bypass_empty_block(flow, block)
    flow = ControlFlow(function)
    for name in flow.order:
        if name not in flow.named:
            continue
        block = flow.named[name]
        while block.last.op == "br" and not block.last.args:
            after = block.after[0]
            if flow.before[after] != [block.name] or after == block.name:
                break
            merge_blocks(flow, block, flow.named[after])
    function.blocks = [block for block in function.blocks if block.name in flow.named]


def bypass_empty_block(flow: ControlFlow, block: IrBlock) -> None:
    """Redirect an empty block's predecessors to its successor, unless its phis would be
    ambiguous.
    """
    after = flow.named[block.last.labels[0]]
    phis = [each for each in after.body if each.op == "phi"]
    ways = flow.before[block.name]
    if after is block or (phis and set(ways) & set(flow.before[after.name])):
        return
    for way in ways:
        last = flow.named[way].last
        last.labels = [after.name if label == block.name else label for label in last.labels]
        if last.op == "br" and len(set(last.labels)) == 1:
            last.labels, last.args = last.labels[:1], []
        for phi in phis:
            phi.args.append(phi.args[phi.labels.index(block.name)])
            phi.labels.append(way)
        if way not in flow.before[after.name]:
            flow.before[after.name].append(way)
    for phi in phis:
        remove_phi_inputs(phi, {block.name})
    flow.before[after.name].remove(block.name)
    flow.before[block.name] = []
    block.body = [IrInstruction(op="unreachable")]


def merge_blocks(flow: ControlFlow, block: IrBlock, after: IrBlock) -> None:
    """Merge two blocks that always follow each other; their phis have been simplified."""
    if any(each.op == "phi" for each in after.body):
        for each in after.body:
            if each.op == "phi":
                each.op, each.how, each.labels = "freeze", "", []
    block.body = [*block.body[:-1], *after.body]
    del flow.named[after.name]
    for name in block.after:
        flow.before[name] = [
            block.name if each == after.name else each for each in flow.before[name]
        ]
        for each in flow.named[name].body:
            if each.op == "phi":
                each.labels = [
                    block.name if label == after.name else label for label in each.labels
                ]


def remove_dead_code(function: IrFunction) -> None:
    """Remove instructions whose results are unused."""
    made = {each.result: each for block in function.blocks for each in block.body if each.result}
    waiting = [each for block in function.blocks for each in block.body if each.op in EFFECTS]
    needed = {id(each) for each in waiting}
    while waiting:
        for value in waiting.pop().args:
            each = made.get(value)
            if each is not None and id(each) not in needed:
                needed.add(id(each))
                waiting.append(each)
    for block in function.blocks:
        block.body = [each for each in block.body if id(each) in needed]


def hoist(function: IrFunction) -> None:
    """Move loop-invariant computations in front of the loop, if that is safe."""
    flow = ControlFlow(function)
    for head in reversed(flow.order):
        tails = [name for name in flow.before[head] if flow.dominates(head, name)]
        outside = [name for name in flow.before[head] if name not in tails]
        if not tails or len(outside) != 1 or len(flow.named[outside[0]].after) != 1:
            continue
        inside, waiting = {head}, list(tails)
        while waiting:
            name = waiting.pop()
            if name not in inside:
                inside.add(name)
                waiting += flow.before[name]
        move_invariants(flow, inside, flow.named[outside[0]])


def move_invariants(flow: ControlFlow, inside: set[str], to: IrBlock) -> None:
    """Move a loop's invariant instructions in front of it."""
    blocks = [flow.named[name] for name in flow.order if name in inside]
    varying = {each.result for block in blocks for each in block.body}
    changed = True
    while changed:
        changed = False
        for block in blocks:
            for each in list(block.body):
                if each.op not in PURE or each.op in ("sdiv", "srem", "udiv", "urem"):
                    continue
                if not varying.intersection(each.args):
                    block.body.remove(each)
                    to.body.insert(-1, each)
                    varying.discard(each.result)
                    changed = True


def expand(module: IrModule) -> None:
    """Inline small functions that do not call themselves."""
    named = {function.name: function for function in module.functions}
    for function in module.functions:
        made = 0
        at = 0
        while at < len(function.blocks):
            block = function.blocks[at]
            at += 1
            for nth, each in enumerate(block.body):
                called = named.get(each.how) if each.op == "call" else None
                if called is None or called is function or not is_inlinable(called, function):
                    continue
                made += 1
                inline_call(function, at - 1, nth, called, f".{made}.{called.name[1:]}")
                break


def count_function_instructions(function: IrFunction) -> int:
    """Return the number of instructions of a function."""
    return sum(len(block.body) for block in function.blocks)


def is_inlinable(called: IrFunction, into: IrFunction) -> bool:
    """Return whether a call of a function may be inlined."""
    calls = {each.how for block in called.blocks for each in block.body if each.op == "call"}
    own = calls - IO_FUNCTIONS
    return (
        count_function_instructions(called) <= SMALL
        and count_function_instructions(into) <= LARGE
        and not any(not name.startswith("@llvm.") for name in own)
    )


def inline_call(function: IrFunction, at: int, nth: int, called: IrFunction, mark: str) -> None:
    """Replace a call by a copy of the called function."""
    block = function.blocks[at]
    call = block.body[nth]
    rest = IrBlock(name=f"{block.name}{mark}.rest", body=block.body[nth + 1 :])
    given = {name: value for (_, name), value in zip(called.parameters, call.args, strict=True)}

    def other(name: str) -> str:
        return given.get(name, f"{name}{mark}" if name.startswith("%") else name)

    copies: list[IrBlock] = []
    back: list[tuple[str, str]] = []
    for source in called.blocks:
        copy = IrBlock(name=other(source.name))
        for each in source.body:
            made = IrInstruction(
                op=each.op,
                result=other(each.result) if each.result else "",
                type=each.type,
                args=[other(value) for value in each.args],
                labels=[other(label) for label in each.labels],
                types=list(each.types),
                how=each.how,
            )
            if made.op == "ret":
                back.append((made.args[0] if made.args else "", copy.name))
                made = IrInstruction(op="br", labels=[rest.name])
            if made.op == "alloca":
                function.blocks[0].body.insert(0, made)
                nth += block is function.blocks[0]
            else:
                copy.body.append(made)
        copies.append(copy)
    block.body = [*block.body[:nth], IrInstruction(op="br", labels=[copies[0].name])]
    if call.result:
        values, labels = [value for value, _ in back], [label for _, label in back]
        phi = IrInstruction(
            op="phi", result=call.result, type=call.type, args=values, labels=labels
        )
        rest.body.insert(0, phi)
    for label in rest.last.labels:
        for after in function.blocks:
            if after.name == label:
                for each in after.body:
                    if each.op == "phi":
                        each.labels = [rest.name if x == block.name else x for x in each.labels]
    function.blocks[at + 1 : at + 1] = [*copies, rest]


def improve_function(function: IrFunction) -> None:
    """Run all passes until nothing changes or the limit of rounds is reached."""
    for _ in range(ROUNDS):
        changed = simplify_values(function)
        forward_memory_values(function)
        simplify_branches(function)
        remove_dead_code(function)
        if not changed:
            break


def avoid_numeric_name(value: str) -> str:
    """Rename numeric names, since LLVM requires consecutive numbers."""
    return f"%v{value[1:]}" if value.startswith("%") else value


def format_operand(value: str) -> str:
    """Return a value as an operand."""
    if value.startswith("@") and "+" in value:
        name, _, far = value.partition("+")
        return f"getelementptr (i8, ptr {name}, i64 {far})"
    return avoid_numeric_name(value)


def format_instruction(each: IrInstruction) -> str:
    """Return an instruction in LLVM's syntax."""
    args = [format_operand(value) for value in each.args]
    labels = [avoid_numeric_name(label) for label in each.labels]
    to = f"{avoid_numeric_name(each.result)} = " if each.result else ""
    match each.op:
        case "icmp":
            return f"{to}icmp {each.how} {each.type} {args[0]}, {args[1]}"
        case "load":
            return f"{to}load {each.type}, ptr {args[0]}"
        case "store":
            return f"store {each.type} {args[0]}, ptr {args[1]}"
        case "getelementptr":
            rest = [f"{kind} {value}" for kind, value in zip(each.types, args[1:], strict=True)]
            return f"{to}getelementptr inbounds {each.type}, ptr {', '.join([args[0], *rest])}"
        case "br" if args:
            return f"br i1 {args[0]}, label {labels[0]}, label {labels[1]}"
        case "br":
            return f"br label {labels[0]}"
        case "switch":
            cases = [
                f"{each.type} {n}, label {x}" for n, x in zip(args[1:], labels[1:], strict=True)
            ]
            return f"switch {each.type} {args[0]}, label {labels[0]} [ {' '.join(cases)} ]"
        case "phi":
            ways = [f"[ {value}, {x} ]" for value, x in zip(args, labels, strict=True)]
            return f"{to}phi {each.type} {', '.join(ways)}"
        case "select":
            return f"{to}select i1 {args[0]}, {each.type} {args[1]}, {each.type} {args[2]}"
        case "call":
            given = [
                format_argument(kind, value) for kind, value in zip(each.types, args, strict=True)
            ]
            how = "signext " if each.type == "i32" else ""
            return f"{to}call {how}{each.type} {each.how}({', '.join(given)})"
        case "ret":
            return f"ret {each.type} {args[0]}" if args else "ret void"
        case "alloca":
            return f"{to}alloca {each.type}"
        case "unreachable":
            return "unreachable"
        case op if op in CASTS:
            return f"{to}{op} {each.type} {args[0]} to {each.how}"
        case _:
            return f"{to}{each.op} {each.type} {', '.join(args)}"


def format_argument(kind: str, value: str) -> str:
    """Return an argument with its type, as in calls."""
    return f"{kind} signext {value}" if kind == "i32" else f"{kind} {value}"


def format_function(function: IrFunction) -> str:
    """Return a function as text."""
    given = [format_argument(kind, avoid_numeric_name(name)) for kind, name in function.parameters]
    how = "signext " if function.gives == "i32" else ""
    lines = [f"define {how}{function.gives} {function.name}({', '.join(given)}) {{"]
    for block in function.blocks:
        lines.append(f"{avoid_numeric_name(block.name)[1:]}:")
        lines += [f"  {format_instruction(each)}" for each in block.body]
    return "\n".join([*lines, "}"])


def optimise_module(module: IrModule) -> str:
    """Return the optimised module as text."""
    for function in module.functions:
        promote_variables(function)
        improve_function(function)
    expand(module)
    for function in module.functions:
        improve_function(function)
        hoist(function)
        improve_function(function)
    reached = Counter(
        value.partition("+")[0]
        for function in module.functions
        for block in function.blocks
        for each in block.body
        for value in [*each.args, each.how]
    )
    functions = [each for each in module.functions if each.name == "@main" or reached[each.name]]
    globals = [line for _, _, line in module.globals]
    return "\n\n".join([*globals, *module.rest, *map(format_function, functions)]) + "\n"


def main(given: str, to: str) -> None:
    """Read the IR, write better IR; unsupported IR is written unchanged."""
    source = Path(given).read_text()
    try:
        better = optimise_module(parse_ir_module(source))
    except ValueError as error:
        sys.stderr.write(f"left as it was: {error}\n")
        better = source
    Path(to).write_text(better)


if __name__ == "__main__":
    main(*sys.argv[1:])
