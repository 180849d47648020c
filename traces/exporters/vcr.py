"""Export to a vcrpy cassette: HTTP requests and responses, without times.

A response that was cut or never came has no form in it, nor have WebSocket or stdio traffic and the
edits of a fault: these are omitted by name. Bodies are as they were on the wire.
"""

from traces.exporters import ExportOmission
from traces.model import Exchange, Headers, Response
from traces.tape.reader import Tape


def to_vcr_document(tape: Tape) -> tuple[dict[str, object], tuple[ExportOmission, ...]]:
    """Convert a run to the value of a cassette; ValueError if no exchange can be exported."""
    interactions, omissions = list[object](), list[ExportOmission]()
    for exchange in tape.exchanges:
        response = exchange.response
        why = _explain_vcr_omission(exchange)
        if why is not None or response is None:
            omissions.append(
                ExportOmission(what=f"exchange {exchange.seq}", why=why or "it has no answer")
            )
        else:
            interactions.append(
                {"request": _to_vcr_request(exchange), "response": _to_vcr_response(response)}
            )
            if exchange.edits:
                why = "a cassette of vcrpy has one body for a request"
                omissions.append(
                    ExportOmission(what=f"the edits of exchange {exchange.seq}", why=why)
                )
    if not interactions:
        raise ValueError(omissions[0].why if omissions else "it has no exchanges")
    return {"version": 1, "interactions": interactions}, tuple(omissions)


def _explain_vcr_omission(exchange: Exchange) -> str | None:
    if exchange.transport != "http":
        return f"a cassette of vcrpy holds no {exchange.transport}"
    if exchange.response is None:
        return "it has no answer"
    if exchange.error is not None or exchange.response.ended is None:
        return "its answer was cut, and a cassette of vcrpy cannot say so"
    return None


def _to_vcr_request(exchange: Exchange) -> dict[str, object]:
    request = exchange.request
    return {
        "method": request.method,
        "uri": request.url,
        "body": _to_yaml_body(request.body) if request.body else None,
        "headers": _group_header_values(request.headers),
    }


def _to_vcr_response(answer: Response) -> dict[str, object]:
    return {
        "status": {"code": answer.status, "message": answer.reason},
        "headers": _group_header_values(answer.headers),
        "body": {"string": _to_yaml_body(answer.body)},
    }


def _group_header_values(headers: Headers) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, value in headers:
        out.setdefault(name, []).append(value)
    return out


def _to_yaml_body(data: bytes) -> str | bytes:
    """Return the body as text if YAML preserves that, otherwise as bytes."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    return text if "\r" not in text and text.isprintable() or _is_plain_yaml_text(text) else data


def _is_plain_yaml_text(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)
