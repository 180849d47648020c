"""Why no answer came, in the words of `Exchange.error`."""

import errno
import socket
import ssl

_RESET = frozenset({errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE})
_TIMEOUT = frozenset({errno.ETIMEDOUT, errno.EAGAIN})
STREAM_RESET = "reset: the server reset the stream"
ENDS = ("eof", "protocol", "cancelled")
CODES = ("refused", "reset", "timeout", "dns", "tls", *ENDS)


def resets(error: str) -> bool:
    """Whether an agent that is to see this error sees its connection reset, and not just end."""
    return error.partition(":")[0] not in ENDS


def code_of(error: OSError) -> str:
    """What went wrong with a connection, as `code: detail`.

    A host or network that cannot be reached counts as refused.
    """
    detail = " ".join((error.strerror or str(error)).split())
    if isinstance(error, socket.gaierror):
        return f"dns: {detail}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {detail}"
    if isinstance(error, TimeoutError) or error.errno in _TIMEOUT:
        return f"timeout: {detail}"
    if error.errno in _RESET or isinstance(error, ConnectionResetError):
        return f"reset: {detail}"
    return f"refused: {detail}"


def why(said: str, *, broken: str | None) -> str:
    """What mitmproxy's words for an error with a server mean.

    `broken` is the code of the error that ended the connection; None where it ended by FIN, or
    has not ended.
    """
    if said.partition(":")[0] in CODES:
        return said
    if said.startswith("stream reset"):  # HTTP/2; mitmproxy always says "by client"
        return f"{STREAM_RESET} {said.partition('(')[2].rstrip(')')}"
    if broken is not None:
        return f"{broken}: {said}"
    if "closed connection" in said or "unexpected server response" in said:
        return f"eof: {said}"
    return f"protocol: {said}"
