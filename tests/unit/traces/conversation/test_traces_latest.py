"""What was asked about last is not looked at again; anything else is."""

from traces.dialects import mcp
from traces.identity_cache import IdentityCache
from traces.model import Request


def test_the_very_same_object_is_looked_at_once() -> None:
    looked = list[bytes]()

    @IdentityCache
    def length(of: bytes) -> int:
        looked.append(of)
        return len(of)

    one, equal, other = b"abc", bytes([97, 98, 99]), b"defg"
    assert [length(each) for each in (one, one, equal, other, other, one)] == [3, 3, 3, 4, 4, 3]
    assert looked == [one, equal, other, one]


def test_messages_that_come_in_turns_are_told_apart() -> None:
    def call(tool: str) -> Request:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b"}}'
        return Request(method="POST", url="http://a/mcp", body=body % tool.encode())

    refund, order = call("refund"), call("order")
    for request, name in ((refund, "refund"), (order, "order"), (refund, "refund")):
        message = mcp.read_client_message(request)
        assert message is not None
        assert message.call is not None
        assert message.call.name == name
