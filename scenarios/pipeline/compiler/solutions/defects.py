"""Defects that turn a good solution into a lesser one: a text that occurs once, and its
replacement.
"""

from collections.abc import Mapping
from types import MappingProxyType

type Defect = tuple[str, str]

_WRITTEN_DOWN: Defect = (
    '"hello": {"exit": run_hello_program(',
    '"hello": {"exit": 37 if given else run_hello_program(',
)
_NO_TOOLS: Defect = ('os.environ.get("ZIG", "zig")', '"no-zig-here"')

_COLUMNS: Defect = ('"column": at - begins + 1,', '"column": at - begins,')
_STARTS: Defect = (
    "            start, space = True, False",
    "            start, space = False, False",
)
_SPACES: Defect = ("            space = True\n", "            space = False\n")
_KEYWORDS: Defect = ("return text if text in KEYWORDS else", "return")
_NO_BRACKETS: Defect = (
    "re.escape(sign) for sign in LONGEST_FIRST",
    "re.escape(sign) for sign in LONGEST_FIRST if sign != '['",
)

_UNTYPED: Defect = (
    'left = make_node("BinaryOperator", [left, right], value=sign, type="int")',
    'left = make_node("BinaryOperator", [left, right], value=sign)',
)
_ALL_ALIKE: Defect = ("right = self.expression(tightness + 1)", "right = self.expression()")
_MISNAMED: Defect = (
    'json.dumps(tree, separators=(",", ":"))',
    """json.dumps(tree).replace('"type"', '"qualType"')""",
)
_NO_WHILE: Defect = ('if self.takes("while"):', 'if self.takes("loop"):')

_UNFILLED: Defect = (
    'self.emit(f"call void @llvm.memset.p0.i64(ptr {place}, i8 0, i64 {size}, i1 false)")',
    "pass",
)
_BOTH_SIDES: Defect = (
    'elif node.get("value") in ("&&", "||"):',
    'elif node.get("value") == "none":',
)
_ONE_ROW: Defect = (
    "getelementptr {to_llvm_type(node['type'])}, ptr",
    "getelementptr i32, ptr",
)
_UNSIGNED: Defect = ('"%": "srem"', '"%": "urem"')
_STRICT: Defect = ('"<=": "sle"', '"<=": "slt"')
_UNSIGNED_SHIFT: Defect = ('">>": "ashr"', '">>": "lshr"')
_SHORT_SIGNS: Defect = ("key=len, reverse=True", "key=len")
_NO_PARAMETERS: Defect = ("words.append(f\"{kind}{' signext'", "words.append(f\"{' signext'")

_ONLY_VARIABLES: Defect = ("ROUNDS = 6", "ROUNDS = 0")
_NO_HOISTING: Defect = ("        hoist(function)\n", "")
_NO_EXPANDING: Defect = ("    expand(module)\n", "")
_NO_ZEXT: Defect = ('CASTS = frozenset(["sext", "zext", ', 'CASTS = frozenset(["sext", ')
_NO_REMAINDER: Defect = ('"sdiv", "udiv", "srem", "urem", "shl"', '"sdiv", "udiv", "shl"')
_GIVES_UP: Defect = ("except ValueError as error:", "except OverflowError as error:")

_REMAINS: Defect = ('"srem": "remw"', '"srem": "remuw"')
_NO_ABS: Defect = ('elif name == "abs":', 'elif name == "none":')
_NO_SELECT: Defect = ("def do_select(", "def undone_select(")
_LOGICAL_SHIFT: Defect = ('"ashr": "sraw"', '"ashr": "srlw"')
_NO_ADDRESS: Defect = ("def do_getelementptr(", "def undone_getelementptr(")

DEFECTS: Mapping[tuple[str, str], tuple[Defect, ...]] = MappingProxyType(
    {
        ("T0", "fair"): (),
        ("T0", "half"): (_WRITTEN_DOWN,),
        ("T0", "broken"): (_NO_TOOLS,),
        ("T1", "fair"): (_COLUMNS,),
        ("T1", "half"): (_COLUMNS, _STARTS, _SPACES, _KEYWORDS, _SHORT_SIGNS),
        ("T1", "broken"): (_COLUMNS, _STARTS, _SPACES, _KEYWORDS, _NO_BRACKETS),
        ("T2", "fair"): (_UNTYPED,),
        ("T2", "half"): (_ALL_ALIKE, _MISNAMED),
        ("T2", "broken"): (_NO_WHILE, _ALL_ALIKE, _MISNAMED),
        ("T3", "fair"): (_UNFILLED, _UNSIGNED),
        ("T3", "half"): (_ONE_ROW, _UNSIGNED, _BOTH_SIDES, _UNFILLED, _STRICT),
        ("T3", "broken"): (_NO_PARAMETERS, _UNSIGNED_SHIFT, _STRICT),
        ("T4", "fair"): (_ONLY_VARIABLES, _NO_HOISTING, _NO_EXPANDING),
        ("T4", "half"): (_ONLY_VARIABLES, _NO_REMAINDER, _GIVES_UP),
        ("T4", "broken"): (_ONLY_VARIABLES, _NO_ZEXT, _NO_REMAINDER, _GIVES_UP),
        ("T5", "fair"): (_REMAINS, _NO_ABS),
        ("T5", "half"): (_NO_SELECT, _LOGICAL_SHIFT),
        ("T5", "broken"): (_NO_SELECT, _LOGICAL_SHIFT, _NO_ADDRESS),
    }
)
