"""A small MCP server over stdio for tests of a proxy in front of one; no SDK, so it starts quickly.

It answers in the order of the requests. Tools: `echo` returns its text, `notify` sends a
notification first, `ask` sends the client a request and returns the answer, `die` exits with the
code, `kill` ends by the signal, `children` starts a process that would stay, `noise` writes a line
that is not JSON first, `progress` reports progress, `refuse` is answered by a JSON-RPC error,
`hang` is never answered.
"""

import json
import os
import subprocess
import sys
import time

OLD = "2025-11-25"


def main() -> None:
    for line in sys.stdin.buffer:
        document = json.loads(line)
        if "id" not in document:
            continue
        result: dict[str, object] = {}
        match document.get("method"):
            case "initialize":
                result = {"protocolVersion": OLD, "capabilities": {"tools": {}}, "serverInfo": ME}
            case "tools/list":
                result = {"tools": [{"name": name, "inputSchema": ANY} for name in TOOLS]}
            case "tools/call" if document["params"]["name"] == "hang":
                continue
            case "tools/call" if document["params"]["name"] == "refuse":
                error = {"code": -32602, "message": "I would rather not"}
                say({"jsonrpc": "2.0", "id": document["id"], "error": error})
                continue
            case "tools/call":
                result = text(call(**document["params"]))
        say({"jsonrpc": "2.0", "id": document["id"], "result": result})


def call(name: str, arguments: dict[str, object], **more: object) -> str:
    match name:
        case "progress":
            meta = more["_meta"]
            assert isinstance(meta, dict)
            for step in range(int(str(arguments["steps"]))):
                told = {"progressToken": meta["progressToken"], "progress": step}
                time.sleep(
                    0.05
                )  # a client may miss a message that arrives immediately or with the answer
                say({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
            time.sleep(0.05)
        case "notify":
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": arguments})
        case "ask":
            say({"jsonrpc": "2.0", "id": "ours-1", "method": "roots/list"})
            return sys.stdin.readline().strip()
        case "die":
            sys.exit(int(str(arguments["code"])))
        case "kill":
            os.kill(os.getpid(), int(str(arguments["signal"])))
        case "children":
            return str(subprocess.Popen(["sleep", "600"], start_new_session=True).pid)
        case "noise":
            sys.stdout.write("no JSON at all\n")
        case "environment":
            return json.dumps(dict(os.environ))
    return str(arguments.get("text", ""))


def text(said: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": said}], "isError": False}


def say(message: dict[str, object]) -> None:
    sys.stdout.buffer.write(json.dumps(message).encode() + b"\n")
    sys.stdout.buffer.flush()


PLAIN = ("echo", "notify", "ask", "noise", "environment", "progress", "refuse", "hang")
TOOLS = (*PLAIN, "die", "kill", "children")
ANY = {"type": "object"}
ME = {"name": "small", "version": "1"}

if __name__ == "__main__":
    main()
