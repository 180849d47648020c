"""The process in which cassetter records from a local server and then replays to itself.

    python tests/bench/cassetting.py PAIRS CASSETTE

PAIRS is a JSON list of requests and answers. When all are recorded and the server has stopped it
prints `ready`, and then for each line on stdin, the number of a pair, the seconds that the answer
took, and whether it has all bytes of the recorded one. Runs in the environment that
`tests/agents/cassetter.txt` locks, so it imports nothing of stumble.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import cassetter
import urllib3

HEADERS = {"accept": "*/*", "content-type": "application/json"}
MATCH_ON = ["method", "uri", "body"]


class Answers(BaseHTTPRequestHandler):
    """Answers each known body with its recorded answer."""

    protocol_version = "HTTP/1.1"
    answers: dict[bytes, bytes]

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["content-length"]))
        answer = self.answers[asked]
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def main(pairs: list[list[str]], cassette: str) -> None:
    said = [(asked.encode(), answer.encode()) for asked, answer in pairs]
    Answers.answers = dict(said)
    http = urllib3.PoolManager()
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/v1/orders"
        with cassetter.use_cassette(cassette, record_mode="all", match_on=MATCH_ON):
            for asked, _ in said:
                http.request("POST", url, body=asked, headers=HEADERS)
        server.shutdown()
    http.clear()
    with cassetter.use_cassette(cassette, record_mode="none", match_on=MATCH_ON):
        print("ready", flush=True)
        for line in sys.stdin:
            asked, answer = said[int(line)]
            began = time.perf_counter()
            got = http.request("POST", url, body=asked, headers=HEADERS).data
            print(time.perf_counter() - began, got == answer, flush=True)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2])
