"""A cassette that vcrpy plays: what was asked and answered over HTTP, without its times.

An answer that was cut, or never came, cannot be said in it, nor what went over a WebSocket or
stdio, nor the edits of a fault: these are left out by name. Bodies stand as they were on the wire.
"""

from traces.exports import LeftOut
from traces.model import Exchange, Headers, Response
from traces.tape import Tape


def document(tape: Tape) -> tuple[dict[str, object], tuple[LeftOut, ...]]:
    """A run as the value of a cassette; ValueError where nothing of it can stand in one."""
    whole, left = list[object](), list[LeftOut]()
    for exchange in tape.exchanges:
        answer = exchange.response
        why = _unfit(exchange)
        if why is not None or answer is None:
            left.append(LeftOut(what=f"exchange {exchange.seq}", why=why or "it has no answer"))
        else:
            whole.append({"request": _request(exchange), "response": _response(answer)})
            if exchange.edits:
                why = "a cassette of vcrpy has one body for a request"
                left.append(LeftOut(what=f"the edits of exchange {exchange.seq}", why=why))
    if not whole:
        raise ValueError(left[0].why if left else "it has no exchanges")
    return {"version": 1, "interactions": whole}, tuple(left)


def _unfit(exchange: Exchange) -> str | None:
    if exchange.transport != "http":
        return f"a cassette of vcrpy holds no {exchange.transport}"
    if exchange.response is None:
        return "it has no answer"
    if exchange.error is not None or exchange.response.ended is None:
        return "its answer was cut, and a cassette of vcrpy cannot say so"
    return None


def _request(exchange: Exchange) -> dict[str, object]:
    asked = exchange.request
    return {
        "method": asked.method,
        "uri": asked.url,
        "body": _body(asked.body) if asked.body else None,
        "headers": _headers(asked.headers),
    }


def _response(answer: Response) -> dict[str, object]:
    return {
        "status": {"code": answer.status, "message": answer.reason},
        "headers": _headers(answer.headers),
        "body": {"string": _body(answer.body)},
    }


def _headers(headers: Headers) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, value in headers:
        out.setdefault(name, []).append(value)
    return out


def _body(data: bytes) -> str | bytes:
    """A text where it is one that YAML gives back as it was."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    return text if "\r" not in text and text.isprintable() or _plain(text) else data


def _plain(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)
