"""Map connection errors to `Exchange.error` texts: `code: detail`."""

import errno
import socket
import ssl

_RESET_ERRNOS = frozenset({errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE})
_TIMEOUT_ERRNOS = frozenset({errno.ETIMEDOUT, errno.EAGAIN})
STREAM_RESET = "reset: the server reset the stream"
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "PACKET_LENGTH_TOO_LONG",
    "HTTP_REQUEST",
    "RECORD_LAYER_FAILURE",
)
_NAME_MISMATCHES = {62: "hostname mismatch", 64: "IP address mismatch"}
"""By the codes X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""
CLEAN_END_CODES = ("eof", "protocol", "cancelled")
ERROR_CODES = ("refused", "reset", "timeout", "dns", "tls", *CLEAN_END_CODES)


def is_reset_error(error: str) -> bool:
    """Return whether the agent sees this error as a connection reset, not just as an end."""
    return error.partition(":")[0] not in CLEAN_END_CODES


def to_connection_error(error: OSError) -> str:
    """Describe a connection error as `code: detail`.

    An unreachable host or network counts as refused.
    """
    detail = " ".join((error.strerror or str(error)).split())
    if isinstance(error, socket.gaierror):
        return f"dns: {detail}"
    if isinstance(error, ssl.SSLError):
        return f"tls: {detail}"
    if isinstance(error, TimeoutError) or error.errno in _TIMEOUT_ERRNOS:
        return f"timeout: {detail}"
    if error.errno in _RESET_ERRNOS or isinstance(error, ConnectionResetError):
        return f"reset: {detail}"
    return f"refused: {detail}"


def describe_tls_error(error: ssl.SSLError) -> str:
    """Describe a failed TLS handshake with a server, or a broken record, as `tls: detail`."""
    if isinstance(error, ssl.SSLCertVerificationError):
        detail = _NAME_MISMATCHES.get(error.verify_code, error.verify_message)
        return f"tls: Certificate verify failed: {detail}"
    if error.reason in _NOT_TLS:
        return "tls: The remote server does not speak TLS."
    return f"tls: {(error.reason or str(error)).replace('_', ' ').lower()}"


def classify_mitm_error(text: str, *, broken: str | None) -> str:
    """Map mitmproxy's message for a server error to `code: detail`.

    `broken` is the code of the error that ended the connection; None if it ended by FIN or is open.
    """
    if text.partition(":")[0] in ERROR_CODES:
        return text
    if text.startswith("stream reset"):  # HTTP/2; mitmproxy always writes "by client"
        return f"{STREAM_RESET} {text.partition('(')[2].rstrip(')')}"
    if broken is not None:
        return f"{broken}: {text}"
    if "closed connection" in text or "unexpected server response" in text:
        return f"eof: {text}"
    return f"protocol: {text}"
