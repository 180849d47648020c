"""The body of a response as text that the judge compares."""

from traces.bodies.aws_event_stream import is_aws_event_stream, show_as_sse
from traces.bodies.content_encoding import decode_content_or_raw
from traces.model import Response


def decode_readable_body(answer: Response | None) -> bytes | None:
    """Return the body without content encoding, or as it is if it cannot be decoded.

    A binary stream is shown as server-sent events. None if there is no response.
    """
    if answer is None:
        return None
    data = decode_content_or_raw(answer.headers, answer.body)
    return show_as_sse(data) if is_aws_event_stream(answer.headers) else data
