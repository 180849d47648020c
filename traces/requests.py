"""What a user says of the requests that a tool makes: `METHOD GLOB`, as in `POST */refunds`."""

from traces.nearest import nearest

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def check(text: str) -> None:
    """ValueError where no request can be meant: an unknown method, or no glob of a path."""
    method, _, glob = text.partition(" ")
    if not glob.strip():
        raise ValueError(f"{text!r} is not METHOD GLOB, as in POST */refunds")
    if method not in METHODS:
        raise ValueError(f"no method is called {method!r}{nearest(method.upper(), METHODS)}")
    if not glob.startswith(("/", "*", "?", "[")):
        raise ValueError(f"no path is like {glob!r}, since paths begin with /; as in */refunds")
