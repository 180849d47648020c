"""Secrets of the environment, of the user's own files and of the command are in nothing written."""

from pathlib import Path
from random import Random

import pytest

from replay.player import TapePlayer
from stumble.user_data.known_secrets import find_known_secrets
from tests.support.leak_search import leaks
from tests.support.secret_shapes import TOKENS, basic, key, password
from traces.conversation.tracker import ConversationTap
from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.redaction.detection.credential_names import find_environment_secrets
from traces.redaction.redactor import Redactor
from traces.tape.reader import read_tape
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

CHANCE = Random(1)
SECRET, KEY, TOKEN = password(CHANCE), key(CHANCE), TOKENS["gitlab"](CHANCE)


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("SHOP_API_KEY", KEY, KEY),
        ("DB_PASS", SECRET, SECRET),
        ("SMTP_AUTH", SECRET, SECRET),
        ("GITHUB_PAT", KEY, KEY),
        ("DATABASE_URL", f"postgres://app:{SECRET}@db/shop", SECRET),
        ("CI_REMOTE", f"https://oauth2:{TOKEN}@git.example/r.git", TOKEN),
        ("ANYTHING", TOKEN, TOKEN),
        ("JSON_SETTINGS", f'{{"password":"{SECRET}"}}', SECRET),
    ],
)
def test_a_variable_that_holds_a_secret_is_known(name: str, value: str, known: str) -> None:
    assert known in find_environment_secrets({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/usr/bin:/bin"),
        ("PWD", "/srv/project-2"),
        ("SSH_AUTH_SOCK", "/tmp/agent.4711"),
        ("LS_COLORS", "rs=0:di=01;34:ln=01;36"),
        ("MAX_TOKENS", "409600000"),
        ("HOSTNAME", "build-7f9c4d5b8-x2x9z"),
        ("XDG_SESSION_TYPE", "wayland-1"),
    ],
)
def test_any_other_variable_is_left_alone(name: str, value: str) -> None:
    assert find_environment_secrets({name: value}) == ()


FILES = {
    ".env": "PORT=8080\nSHOP_PASSWORD='{}'\n",
    ".netrc": "machine h.example login joe password {}\n",
    ".pgpass": "db:5432:shop:app:{}\n",
    ".npmrc": "//registry.example/:_authToken={}\n",
    ".pypirc": "[pypi]\nusername = __token__\npassword = {}\n",
    ".git-credentials": "https://joe:{}@git.example\n",
    ".aws/credentials": "[default]\naws_secret_access_key = {}\n",
    ".docker/config.json": '{{"auths": {{"r.example": {{"auth": "{}"}}}}}}',
    ".kube/config": "users:\n- name: a\n  user:\n    token: {}\n",
    ".config/gh/hosts.yml": "github.com:\n    oauth_token: {}\n",
    ".codex/auth.json": '{{"tokens": {{"access_token": "{}"}}}}',
    ".cache/huggingface/token": "{}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_credentials_is_known(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FILES[name].format(KEY))
    assert find_known_secrets({"HOME": str(tmp_path)}) == (KEY,)


@pytest.mark.parametrize(
    "command",
    [
        ("agent", "--api-key", SECRET),
        ("agent", "--api-key=" + SECRET),
        ("agent", "--password=" + SECRET, "run"),
        ("agent", "--db-password", SECRET, "run"),
        ("agent", "-u", "joe:" + SECRET),
        ("env", "SHOP_TOKEN=" + SECRET, "agent"),
        ("agent", "-H", "X-Api-Key: " + SECRET),
        ("agent", "-H", "Authorization: Bearer " + SECRET),
        ("sh", "-c", f"agent --password {SECRET} run"),
        ("sh", "-c", f"PGPASSWORD={SECRET} psql"),
        ("agent", f"postgres://u:{SECRET}@h/d"),
    ],
)
def test_what_a_command_is_given_is_not_on_the_tape(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "a.tape"
    run = Trajectory(id="r", recorded_at=0.0, command=command)
    with TapeWriter(path, run):
        pass
    assert leaks(SECRET, path) == 0
    kept = read_tape(path).trajectory.command
    assert [len(word) for word in kept] == [len(word) for word in command]
    assert kept[0] == command[0]


def test_what_a_command_was_given_is_known_from_then_on(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    run = Trajectory(id="r", recorded_at=0.0, command=("agent", "--pat", SECRET))
    request = Request(
        method="POST",
        url="http://h/",
        headers=(("authorization", basic("joe", SECRET)),),
        body=f"it is {SECRET}".encode(),
    )
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=SECRET.encode()),), ended=0.0)
    with TapeWriter(path, run) as tape:
        tape.write_exchange(Exchange(seq=0, request=request, response=answer))
    assert leaks(SECRET, path) == 0


def test_what_became_known_after_the_recording_is_not_on_the_tape_of_its_replay(
    tmp_path: Path,
) -> None:
    old, new = tmp_path / "old.tape", tmp_path / "new.tape"
    request = Request(
        method="POST", url=f"http://h/{SECRET}", headers=(("x-a", SECRET),), body=SECRET.encode()
    )
    answer = Response(
        status=200,
        headers=(("x-b", SECRET), ("x-c", "plain")),
        chunks=(Chunk(at=0.0, data=SECRET.encode()),),
        ended=0.0,
    )
    with TapeWriter(old, Trajectory(id="old", recorded_at=0.0)) as tape:
        tape.write_exchange(Exchange(seq=0, request=request, response=answer))
        tape.write_ending(RunEnding(ended="final"))
    assert leaks(SECRET, old) > 0
    seal_tape(old)
    watch, run = ConversationTap(), Trajectory(id="new", recorded_at=0.0)
    with TapeWriter(new, run, secrets=[SECRET]) as tape:
        player = TapePlayer(read_tape(old), watch, redact=tape.redactor.redact_request)
        taps = TapChain([watch, player, tape])
        played = taps.request(Exchange(seq=0, request=request))
        assert played.response is not None
        assert (played.response.headers, played.response.body) == (answer.headers, answer.body)
        taps.whole(played)
    assert leaks(SECRET, new) == 0
    assert [x.redacted for x in read_tape(new).exchanges] == [True]


def test_plain_words_of_a_command_stay() -> None:
    command = (
        "agent",
        "--token-limit",
        "4096",
        "--password",
        "prompt",
        "--key",
        "$KEY",
        "-u",
        "1:2",
    )
    assert Redactor().redact_command(command) == command


@pytest.mark.parametrize("name", ["X-Custom-Auth-Thing", "X-Shop-Secret-Value", "X-Shop-Jwt"])
def test_a_header_that_may_hold_credentials_is_judged_by_its_value(name: str) -> None:
    ((_, said),) = Redactor().redact_headers(((name, KEY),))
    assert KEY not in said
    assert Redactor().redact_headers(((name, "user"),)) == ((name, "user"),)


def test_a_placeholder_takes_no_number_from_the_secrets_after_it() -> None:
    redactor = Redactor([KEY])
    redactor.redact_request(Request(method="GET", url=f"https://u:{SECRET}@h/"))
    redactor.redact_request(Request(method="GET", url="https://u:RDk1xxxxxxxZ@h/"))
    redactor.redact_bytes(b'{"password": "RDk1xxxxxxxZ"}')
    assert redactor.redact_bytes(KEY.encode()).startswith(b"REDACTEDk2x")
