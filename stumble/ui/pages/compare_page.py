"""Two runs, models, agents or campaigns beside each other."""

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from stumble.ui.pages.run_page import load_run
from stumble.ui.serving.app import state_of
from stumble.ui.values.compare_view import KINDS, compare_groups, compare_runs, list_choices


async def show_comparison(request: Request) -> Response:
    """Compare what the address names; without names, the form."""
    state, given = state_of(request), request.query_params
    a, b, kind = given.get("a", "").strip(), given.get("b", "").strip(), given.get("by", "run")
    kind = kind if kind in KINDS else "run"
    runs = groups = None
    if a and b and kind == "run":
        for id in (a, b):
            await load_run(state, id)
        try:
            runs = await anyio.to_thread.run_sync(compare_runs, state.store.tapes, a, b)
        except (OSError, ValueError) as error:
            raise HTTPException(422, f"They cannot be compared: {error}.") from None
    elif a and b:
        groups = await state.query(lambda connection: compare_groups(connection, kind, a, b))
    return state.render(
        "compare.html.jinja",
        page="compare",
        a=a,
        b=b,
        kind=kind,
        choices=await state.query(list_choices),
        runs=runs,
        groups=groups,
    )
