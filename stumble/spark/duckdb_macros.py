"""Macros of DuckDB expanded in the syntax tree of a query, as Spark has none without types.

An argument that a macro names more than once, or within a lambda, is bound once: `f(a)` becomes
`get(transform(array(a), v -> body of v), 0)`. Lambda variables get names of their own, so no
argument is captured.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import sqlglot
from msgspec import Struct
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from traces.store.sql import build_sql_macros, build_table_macros

type Scope = Mapping[str, exp.Expr]
"""What names stand for: parameters of a macro, variables of lambdas."""

_NAMES = (exp.Column, exp.Literal, exp.Null, exp.Boolean)
_TRANSPARENT = (exp.Paren, exp.Neg, exp.Cast, exp.Dot, exp.DataType, exp.Identifier)


class IndexedFromOne(DuckDB):
    """DuckDB's dialect, with the indexes of lists as they are written."""

    INDEX_OFFSET = 0


class Macro(Struct, frozen=True):
    """A macro's parameters and its body."""

    parameters: tuple[str, ...]
    body: exp.Expr
    is_table: bool = False
    is_translated: bool = False
    """Whether the body is in Spark's dialect already."""


class Call(Struct, frozen=True):
    """A macro with its arguments."""

    macro: Macro
    arguments: Sequence[exp.Expr]


def parse_query(text: str) -> exp.Expr:
    """Parse a DuckDB query. Raises ValueError."""
    try:
        return name_lambda_variables(sqlglot.parse_one(text, read=IndexedFromOne))
    except sqlglot.errors.SqlglotError as error:
        raise ValueError(f"sqlglot cannot read this: {error}") from None


def name_lambda_variables(tree: exp.Expr) -> exp.Expr:
    """Make columns of the bare identifiers that are variables of lambdas."""
    for each in list(tree.find_all(exp.Lambda)):
        names = {variable.name for variable in each.expressions}
        for found in list(each.this.find_all(exp.Identifier)):
            if found.name in names and _is_variable(found):
                found.replace(exp.Column(this=found.copy()))
    return tree


def _is_variable(found: exp.Identifier) -> bool:
    match found.parent:
        case exp.Column() | exp.Alias():
            return False
        case exp.Dot():
            return found.arg_key == "this"
        case exp.PropertyEQ():  # a field of a struct: its value, not its name
            return found.arg_key == "expression"
        case exp.Lambda():
            return found.arg_key == "this"
    return True


@cache
def read_macros() -> dict[str, Macro]:
    """Return all macros of the store, by name."""
    macros = dict[str, Macro]()
    for made in sqlglot.parse(build_sql_macros() + build_table_macros(), read=IndexedFromOne):
        if isinstance(made, exp.Create):
            function = made.this
            macros[function.this.name] = Macro(
                tuple(parameter.name for parameter in function.expressions),
                name_lambda_variables(made.expression),
                is_table=made.args.get("properties") is not None,
            )
    return macros


@dataclass
class MacroExpander:
    """Copies a tree with all macros expanded and each node translated."""

    macros: Mapping[str, Macro]
    translate_node: Callable[[exp.Expr], exp.Expr | Call]
    """Gets a node whose children are translated."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def expand(self, node: exp.Expr, scope: Scope, *, translate: bool = True) -> exp.Expr:
        """Return a translated copy of a node."""
        match node:
            case exp.Column():
                return _resolve_column(node, scope)
            case exp.Array(expressions=[exp.Comprehension() as each]) if translate:
                return self._expand_comprehension(each, scope)
            case exp.Lambda():
                return self._expand_lambda(node, scope, translate)
            case exp.Anonymous() if translate and (macro := self.macros.get(node.name.lower())):
                return self._expand_call(node, macro, scope)
        made = self._copy_node(node, scope, translate)
        return self._finish(made) if translate else made

    def _copy_node(self, node: exp.Expr, scope: Scope, translate: bool) -> exp.Expr:
        def copy(value: object) -> object:
            if isinstance(value, exp.Expr):
                return self.expand(value, scope, translate=translate)
            return [copy(each) for each in value] if isinstance(value, list) else value

        made = node.__class__(**{key: copy(value) for key, value in node.args.items()})
        if isinstance(node, exp.PropertyEQ):  # the name of a struct's field is no column
            made.set("this", node.this.copy())
        return made

    def _finish(self, made: exp.Expr) -> exp.Expr:
        found = self.translate_node(made)
        return self.apply(found.macro, found.arguments) if isinstance(found, Call) else found

    def _expand_call(self, node: exp.Anonymous, macro: Macro, scope: Scope) -> exp.Expr:
        return self.apply(macro, [self.expand(each, scope) for each in node.expressions])

    def apply(self, macro: Macro, arguments: Sequence[exp.Expr]) -> exp.Expr:
        """Return the body of a macro with these arguments, which are translated already."""
        if len(arguments) != len(macro.parameters):
            raise ValueError(f"a macro of {', '.join(macro.parameters)} got {len(arguments)}")
        scope, bound = dict[str, exp.Expr](), dict[str, exp.Expr]()
        for name, value in zip(macro.parameters, arguments, strict=True):
            if _is_cheap(value) or not _is_named_again(macro.body, name):
                scope[name] = value
            else:
                bound[name] = value
        variable = self._name_variable()
        whole = exp.column(variable)
        for name in bound:
            scope[name] = (
                whole if len(bound) == 1 else exp.Dot.build([whole, exp.to_identifier(name)])
            )
        body = self.expand(macro.body, scope, translate=not macro.is_translated)
        if not bound:
            return exp.paren(body, copy=False) if isinstance(body, exp.Binary) else body
        [*values] = bound.values()
        value = values[0] if len(bound) == 1 else _make_struct(bound)
        return bind_value(value, variable, body)

    def _name_variable(self) -> str:
        return f"v{next(self._numbers)}"

    def _expand_lambda(self, node: exp.Lambda, scope: Scope, translate: bool) -> exp.Expr:
        renamed = {each.name: self._name_variable() for each in node.expressions}
        inner = {**scope, **{old: exp.column(new) for old, new in renamed.items()}}
        if translate and isinstance(node.parent, exp.Transform | exp.ArrayFilter):
            for place in node.expressions[1:]:  # DuckDB counts from 1
                index = exp.column(renamed[place.name]) + exp.Literal.number(1)
                inner[place.name] = exp.paren(index)
        return exp.Lambda(
            this=self.expand(node.this, inner, translate=translate),
            expressions=[exp.to_identifier(new) for new in renamed.values()],
        )

    def _expand_comprehension(self, node: exp.Comprehension, scope: Scope) -> exp.Expr:
        items = self.expand(node.args["iterator"], scope)
        name, new = node.expression.name, self._name_variable()
        inner = {**scope, name: exp.column(new)}
        variable = exp.to_identifier(new)
        if condition := node.args.get("condition"):
            kept = exp.Lambda(this=self.expand(condition, inner), expressions=[variable.copy()])
            items = exp.func("filter", items, kept)
            new = self._name_variable()
            variable, inner = exp.to_identifier(new), {**scope, name: exp.column(new)}
        body = exp.Lambda(this=self.expand(node.this, inner), expressions=[variable])
        return exp.Anonymous(this="transform", expressions=[items, body])

    def inline_tables(self, tree: exp.Expr) -> None:
        """Put the queries of table macros where they are called, not translated yet."""
        for node in list(tree.find_all(exp.Table)):
            call = node.this  # the table has no name of its own
            macro = self.macros.get(call.name) if isinstance(call, exp.Anonymous) else None
            if macro is None:
                continue
            scope = dict(zip(macro.parameters, call.expressions, strict=True))
            body = self.expand(macro.body, scope, translate=False)
            self._rename_definitions(body)
            rows = exp.Subquery(this=body, alias=node.args.get("alias"))
            if joins := node.args.get("joins"):
                rows.set("joins", joins)
            node.replace(rows)

    def _rename_definitions(self, body: exp.Expr) -> None:
        """Give each CTE another name, as the caller may have one of the same."""
        for each in list(body.find_all(exp.CTE)):
            old, new = each.alias, f"{each.alias}_{self._name_variable()}"
            for place in list(body.find_all(exp.Table)):
                if place.name == old:
                    alias = exp.TableAlias(this=exp.to_identifier(place.alias or old))
                    place.set("this", exp.to_identifier(new))
                    place.set("alias", alias)
            each.set("alias", exp.TableAlias(this=exp.to_identifier(new)))


def bind_value(value: exp.Expr, variable: str, body: exp.Expr) -> exp.Expr:
    """Return the body with a variable that stands for a value."""
    items = exp.Anonymous(this="array", expressions=[value])
    step = exp.Lambda(this=body, expressions=[exp.to_identifier(variable)])
    bound = exp.Anonymous(this="transform", expressions=[items, step])
    return exp.Anonymous(this="get", expressions=[bound, exp.Literal.number(0)])


def _make_struct(fields: Mapping[str, exp.Expr]) -> exp.Expr:
    pairs = ((exp.Literal.string(name), value) for name, value in fields.items())
    return exp.Anonymous(this="named_struct", expressions=[*itertools.chain(*pairs)])


def _resolve_column(node: exp.Column, scope: Scope) -> exp.Expr:
    """Return what a dotted name stands for."""
    parts = node.parts
    value = scope.get(parts[0].name)
    if value is None or isinstance(node.this, exp.Star):
        return node.copy()
    if len(parts) == 1:
        return value.copy()
    head = value.copy()
    if not isinstance(head, exp.Column | exp.Dot | exp.Anonymous):
        head = exp.paren(head, copy=False)
    return exp.Dot.build([head, *(part.copy() for part in parts[1:])])


def _is_cheap(value: exp.Expr) -> bool:
    return all(isinstance(each, (*_NAMES, *_TRANSPARENT)) for each in value.walk())


def _is_named_again(body: exp.Expr, name: str) -> bool:
    """Whether a parameter occurs more than once, or where it would be computed repeatedly."""
    found = [each for each in body.find_all(exp.Column) if each.parts[0].name == name]
    return len(found) > 1 or any(
        each.find_ancestor(exp.Lambda, exp.Comprehension) is not None for each in found
    )
