"""Route patterns: `METHOD GLOB` names the requests of a tool, as in `POST */refunds`."""

from traces.did_you_mean import suggest_nearest_name

HTTP_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def check_route_pattern(text: str) -> None:
    """Raise ValueError for an unknown method, or for a glob that no path can match."""
    method, _, glob = text.partition(" ")
    if not glob.strip():
        raise ValueError(f"{text!r} is not METHOD GLOB, as in POST */refunds")
    if method not in HTTP_METHODS:
        raise ValueError(
            f"no method is called {method!r}{suggest_nearest_name(method.upper(), HTTP_METHODS)}"
        )
    if not glob.startswith(("/", "*", "?", "[")):
        raise ValueError(f"no path is like {glob!r}, since paths begin with /; as in */refunds")
