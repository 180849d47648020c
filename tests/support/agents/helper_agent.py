"""An agent with a helper beside it, of whose end it hears with the next result of its own tools.

It asks the model in each turn, works for a while, and sends what it has: its result, and the words
of the helper as soon as these are there.
"""

import json
import sys
import threading
import time
import urllib.request

TURNS, WORK_SECONDS = 4, 0.5


def ask(messages: list[dict[str, str]]) -> str:
    """Return the model's words."""
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(sys.argv[1], body, headers)
    with urllib.request.urlopen(request) as answer:
        return str(json.loads(answer.read())["choices"][0]["message"]["content"])


def main() -> None:
    """Work through the turns, and print when the helper was heard of."""
    heard = list[str]()
    helper = threading.Thread(target=lambda: heard.append(ask([_user("helper")])))
    helper.start()
    messages = [_user("main")]
    for turn in range(TURNS):
        messages.append({"role": "assistant", "content": ask(messages)})
        time.sleep(WORK_SECONDS)
        words = f"result {turn}"
        if heard:
            words += f", and the helper says {heard.pop()}"
            sys.stdout.write(f"heard in turn {turn}\n")
        messages.append(_user(words))
    helper.join()


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


main()
