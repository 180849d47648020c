"""An agent without a model: it calls a tool of the stdio server whose command is its argument."""

import json
import subprocess
import sys


def main(tool: str, text: str, *command: str) -> None:
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin
    assert server.stdout
    params = {"name": tool, "arguments": {"text": text}}
    for id, method, said in ((1, "initialize", {}), (2, "tools/call", params)):
        line = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": said})
        server.stdin.write(line.encode() + b"\n")
        server.stdin.flush()
        while (answer := json.loads(server.stdout.readline())).get("id") != id:
            continue
    server.stdin.close()
    sys.stdout.write(json.dumps(answer.get("result", answer.get("error"))) + "\n")
    sys.exit(server.wait())


if __name__ == "__main__":
    main(*sys.argv[1:])
