"""The SQL page: named questions and free statements, read-only, in a process of their own."""

import csv
import io
import json
import sys

from starlette.requests import Request
from starlette.responses import Response

from stumble.store.index import list_relations
from stumble.ui.serving.app import UiState, state_of
from stumble.ui.values.sql_result import SqlResult, format_cell, list_bars, list_fields
from traces.store.sql import SqlValue, bind_question, describe_views, list_questions

QUERY_SECONDS = 20.0
START_SECONDS = 30.0
"""Seconds for the process around a statement."""
PAGE_ROWS = 1000
CSV_ROWS = 100_000
PARAMETER = "p."


async def show_sql(request: Request) -> Response:
    """Show the questions, and the result of the one that the address asks."""
    state, given = state_of(request), dict(request.query_params)
    questions = {each.name: each for each in list_questions()}
    question = questions.get(given.get("question", ""))
    values = {name.removeprefix(PARAMETER): value for name, value in given.items()
              if name.startswith(PARAMETER) and value}  # fmt: skip
    result = await _run(state, given, PAGE_ROWS)
    shown, bars = list_bars(result, given.get("bar", "")) if result else ("", ())
    return state.render(
        "sql.html.jinja",
        page="sql",
        questions=tuple(questions.values()),
        question=question,
        fields=tuple(list_fields(question, values)) if question else (),
        views=describe_views(),
        relations=list_relations(),
        q=given.get("q", ""),
        result=result,
        format_cell=format_cell,
        chart=(shown, bars),
        query=str(request.url.query),
        is_chart=given.get("as") == "chart",
        given=given,
    )


async def send_csv(request: Request) -> Response:
    """Send the result of an address as CSV."""
    result = await _run(state_of(request), dict(request.query_params), CSV_ROWS)
    if result is None or result.error:
        return Response(result.error if result else "no query", 422, media_type="text/plain")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.names)
    writer.writerows(result.rows)
    headers = {"Content-Disposition": 'attachment; filename="result.csv"'}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


async def _run(state: UiState, given: dict[str, str], rows: int) -> SqlResult | None:
    """Run what the address asks; None if it asks nothing."""
    if not given.get("question") and not given.get("q", "").strip():
        return None
    try:
        sql, values = _read_statement(given)
    except ValueError as error:
        return SqlResult(error=str(error))
    asked = {
        "store": str(state.store.root),
        "sql": sql,
        "values": values,
        "seconds": QUERY_SECONDS,
        "rows": rows,
    }
    command = (sys.executable, "-m", "stumble.ui.reading.query_worker")
    seconds = QUERY_SECONDS + START_SECONDS
    try:
        code, output, errors = await state.children.run(
            command, data=json.dumps(asked).encode(), seconds=seconds
        )
    except TimeoutError:
        return SqlResult(error=f"this takes more than {QUERY_SECONDS:g} s; narrow it")
    if code:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        return SqlResult(error=lines[-1] if lines else f"the query ended with exit code {code}")
    return SqlResult.from_json(json.loads(output))


def _read_statement(given: dict[str, str]) -> tuple[str, dict[str, SqlValue] | None]:
    """Return the statement and its values. Raises ValueError for an unknown question or value."""
    name = given.get("question", "")
    if not name:
        text = given["q"].strip()
        known = {*describe_views(), *list_relations()}
        return (f'from "{text}"' if text in known else text), None
    if name not in {each.name for each in list_questions()}:
        raise ValueError(f"no question {name!r}")
    values: dict[str, SqlValue] = {
        key.removeprefix(PARAMETER): value for key, value in given.items()
        if key.startswith(PARAMETER) and value
    }  # fmt: skip
    return bind_question(name, **values)
