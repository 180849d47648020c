"""Clauses of DuckDB's SELECT that Spark lacks, rewritten into ones that it has.

All functions change a parsed query in place; expressions stay DuckDB's, except lists of groups.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from sqlglot import exp

from traces.store.sql import SqlValue

type ColumnLister = Callable[[exp.Expr], Sequence[str]]
"""Returns the columns of a query over the store's relations and views."""


def bind_parameters(tree: exp.Expr, values: Mapping[str, SqlValue]) -> None:
    """Put a value for each `$name`. Raises ValueError for one without."""
    for found in list(tree.find_all(exp.Placeholder, exp.Parameter)):
        if found.name not in values:
            raise ValueError(f"no value for ${found.name}")
        found.replace(exp.convert(values[found.name]))


def reshape_query(tree: exp.Expr, list_columns: ColumnLister) -> exp.Expr:
    """Rewrite all clauses."""
    for columns in list(tree.find_all(exp.Columns)):
        if columns.parent is not None:
            _spell_out_columns(columns, list_columns)
    _name_whole_rows(tree, list_columns)
    for select in list(tree.find_all(exp.Select)):
        _inline_windows(select)
        _resolve_aliases_in_windows(select, list_columns)
    for aggregate in list(tree.find_all(exp.ArrayAgg, exp.GroupConcat, exp.First)):
        _collect_list(aggregate)
    for window in list(tree.find_all(exp.Window)):
        _filter_values(window)
        _multiply(window)
    for select in list(tree.find_all(exp.Select)):
        _explode(select)
        _spell_out_replaced(select)
        _filter_windows(select)
    for pivot in list(tree.find_all(exp.Pivot)):
        _unpivot(pivot)
    for with_ in tree.find_all(exp.With):
        _simplify_definitions(with_)
    return tree


def _simplify_definitions(with_: exp.With) -> None:
    """Leave materialising to Spark; a recursion adds its rows without comparing them."""
    for each in with_.expressions:
        each.set("materialized", None)
        if with_.recursive and isinstance(each.this, exp.Union):
            each.this.set("distinct", False)


def _spell_out_columns(columns: exp.Columns, list_columns: ColumnLister) -> None:
    """Repeat an item for each column whose name matches `COLUMNS('pattern')`."""
    select = columns.find_ancestor(exp.Select)
    assert select is not None
    item = next(each for each in select.expressions if columns in each.walk())
    pattern, found = re.compile(columns.this.name), list[exp.Expr]()
    for name in list_columns(_select_all(select)):
        if match := pattern.search(name):
            copy = item.copy()
            for place in list(copy.find_all(exp.Columns)):
                place.replace(exp.column(name))
            value = copy.this if isinstance(copy, exp.Alias) else copy
            alias = match.expand(copy.alias) if isinstance(copy, exp.Alias) else name
            found.append(exp.alias_(value, alias))
    at = select.expressions.index(item)
    select.set("expressions", [*select.expressions[:at], *found, *select.expressions[at + 1 :]])


def _select_all(select: exp.Select) -> exp.Expr:
    """Return `SELECT *` of what a query reads, with the definitions that it may use."""
    made = exp.select("*")
    for part in ("from_", "joins"):
        made.set(part, exp.maybe_copy(select.args.get(part)) if part == "from_" else
                 [each.copy() for each in select.args.get(part) or ()])  # fmt: skip
    definitions = list[exp.Expr]()
    node: exp.Expr | None = select
    while node is not None:
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With):
            around = {id(each) for each in _ancestors(select)}
            before = itertools.takewhile(lambda each: id(each) not in around, with_.expressions)  # noqa: B023
            definitions[:0] = [each.copy() for each in before]
        node = node.parent
    if definitions:
        made.set("with_", exp.With(expressions=definitions))
    return made


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


def _name_whole_rows(tree: exp.Expr, list_columns: ColumnLister) -> None:
    """`SELECT a FROM t AS a` is a struct of the row, unless there is a column of that name."""
    for select in list(tree.find_all(exp.Select)):
        sources = {
            source.this.alias_or_name
            for source in (select.args.get("from_"), *(select.args.get("joins") or ()))
            if source is not None
        }
        for column in [c for item in select.expressions for c in item.find_all(exp.Column)]:
            if column.table or column.name not in sources or column.parent_select is not select:
                continue
            if column.name in list_columns(_select_all(select)):
                continue
            star = exp.Column(this=exp.Star(), table=column.this.copy())
            row = exp.Anonymous(this="struct", expressions=[star])
            is_item = column.parent is select
            column.replace(exp.alias_(row, column.name) if is_item else row)


_RANKS = (exp.RowNumber, exp.DenseRank, exp.Rank, exp.Lead, exp.Lag)


def _inline_windows(select: exp.Select) -> None:
    """Write named windows where they are used: Spark adds no frame to them."""
    named = {each.name: each for each in select.args.get("windows") or ()}
    select.set("windows", None)
    for window in list(select.find_all(exp.Window)):
        definition = named.get(window.args["alias"].name) if window.args.get("alias") else None
        if definition is not None:
            window.set("alias", None)
            for part in ("partition_by", "order", "spec"):
                found = definition.args.get(part)
                if not window.args.get(part) and found is not None:
                    copy = [e.copy() for e in found] if isinstance(found, list) else found.copy()
                    window.set(part, copy)
        if isinstance(window.this, _RANKS):
            window.set("spec", None)


def _resolve_aliases_in_windows(select: exp.Select, list_columns: ColumnLister) -> None:
    """Write the value for the alias of another item, which no window of Spark may name."""
    values = {item.alias: item.this for item in select.expressions if isinstance(item, exp.Alias)}
    for window in list(select.find_all(exp.Window)):
        for column in list(window.find_all(exp.Column)):
            value = None if column.table else values.get(column.name)
            if value is None or column.parent_select is not select:
                continue
            if column.name not in list_columns(_select_all(select)):
                column.replace(exp.paren(value.copy()))


def _filter_values(window: exp.Window) -> None:
    """An aggregate FILTER (WHERE c) over a window counts what it counts only if c."""
    if not isinstance(window.this, exp.Filter):
        return
    aggregate, condition = window.this.this, window.this.args["expression"].this
    is_lister = isinstance(aggregate, exp.Anonymous)
    value = aggregate.expressions[0] if is_lister else aggregate.this
    if isinstance(value, exp.Star):
        value = exp.Literal.number(1)
    kept = exp.case().when(condition.copy(), value.copy(), copy=False)
    if is_lister:
        aggregate.set("expressions", [kept])
    else:
        aggregate.set("this", kept)
    window.set("this", aggregate)


def _collect_list(aggregate: exp.Expr) -> None:
    """Make a list of structs, which keeps NULL and an order; NULL for no rows, as DuckDB."""
    whole, condition = aggregate, None
    if isinstance(aggregate.parent, exp.IgnoreNulls):
        whole = aggregate.parent
    if isinstance(whole.parent, exp.Filter):
        whole = whole.parent
        condition = whole.args["expression"]
    value, keys = aggregate.this, list[exp.Expr]()
    if isinstance(value, exp.Order):
        value, keys = value.this, value.expressions
    function = "collect_list"
    if isinstance(value, exp.Distinct):
        function, [value] = "collect_set", value.expressions
    if any(key.args.get("desc") for key in keys):
        raise ValueError("a list in descending order has no translation")
    if isinstance(aggregate, exp.First) and not keys:
        return
    fields = [*(key.this for key in keys), value]
    rows: exp.Expr = _call(function, _make_struct(fields))
    counted: exp.Expr = exp.Count(this=exp.Star())
    if condition is not None:
        rows = exp.Filter(this=rows, expression=condition.copy())
        counted = exp.Filter(this=counted, expression=condition.copy())
    if isinstance(whole.parent, exp.Window):
        over = whole.parent
        rows = _over(over, rows)
        counted = _over(over, counted)
        whole = over
    if keys:
        rows = _call("array_sort", rows)
    item = exp.Lambda(
        this=exp.Dot.build([exp.column("each_row"), exp.to_identifier(f"k{len(keys)}")]),
        expressions=[exp.to_identifier("each_row")],
    )
    items: exp.Expr = exp.Anonymous(this="transform", expressions=[rows, item])
    match aggregate:
        case exp.GroupConcat():
            items = _call("array_join", items, aggregate.args["separator"].copy())
        case exp.First():
            items = _call("get", items, exp.Literal.number(0))
    some = exp.GT(this=counted, expression=exp.Literal.number(0))
    whole.replace(exp.case().when(some, items, copy=False))


def _over(window: exp.Window, value: exp.Expr) -> exp.Expr:
    made = window.copy()
    made.set("this", value)
    return made


def _multiply(window: exp.Window) -> None:
    """A running product of numbers that are not negative, by logarithms."""
    product = window.this
    if not (isinstance(product, exp.Anonymous) and product.name.lower() == "product"):
        return
    [value] = product.expressions
    minimum = _over(window, exp.Min(this=value.copy()))
    logarithm = exp.Ln(this=exp.Nullif(this=value.copy(), expression=exp.Literal.number(0)))
    total = exp.Exp(this=_over(window, exp.Sum(this=logarithm)))
    zero = exp.EQ(this=minimum, expression=exp.Literal.number(0))
    window.replace(exp.case().when(zero, exp.Literal.number("0.0"), copy=False).else_(total))


def _explode(select: exp.Select) -> None:
    """Rows of lists: `unnest` among the items, also several of the same length, or of structs."""
    items = [each for each in select.expressions if isinstance(each.unalias(), exp.Explode)]
    if not items:
        return
    lists = [each.unalias().this for each in items]
    names = [each.alias for each in items]
    is_flat = bool(items[0].unalias().expressions)
    if is_flat:  # recursive := true
        made: exp.Expr = _call("inline", *lists)
    elif len(items) == 1:
        made = exp.alias_(_call("explode", *lists), names[0])
    else:
        made = exp.Aliases(
            this=_call("inline", _call("arrays_zip", *lists)),
            expressions=[exp.to_identifier(name) for name in names],
        )
    places = [at for at, each in enumerate(select.expressions) if each in items]
    if places[-1] - places[0] >= len(places):
        _explode_apart(select, places)
        return
    kept = [each for each in select.expressions if each not in items]
    select.set("expressions", [*kept[: places[0]], made, *kept[places[0] :]])


def _explode_apart(select: exp.Select, places: Sequence[int]) -> None:
    """Lists with other items between them: an outer query puts the columns in their order."""
    items = select.expressions
    names = [f"item_{at}" for at in range(len(items))]
    inner = select.copy()
    with_ = inner.args.get("with_")
    inner.set("with_", None)
    lists = _call("arrays_zip", *(items[at].unalias().this for at in places))
    columns = [exp.to_identifier(names[at]) for at in places]
    kept = [at for at in range(len(items)) if at not in places]
    inner.set("expressions", [
        *(exp.alias_(items[at].unalias().copy(), names[at]) for at in kept),
        exp.Aliases(this=_call("inline", lists), expressions=columns),
    ])  # fmt: skip
    ordered = [
        exp.alias_(exp.column(name), item.alias_or_name) if item.alias_or_name else exp.column(name)
        for name, item in zip(names, items, strict=True)
    ]
    outer = exp.select(*ordered).from_(inner.subquery("exploded"))
    outer.set("with_", with_)
    # In place: the query may be the root.
    select.args.clear()
    for key, value in outer.args.items():
        select.set(key, value)


def _spell_out_replaced(select: exp.Select) -> None:
    """`* REPLACE (value AS name)` is `* EXCEPT (name), value AS name`."""
    made = list[exp.Expr]()
    for item in select.expressions:
        made.append(item)
        star = item.this if isinstance(item, exp.Column) else item
        if isinstance(star, exp.Star) and (replaced := star.args.get("replace")):
            star.set("replace", None)
            star.set("except_", [exp.to_identifier(each.alias) for each in replaced])
            made += replaced
    select.set("expressions", made)


def _filter_windows(select: exp.Select) -> None:
    """QUALIFY is a filter of an outer query."""
    qualify = select.args.get("qualify")
    if qualify is None:
        return
    select.set("qualify", None)
    order = select.args.get("order")
    select.set("order", None)
    inner = select.copy()
    with_ = inner.args.get("with_")
    inner.set("with_", None)
    inner.select(exp.alias_(qualify.this, "is_qualified"), copy=False)
    outer = exp.select(exp.Star(except_=[exp.to_identifier("is_qualified")]))
    outer = outer.from_(inner.subquery("qualified")).where(exp.column("is_qualified"))
    if with_ is not None:
        outer.set("with_", with_)
    if order is not None:
        outer.set("order", order)
    # In place: the query may be the root.
    select.args.clear()
    for key, value in outer.args.items():
        select.set(key, value)


def _unpivot(pivot: exp.Pivot) -> None:
    """`UNPIVOT t ON a, b INTO NAME n VALUE v`: a row for each column."""
    if not pivot.args.get("unpivot") or pivot.args.get("into") is None:
        raise ValueError("PIVOT has no translation; write GROUP BY with FILTER")
    into, columns = pivot.args["into"], [each.copy() for each in pivot.expressions]
    rows = [
        exp.Anonymous(
            this="named_struct",
            expressions=[
                exp.Literal.string(into.this.name),
                exp.Literal.string(column.name),
                exp.Literal.string(into.expressions[0].name),
                column.copy(),
            ],
        )
        for column in columns
    ]
    kept = exp.Star(except_=[exp.to_identifier(column.name) for column in columns])
    table = pivot.this.copy()
    made = exp.select(kept, _call("inline", _call("array", *rows))).from_(table)
    pivot.replace(made)


def _make_struct(values: Sequence[exp.Expr]) -> exp.Expr:
    pairs = ((exp.Literal.string(f"k{at}"), value.copy()) for at, value in enumerate(values))
    return exp.Anonymous(this="named_struct", expressions=[*itertools.chain(*pairs)])


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[each.copy() for each in arguments])
