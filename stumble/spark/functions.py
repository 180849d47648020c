"""DuckDB's functions and operators in Spark's dialect.

Each template is an expression of Spark over parameters, expanded like a macro, so that an argument
which it names twice is computed once.
"""

from functools import cache

import sqlglot
from sqlglot import exp

from stumble.spark.duckdb_macros import Call, Macro, name_lambda_variables

_TEMPLATES = {
    "list_sum(l)": "aggregate(filter(l, x -> x IS NOT NULL), CAST(NULL AS DOUBLE),"
    " (s, x) -> coalesce(s, 0D) + x)",
    "list_avg(l)": "aggregate(filter(l, x -> x IS NOT NULL),"
    " named_struct('s', 0D, 'n', 0D), (a, x) -> named_struct('s', a.s + x, 'n', a.n + 1D),"
    " a -> a.s / nullif(a.n, 0D))",
    "list_count(l)": "CAST(array_size(filter(l, x -> x IS NOT NULL)) AS BIGINT)",
    # Welford (1962), as DuckDB.
    "list_stddev_samp(l)": "aggregate(filter(l, x -> x IS NOT NULL),"
    " named_struct('n', 0D, 'm', 0D, 'q', 0D), (a, x) -> named_struct('n', a.n + 1D,"
    " 'm', a.m + (x - a.m) / (a.n + 1D),"
    " 'q', a.q + (x - a.m) * (x - (a.m + (x - a.m) / (a.n + 1D)))),"
    " a -> CASE WHEN a.n > 1D THEN sqrt(a.q / (a.n - 1D)) END)",
    "list_median(l)": "get(transform(array(array_sort(filter(l, x -> x IS NOT NULL))), s ->"
    " (get(s, CAST(floor((array_size(s) - 1) / 2D) AS INT))"
    " + get(s, CAST(floor(array_size(s) / 2D) AS INT))) / 2D), 0)",
    "list_mode(l)": "get(transform(array(filter(l, x -> x IS NOT NULL)), s -> get(transform("
    "array_sort(transform(array_distinct(s), x -> named_struct('n',"
    " -array_size(filter(s, y -> y = x)), 'p', array_position(s, x), 'x', x))),"
    " e -> e.x), 0)), 0)",
    "list_max(l)": "array_max(l)",
    "list_inner_product(a, b)": "aggregate(zip_with(a, b, (x, y) -> CAST(x AS DOUBLE) * y), 0D,"
    " (s, x) -> s + x)",
    "list_position(l, x)": "nullif(array_position(l, x), 0)",
    "list_reduce(l, f, i)": "aggregate(l, i, f)",
    "list_fold(l, f)": "aggregate(slice(l, 2, array_size(l)), get(l, 0), f)",
    "list_transform(l, f)": "transform(l, f)",
    "list_filter(l, f)": "filter(l, f)",
    "list_sort(l)": "array_sort(l)",
    "list_distinct(l)": "array_compact(array_distinct(l))",
    "list_concat(a, b)": "concat(coalesce(a, array()), coalesce(b, array()))",
    "flatten(l)": "flatten(array_compact(l))",
    "len(l)": "CAST(array_size(l) AS BIGINT)",
    "up_to(a, b)": "CASE WHEN b > a THEN sequence(CAST(a AS BIGINT), CAST(b AS BIGINT) - 1)"
    " WHEN b <= a THEN CAST(array() AS ARRAY<BIGINT>) END",
    "down_to(a, b)": "CASE WHEN a > b THEN sequence(CAST(a AS BIGINT), CAST(b AS BIGINT) + 1, -1)"
    " WHEN a <= b THEN CAST(array() AS ARRAY<BIGINT>) END",
    "list_item(l, n)": "try_element_at(l, nullif(CAST(n AS INT), 0))",
    "divide(a, b)": "CASE WHEN b = 0 THEN a * CAST('Infinity' AS DOUBLE)"
    " ELSE CAST(a AS DOUBLE) / b END",
    "isfinite(x)": "NOT isnan(x) AND abs(x) != CAST('Infinity' AS DOUBLE)",
    # Stirling's series for z + 10 (DLMF 5.11.1), less the steps up to it; its error is below 1e-17.
    "lgamma(z)": "get(transform(array(named_struct('z', CAST(z AS DOUBLE), 'y', z + 10D)), g ->"
    " (g.y - 0.5D) * ln(g.y) - g.y + 0.91893853320467274178D"
    " + (1D / 12D - (1D / 360D - (1D / 1260D - (1D / 1680D - (1D / 1188D - (691D / 360360D"
    " - 1D / 156D / g.y / g.y) / g.y / g.y) / g.y / g.y) / g.y / g.y) / g.y / g.y)"
    " / g.y / g.y) / g.y"
    " - ln(g.z * (g.z + 1D) * (g.z + 2D) * (g.z + 3D) * (g.z + 4D) * (g.z + 5D) * (g.z + 6D)"
    " * (g.z + 7D) * (g.z + 8D) * (g.z + 9D))), 0)",
    # The lower half of the digest as a number; its bytes are in the order of memory.
    "md5_number_lower(t)": "get(transform(array(substr(md5(t), 17, 16)), h -> CAST(conv(concat("
    "substr(h, 15, 2), substr(h, 13, 2), substr(h, 11, 2), substr(h, 9, 2), substr(h, 7, 2),"
    " substr(h, 5, 2), substr(h, 3, 2), substr(h, 1, 2)), 16, 10) AS DECIMAL(20, 0))), 0)",
    "to_microseconds(n)": "make_dt_interval(0, 0, 0, n / 1000000)",
    "to_days(n)": "make_dt_interval(n)",
    "json_keys(j)": "json_object_keys(j)",
    "json_value(j, k)": "element_at(from_json(j, 'map<string,string>'), k)",
}
_RENAMED: dict[type[exp.Expr], str] = {
    exp.ArrayMax: "list_max",
    exp.ArraySort: "list_sort",
    exp.ArrayDistinct: "list_distinct",
    exp.Flatten: "flatten",
    exp.Length: "len",
    exp.JSONKeys: "json_keys",
    exp.ToDays: "to_days",
}
_WHOLE = (exp.Sum, exp.Count, exp.Filter, exp.Literal)


@cache
def _templates() -> dict[str, Macro]:
    made = dict[str, Macro]()
    for head, body in _TEMPLATES.items():
        name, _, parameters = head.rstrip(")").partition("(")
        tree = name_lambda_variables(sqlglot.parse_one(body, read="spark"))
        made[name] = Macro(tuple(parameters.split(", ")), tree, is_translated=True)
    return made


def translate_node(node: exp.Expr) -> exp.Expr | Call:
    """Translate a node whose children are translated."""
    match node:
        case exp.Anonymous(expressions=[items, step]) if node.name.lower() == "list_reduce":
            return _call("list_fold", items, step)
        case exp.Anonymous() if node.name.lower() in _TEMPLATE_NAMES:
            return _call(node.name.lower(), *node.expressions)
        case exp.Literal(is_string=False) if not node.name.isdigit():
            return exp.cast(exp.Literal.string(node.name), exp.DType.DOUBLE)
        case exp.Bracket(this=items, expressions=[index]):
            return _call("list_item", items, index)
        case exp.Div():
            return _divide(node.this, node.expression)
        case exp.GenerateSeries():
            return _translate_range(node)
        case exp.Transform():
            return _call("list_transform", node.this, node.expression)
        case exp.ArrayFilter():
            return _call("list_filter", node.this, node.expression)
        case exp.ArrayConcat(expressions=[other]):
            return _call("list_concat", node.this, other)
        case exp.Struct():
            pairs = (
                (exp.Literal.string(each.this.name), each.expression) for each in node.expressions
            )
            return exp.Anonymous(
                this="named_struct", expressions=[e for pair in pairs for e in pair]
            )
        case exp.Cast():
            return _translate_cast(node)
        case exp.Case():
            return _choose_case(node)
        case exp.JSONExtractScalar():
            return _call("json_value", node.this, node.expression)
        case exp.PercentileCont():
            return exp.Anonymous(this="percentile", expressions=[node.this, node.expression])
        case exp.PercentileDisc():
            order = exp.Order(expressions=[exp.Ordered(this=node.this)])
            share = exp.Anonymous(this="percentile_disc", expressions=[node.expression])
            return exp.WithinGroup(this=share, expression=order)
        case exp.IgnoreNulls(this=exp.AnyValue() as value):
            return exp.Anonymous(this="any_value", expressions=[value.this, exp.true()])
        case exp.AggFunc(this=exp.Order() as order) if not isinstance(node, exp.ArrayAgg):
            node.set("this", order.this)  # only the order in which numbers are added
        case exp.IntDiv():
            return exp.func("floor", exp.Div(this=node.this, expression=node.expression))
    if name := _RENAMED.get(type(node)):
        return _call(name, node.this)
    return node


def _call(name: str, *arguments: exp.Expr) -> Call:
    return Call(_templates()[name], arguments)


def _divide(a: exp.Expr, b: exp.Expr) -> exp.Expr | Call:
    """Return a quotient of real numbers; by zero it is infinite, as IEEE has it."""
    if isinstance(b, exp.Nullif) or (isinstance(b, exp.Literal) and b.name != "0"):
        real = exp.cast(a, exp.DType.DOUBLE)
        return exp.Div(this=real, expression=b)
    return _call("divide", a, b)


def _choose_case(node: exp.Case) -> exp.Expr:
    """Decide `confidence = 0.95` of a macro: half of what an interval is made of falls away."""
    first: exp.If = node.args["ifs"][0]
    equal = first.this
    if isinstance(equal, exp.EQ) and equal.this == equal.expression and _is_number(equal.this):
        chosen: exp.Expr = first.args["true"]
        return chosen
    return node


def _is_number(value: exp.Expr) -> bool:
    return isinstance(value, exp.Cast) and isinstance(value.this, exp.Literal)


def _translate_range(node: exp.GenerateSeries) -> Call:
    step = node.args.get("step")
    name = "down_to" if isinstance(step, exp.Neg) else "up_to"
    return _call(name, node.args["start"], node.args["end"])


def _translate_cast(node: exp.Cast) -> exp.Expr:
    value: exp.Expr = node.this
    if node.to.is_type(exp.DType.JSON):
        return value
    # DuckDB rounds to the nearest whole number, Spark towards zero.
    if node.to.is_type(exp.DType.BIGINT) and not isinstance(value, _WHOLE):
        return exp.cast(exp.Anonymous(this="rint", expressions=[value]), exp.DType.BIGINT)
    return node


_TEMPLATE_NAMES = frozenset(head.partition("(")[0] for head in _TEMPLATES)
