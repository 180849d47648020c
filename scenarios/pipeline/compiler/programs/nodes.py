"""A program of the small C as a tree of values, before it has a layout."""

from msgspec import Struct

WORD = 2**32
LARGEST = 2**31 - 1


class Number(Struct, frozen=True):
    """A literal: its text, such as `0x1F` or `'a'`, and its value."""

    text: str
    value: int


class Place(Struct, frozen=True):
    """A variable, an element of an array, or a row or an array that is passed."""

    name: str
    indices: tuple["Expression", ...] = ()


class Unary(Struct, frozen=True):
    sign: str
    operand: "Expression"


class Binary(Struct, frozen=True):
    sign: str
    left: "Expression"
    right: "Expression"


class Call(Struct, frozen=True):
    name: str
    arguments: tuple["Expression", ...] = ()


type Expression = Number | Place | Unary | Binary | Call
type Initialiser = Expression | tuple["Initialiser", ...]


class Declarator(Struct, frozen=True):
    """A variable, or an array of one or two dimensions."""

    name: str
    sizes: tuple[int, ...] = ()
    initialiser: Initialiser | None = None


class Declaration(Struct, frozen=True):
    declarators: tuple[Declarator, ...]
    constant: bool = False


class Assignment(Struct, frozen=True):
    place: Place
    sign: str
    value: Expression


class If(Struct, frozen=True):
    test: Expression
    then: "Block"
    otherwise: "Block | None" = None


class While(Struct, frozen=True):
    test: Expression
    body: "Block"


class For(Struct, frozen=True):
    first: Declaration | Assignment | None
    test: Expression | None
    step: Assignment | None
    body: "Block"


class Block(Struct, frozen=True):
    statements: tuple["Statement", ...]


class Jump(Struct, frozen=True):
    """`break` or `continue`, or `` for a lone semicolon."""

    word: str


class Return(Struct, frozen=True):
    value: Expression | None


type Statement = Declaration | Assignment | Call | If | While | For | Block | Jump | Return


class Parameter(Struct, frozen=True):
    """`sizes` of an array begin with 0, which is not written."""

    name: str
    sizes: tuple[int, ...] = ()
    constant: bool = False


class Function(Struct, frozen=True):
    name: str
    parameters: tuple[Parameter, ...]
    body: Block | None
    """None: it is only declared."""
    gives_int: bool = True


class Program(Struct, frozen=True):
    items: tuple[Declaration | Function, ...]
