"""T4: LLVM IR into better LLVM IR. Usage: run IR BETTER.

Local variables become values (SSA), small functions go where they are called, what is constant is
computed, what was computed is not computed again, what does not change leaves its loop, what
nobody needs goes. A module that is not understood stays as it is.
"""

import sys
from collections import Counter
from pathlib import Path

from scenarios.compiler.solutions.ir import (
    CASTS,
    TWO,
    Block,
    Function,
    Instruction,
    Module,
    read,
)

SMALL = 40
"""Instructions of a function that goes where it is called."""
LARGE = 600
"""Instructions of a function into which nothing goes any more."""
ROUNDS = 6
SPOKEN = frozenset(("@get_int", "@get_char", "@put_int", "@put_char"))
"""Functions that change nothing in the program's memory."""
EFFECTS = frozenset(("store", "call", "br", "switch", "ret", "unreachable"))
PURE = TWO | CASTS | {"icmp", "getelementptr", "select", "freeze"}
SWAPPED = {
    "slt": "sgt", "sgt": "slt", "sle": "sge", "sge": "sle", "eq": "eq", "ne": "ne",
    "ult": "ugt", "ugt": "ult", "ule": "uge", "uge": "ule",
}  # fmt: skip
INVERSE = {
    "slt": "sge", "sge": "slt", "sgt": "sle", "sle": "sgt", "eq": "ne", "ne": "eq",
    "ult": "uge", "uge": "ult", "ugt": "ule", "ule": "ugt",
}  # fmt: skip


class Flow:
    """How control goes through a function, with what cannot be reached taken out of it."""

    def __init__(self, function: Function) -> None:
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
                    forget(each, set(each.labels) - set(self.before[block.name]))
        self.above = self.dominators()
        self.below: dict[str, list[str]] = {name: [] for name in self.order}
        for name, above in self.above.items():
            if name != above:
                self.below[above].append(name)

    def dominators(self) -> dict[str, str]:
        """For each block the nearest one that every way to it passes; the first has itself."""
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
        """The blocks where a value of this block meets another one."""
        if not hasattr(self, "meets"):
            self.meets: dict[str, set[str]] = {each: set() for each in self.order}
            for each in self.order:
                if len(self.before[each]) > 1:
                    for way in self.before[each]:
                        while way != self.above[each]:
                            self.meets[way].add(each)
                            way = self.above[way]
        return self.meets[name]


def forget(phi: Instruction, labels: set[str]) -> None:
    """Take ways out of a phi."""
    left = [
        (value, label)
        for value, label in zip(phi.args, phi.labels, strict=True)
        if label not in labels
    ]
    phi.args, phi.labels = [value for value, _ in left], [label for _, label in left]


def replaced(function: Function, instead: dict[str, str]) -> None:
    """Other values for some names, everywhere."""
    if not instead:
        return
    for block in function.blocks:
        for each in block.body:
            for at, value in enumerate(each.args):
                while value in instead:
                    value = instead[value]
                each.args[at] = value


def promote(function: Function) -> None:
    """Variables that are only loaded and stored become values."""
    flow = Flow(function)
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
        spread(flow, name, kind, f"{name}.{at}", place)
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
    replaced(function, instead)


def spread(
    flow: Flow, name: str, kind: str, result: str, place: dict[str, tuple[str, str]]
) -> None:
    """Phis for a variable, wherever two of its values can meet."""
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
                made = Instruction(op="phi", result=f"{result}.{len(done)}", type=kind)
                place[made.result] = (name, meets)
                flow.named[meets].body.insert(0, made)


def number(value: str) -> int | None:
    """The constant that a value is; None where it is none."""
    if value in ("true", "false"):
        return int(value == "true")
    return int(value) if value.lstrip("-").isdigit() else None


def written(found: int, kind: str) -> str:
    """A constant of a type, wrapped around."""
    if kind == "i1":
        return "true" if found & 1 else "false"
    width = int(kind[1:])
    found &= (1 << width) - 1
    return str(found - (1 << width) if found >> (width - 1) else found)


def computed(op: str, kind: str, left: int, right: int) -> int | None:
    """An operation on constants; None where it has no result."""
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


def compared(how: str, kind: str, left: int, right: int) -> bool:
    """Whether a comparison of two numbers holds."""
    if how[0] == "u":
        mask = (1 << int(kind[1:])) - 1
        left, right = left & mask, right & mask
    order = how.lstrip("su") if how not in ("eq", "ne") else how
    found = {"eq": left == right, "ne": left != right, "lt": left < right, "le": left <= right}
    return found.get(order, left > right if order == "gt" else left >= right)


def simpler(each: Instruction, made: dict[str, Instruction]) -> str | None:
    """The value that an instruction's result is anyway; it may be made a simpler one instead."""
    if each.op in TWO:
        return arithmetic(each, made)
    if each.op == "icmp":
        return comparison(each, made)
    if each.op in ("sext", "zext", "trunc"):
        value = number(each.args[0])
        if value is None:
            return None
        signed = -value if each.op == "sext" and each.type == "i1" else value
        if each.op == "zext" and each.type != "i1":
            signed &= (1 << int(each.type[1:])) - 1
        return written(signed, each.how)
    if each.op == "select":
        test = number(each.args[0])
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


def arithmetic(each: Instruction, made: dict[str, Instruction]) -> str | None:
    """What an operation comes to without being done; None if it must be."""
    left, right = (number(value) for value in each.args)
    if left is not None and right is not None:
        found = computed(each.op, each.type, left, right)
        return None if found is None else written(found, each.type)
    if left is not None and each.op in ("add", "mul", "and", "or", "xor"):
        each.args.reverse()
        left, right = right, left
    one = each.args[0]
    if right == 0:
        if each.op in ("add", "sub", "or", "xor", "shl", "ashr", "lshr"):
            return one
        return written(0, each.type) if each.op in ("mul", "and") else None
    if right == 1 and each.op in ("mul", "sdiv"):
        return one
    if right == -1 and each.op == "and":
        return one
    if each.op == "sub" and right is not None:
        right = -right
        each.op, each.args[1] = "add", written(right, each.type)
    inside = made.get(one)
    if each.op in ("add", "mul") and inside is not None and inside.op == each.op:
        other = number(inside.args[1])
        if other is not None and right is not None:  # (x + 1) + 2 is x + 3
            found = computed(each.op, each.type, other, right)
            each.args = [inside.args[0], written(found or 0, each.type)]
    inverted = each.op == "xor" and each.type == "i1" and right == 1
    if inverted and inside is not None and inside.op == "icmp":
        each.op, each.type, each.how = "icmp", inside.type, INVERSE[inside.how]
        each.args = list(inside.args)
    return None


def comparison(each: Instruction, made: dict[str, Instruction]) -> str | None:
    """What a comparison comes to without being made; None if it must be."""
    left, right = (number(value) for value in each.args)
    if left is not None and right is not None:
        return "true" if compared(each.how, each.type, left, right) else "false"
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


def simplify(function: Function) -> bool:
    """Compute what is constant, and what was computed on every way here only once."""
    flow = Flow(function)
    made = {each.result: each for block in function.blocks for each in block.body if each.result}
    instead: dict[str, str] = {}
    stack: list[tuple[str, dict[tuple[str, ...], str]]] = [(flow.order[0], {})]
    while stack:
        name, known = stack.pop()
        for each in flow.named[name].body:
            each.args = [resolved(instead, value) for value in each.args]
            if not each.result:
                continue
            if (value := simpler(each, made)) is not None and value != each.result:
                instead[each.result] = resolved(instead, value)
            elif each.op in PURE:
                key = (each.op, each.type, each.how, *each.types, *each.args)
                if key in known:
                    instead[each.result] = known[key]
                known.setdefault(key, each.result)
        stack += [(below, dict(known)) for below in flow.below[name]]
    replaced(function, instead)
    for block in function.blocks:
        block.body = [each for each in block.body if each.result not in instead or not each.result]
    return bool(instead)


def resolved(instead: dict[str, str], value: str) -> str:
    """The value that stands at the end of a row of replacements."""
    while value in instead:
        value = instead[value]
    return value


def remembered(function: Function) -> None:
    """A place that was loaded or stored in the same block, and not changed since, is known."""
    made = {each.result: each for block in function.blocks for each in block.body if each.result}
    instead: dict[str, str] = {}
    for block in function.blocks:
        known: dict[tuple[str, str], str] = {}
        for each in block.body:
            each.args = [resolved(instead, value) for value in each.args]
            if each.op == "load":
                if (each.type, each.args[0]) in known:
                    instead[each.result] = known[each.type, each.args[0]]
                known.setdefault((each.type, each.args[0]), each.result)
            elif each.op == "store":
                place = each.args[1]
                known = {key: value for key, value in known.items() if apart(made, key[1], place)}
                known[typed(each), place] = each.args[0]
            elif each.op == "call" and each.how not in SPOKEN:
                known.clear()
    replaced(function, instead)
    for block in function.blocks:
        block.body = [each for each in block.body if not each.result or each.result not in instead]


def typed(store: Instruction) -> str:
    """The type of what is stored."""
    return store.type


def apart(made: dict[str, Instruction], one: str, other: str) -> bool:
    """Whether two addresses are in variables or arrays that are surely not the same."""
    one, other = base(made, one), base(made, other)
    known = [
        each.startswith("@") or (each in made and made[each].op == "alloca")
        for each in (one, other)
    ]
    return one != other and all(known)


def base(made: dict[str, Instruction], place: str) -> str:
    """The object that a place lies in."""
    while place in made and made[place].op == "getelementptr":
        place = made[place].args[0]
    return place.partition("+")[0]


def shorten(function: Function) -> None:
    """Branches whose way is known, blocks that only lead on, blocks that follow only one."""
    for block in function.blocks:
        last = block.last
        if last.op == "br" and last.args:
            test = number(last.args[0])
            if test is not None or last.labels[0] == last.labels[1]:
                last.labels = [last.labels[0 if test != 0 else 1]]
                last.args = []
    flow = Flow(function)
    for block in function.blocks[1:]:
        if len(block.body) == 1 and block.last.op == "br" and not block.last.args:
            bypass(flow, block)
    flow = Flow(function)
    for name in flow.order:
        if name not in flow.named:
            continue
        block = flow.named[name]
        while block.last.op == "br" and not block.last.args:
            after = block.after[0]
            if flow.before[after] != [block.name] or after == block.name:
                break
            join(flow, block, flow.named[after])
    function.blocks = [block for block in function.blocks if block.name in flow.named]


def bypass(flow: Flow, block: Block) -> None:
    """Lead those before an empty block to the one after it, where its phis can tell them apart."""
    after = flow.named[block.last.labels[0]]
    phis = [each for each in after.body if each.op == "phi"]
    ways = flow.before[block.name]
    if after is block or (phis and set(ways) & set(flow.before[after.name])):
        return
    for way in ways:
        last = flow.named[way].last
        last.labels = [after.name if label == block.name else label for label in last.labels]
        for phi in phis:
            phi.args.append(phi.args[phi.labels.index(block.name)])
            phi.labels.append(way)
        flow.before[after.name].append(way)
    for phi in phis:
        forget(phi, {block.name})
    flow.before[after.name].remove(block.name)
    flow.before[block.name] = []
    block.body = [Instruction(op="unreachable")]


def join(flow: Flow, block: Block, after: Block) -> None:
    """One block of two that always follow one another; what led to a phi was made simple."""
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


def sweep(function: Function) -> None:
    """Take out what nobody needs."""
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


def hoist(function: Function) -> None:
    """What does not change in a loop is computed before it, where that can do no harm."""
    flow = Flow(function)
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
        lift(flow, inside, flow.named[outside[0]])


def lift(flow: Flow, inside: set[str], to: Block) -> None:
    """Move what does not change in a loop before it."""
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


def expand(module: Module) -> None:
    """Small functions that do not call themselves go where they are called."""
    named = {function.name: function for function in module.functions}
    for function in module.functions:
        made = 0
        at = 0
        while at < len(function.blocks):
            block = function.blocks[at]
            at += 1
            for nth, each in enumerate(block.body):
                called = named.get(each.how) if each.op == "call" else None
                if called is None or called is function or not fits(called, function):
                    continue
                made += 1
                put(function, at - 1, nth, called, f".{made}.{called.name[1:]}")
                break


def size(function: Function) -> int:
    """How many instructions a function has."""
    return sum(len(block.body) for block in function.blocks)


def fits(called: Function, into: Function) -> bool:
    """Whether a function may be put in the place of a call."""
    calls = {each.how for block in called.blocks for each in block.body if each.op == "call"}
    own = calls - SPOKEN
    return (
        size(called) <= SMALL
        and size(into) <= LARGE
        and not any(not name.startswith("@llvm.") for name in own)
    )


def put(function: Function, at: int, nth: int, called: Function, mark: str) -> None:
    """A copy of a function in place of a call of it."""
    block = function.blocks[at]
    call = block.body[nth]
    rest = Block(name=f"{block.name}{mark}.rest", body=block.body[nth + 1 :])
    given = {name: value for (_, name), value in zip(called.parameters, call.args, strict=True)}

    def other(name: str) -> str:
        return given.get(name, f"{name}{mark}" if name.startswith("%") else name)

    copies: list[Block] = []
    back: list[tuple[str, str]] = []
    for source in called.blocks:
        copy = Block(name=other(source.name))
        for each in source.body:
            made = Instruction(
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
                made = Instruction(op="br", labels=[rest.name])
            if made.op == "alloca":
                function.blocks[0].body.insert(0, made)
                nth += block is function.blocks[0]
            else:
                copy.body.append(made)
        copies.append(copy)
    block.body = [*block.body[:nth], Instruction(op="br", labels=[copies[0].name])]
    if call.result:
        values, labels = [value for value, _ in back], [label for _, label in back]
        phi = Instruction(op="phi", result=call.result, type=call.type, args=values, labels=labels)
        rest.body.insert(0, phi)
    for label in rest.last.labels:
        for after in function.blocks:
            if after.name == label:
                for each in after.body:
                    if each.op == "phi":
                        each.labels = [rest.name if x == block.name else x for x in each.labels]
    function.blocks[at + 1 : at + 1] = [*copies, rest]


def improve(function: Function) -> None:
    """All of it, until nothing changes or it has been tried often enough."""
    for _ in range(ROUNDS):
        changed = simplify(function)
        remembered(function)
        shorten(function)
        sweep(function)
        if not changed:
            break


def renamed(value: str) -> str:
    """No name is a number, since numbers must follow one another."""
    return f"%v{value[1:]}" if value.startswith("%") else value


def shown(value: str) -> str:
    """A value as an operand."""
    if value.startswith("@") and "+" in value:
        name, _, far = value.partition("+")
        return f"getelementptr (i8, ptr {name}, i64 {far})"
    return renamed(value)


def text(each: Instruction) -> str:
    """An instruction as LLVM reads it."""
    args = [shown(value) for value in each.args]
    labels = [renamed(label) for label in each.labels]
    to = f"{renamed(each.result)} = " if each.result else ""
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
            given = [typed_value(kind, value) for kind, value in zip(each.types, args, strict=True)]
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


def typed_value(kind: str, value: str) -> str:
    """An argument with its type, as calls write it."""
    return f"{kind} signext {value}" if kind == "i32" else f"{kind} {value}"


def whole(function: Function) -> str:
    """A function as text."""
    given = [typed_value(kind, renamed(name)) for kind, name in function.parameters]
    how = "signext " if function.gives == "i32" else ""
    lines = [f"define {how}{function.gives} {function.name}({', '.join(given)}) {{"]
    for block in function.blocks:
        lines.append(f"{renamed(block.name)[1:]}:")
        lines += [f"  {text(each)}" for each in block.body]
    return "\n".join([*lines, "}"])


def optimised(module: Module) -> str:
    """The module, better."""
    for function in module.functions:
        promote(function)
        improve(function)
    expand(module)
    for function in module.functions:
        improve(function)
        hoist(function)
        improve(function)
    reached = Counter(
        value.partition("+")[0]
        for function in module.functions
        for block in function.blocks
        for each in block.body
        for value in [*each.args, each.how]
    )
    functions = [each for each in module.functions if each.name == "@main" or reached[each.name]]
    globals = [line for _, _, line in module.globals]
    return "\n\n".join([*globals, *module.rest, *map(whole, functions)]) + "\n"


def main(given: str, to: str) -> None:
    """Read the IR, write better IR; what is not understood is written as it was."""
    source = Path(given).read_text()
    try:
        better = optimised(read(source))
    except ValueError as error:
        sys.stderr.write(f"left as it was: {error}\n")
        better = source
    Path(to).write_text(better)


if __name__ == "__main__":
    main(*sys.argv[1:])
