"""E: explicit errors. The tool reports a failure, or its response contains one under status 200."""

from faults.operators.explicit import (
    auth,
    error_in_ok,
    http_status,
    protocol_error,
    session_lost,
    tool_error,
)

__all__ = ["auth", "error_in_ok", "http_status", "protocol_error", "session_lost", "tool_error"]
