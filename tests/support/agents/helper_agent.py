"""An agent with helpers beside it, of whose ends it hears with the next result of its own tools.

`helper_agent.py URL SECONDS...` has a helper for each number of seconds, for which its model works.
The agent asks the model in each turn, works for a while, and sends what it has: its result, and the
words of each helper as soon as these are there.
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

    def help_beside(seconds: str) -> None:
        heard.append(ask([_user(f"helper {seconds}")]))

    helpers = [threading.Thread(target=help_beside, args=[each]) for each in sys.argv[2:]]
    for helper in helpers:
        helper.start()
    messages = [_user("main")]
    for turn in range(TURNS):
        messages.append({"role": "assistant", "content": ask(messages)})
        time.sleep(WORK_SECONDS)
        words = f"result {turn}"
        while heard:
            told = heard.pop(0)
            words += f", and a helper says {told}"
            sys.stdout.write(f"heard {told} in turn {turn}\n")
        messages.append(_user(words))
    for helper in helpers:
        helper.join()


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


main()
