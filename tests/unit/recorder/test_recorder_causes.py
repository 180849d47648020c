"""Errors of connections in the words of a tape."""

import errno
import socket

import pytest

from recorder.proxy.errors import ERROR_CODES, classify_mitm_error, to_connection_error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "refused"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "refused"),
        (ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"), "reset"),
        (ConnectionResetError("Connection lost"), "reset"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "reset"),
        (TimeoutError(errno.ETIMEDOUT, "Connection timed out"), "timeout"),
        (TimeoutError(), "timeout"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "dns"),
        (OSError("several\nlines"), "refused"),
    ],
)
def test_an_error_of_the_system_has_a_code(error: OSError, code: str) -> None:
    said = to_connection_error(error)
    assert said.partition(":")[0] == code
    assert "\n" not in said


@pytest.mark.parametrize(
    ("said", "broken", "code"),
    [
        ("refused: Connection refused", None, "refused"),
        ("server closed connection", None, "eof"),
        ("server closed connection", "reset", "reset"),
        ("HTTP/1 protocol error: illegal chunk header", None, "protocol"),
        ("stream reset by client (REFUSED_STREAM)", None, "reset"),
        ("stream reset by client (CANCEL)", "eof", "reset"),
        ("peer closed connection", "timeout", "timeout"),
        ("unexpected server response: b'HTT'", None, "eof"),
    ],
)
def test_mitmproxys_words_have_one_too(said: str, broken: str | None, code: str) -> None:
    assert classify_mitm_error(said, broken=broken).partition(":")[0] == code
    assert code in ERROR_CODES
