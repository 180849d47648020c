"""Bodies of error responses: reason phrases, HTML pages, JSON."""

import json
from http import HTTPStatus


def find_status_phrase(code: int) -> str:
    """Return the reason phrase of an HTTP status; `Error` if it is unknown."""
    try:
        return HTTPStatus(code).phrase
    except ValueError:
        return {529: "Overloaded"}.get(code, "Error")


def render_error_page(code: int, phrase: str) -> bytes:
    """Return an HTML error page in the style of nginx."""
    title = f"{code} {phrase}"
    return (
        f"<html>\n<head><title>{title}</title></head>\n<body>\n<center><h1>{title}</h1></center>\n"
        "<hr><center>nginx</center>\n</body>\n</html>\n"
    ).encode()


def encode_json_body(value: object) -> bytes:
    """Return a value as UTF-8 JSON."""
    return json.dumps(value).encode()
