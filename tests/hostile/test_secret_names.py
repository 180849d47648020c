"""Secrets by their names, wherever a name may stand: containers, options, parameters, languages."""

import json
from collections.abc import Mapping

import pytest

from traces.model import Request
from traces.redaction.detection.credential_names import find_environment_secrets
from traces.redaction.detection.secret_names import rate_name
from traces.redaction.redactor import Redactor

VALUE, OTHER = "q7Rt5zX9wB3mK1v", "w4Yb8nC2pD6kL0s"
CONTAINERS: tuple[Mapping[str, object], ...] = (
    {"passwords": [VALUE, OTHER]},
    {"api_keys": [VALUE]},
    {"tokens": {"a": VALUE}},
    {"secrets": {"A": VALUE}},
    {"credentials": {"joe": VALUE}},
    {"kind": "Secret", "stringData": {"x": VALUE}},
    *({name: VALUE} for name in ("Passwort", "contraseña", "senha", "mot_de_passe", "пароль")),
    {"密码": VALUE},
)
TEXTS = (
    f'<wsse:Password Type="T">{VALUE}</wsse:Password>',
    f'<Password x="y">{VALUE}</Password>',
    f"os.environ['DB_PASS']='{VALUE}'",
    f'os.environ["DB_PASSWORD"] = "{VALUE}"',
    f'os.Setenv("DB_PASS", "{VALUE}")',
    f'HTTPBasicAuth("joe", "{VALUE}")',
    f"NetworkCredential('joe','{VALUE}')",
    f"pass: {VALUE}\n",
    f"pass = {VALUE}\n",
    f"pw: {VALUE}\n",
    f"ansible_become_pass: {VALUE}\n",
    f"SECRET_TOKEN={VALUE}",
    f"secret_key_base: {VALUE}",
    f"['Authorization: Bearer {VALUE}']",
)
COMMANDS = (
    ("tool", "--auth", f"joe:{VALUE}"),
    ("tool", f"--auth=joe:{VALUE}"),
    ("tool", "--creds", f"joe:{VALUE}"),
    ("plink", "-pw", VALUE),
    ("tool", "--bearer", VALUE),
    ("mysql", f"-p{VALUE}"),
    ("env", f"DBPW={VALUE}", "tool"),
    ("curl", f"https://h/?otp={VALUE}"),
    ("curl", f"https://h/?pass={VALUE}&b=1"),
    ("python", "-c", f"os.environ['DB_PASS']='{VALUE}'"),
)
PARAMETERS = ("pass", "pw", "otp", "sessionid", "auth", "wstoken", "ticket", "X-Amz-Signature")
HEADERS = ("Token", "Auth", "X-TrackerToken", "X-Killbill-ApiSecret", "X-JFrog-Art-Api")
VARIABLES = ("DBPW", "X_BEARER", "MY_CREDS", "COOKIE", "SESSION")


@pytest.mark.parametrize("container", CONTAINERS, ids=lambda each: next(iter(each)))
@pytest.mark.parametrize("indent", [None, 1])
def test_values_under_a_name_of_secrets_are_written_nowhere(
    container: Mapping[str, object], indent: int | None
) -> None:
    for ascii_only in (True, False):
        text = json.dumps(container, ensure_ascii=ascii_only, indent=indent)
        for body in (text, json.dumps({"arguments": text})):
            redacted = Redactor().redact_bytes(body.encode()).decode()
            assert VALUE not in redacted
            assert OTHER not in redacted
            assert json.loads(redacted).keys() == json.loads(body).keys()


@pytest.mark.parametrize("text", TEXTS)
def test_values_in_code_settings_and_markup_are_written_nowhere(text: str) -> None:
    for body in (text, json.dumps({"content": text}), json.dumps({"a": json.dumps([text])})):
        assert VALUE not in Redactor().redact_bytes(body.encode()).decode()


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_is_written_without_what_it_is_given(command: tuple[str, ...]) -> None:
    redacted = Redactor().redact_command(command)
    assert VALUE not in " ".join(redacted)
    assert Redactor().redact_command(redacted) == redacted


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_parameter_named_like_a_secret_is_written_nowhere(name: str) -> None:
    url = f"https://h/x?a=1&{name}={VALUE}"
    request = Request(method="GET", url=url, headers=(), body=b"")
    assert VALUE not in Redactor().redact_request(request).url


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_named_like_a_secret_is_written_nowhere(name: str) -> None:
    assert VALUE not in str(Redactor().redact_headers(((name, VALUE),)))


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_named_like_a_secret_is_known(name: str) -> None:
    assert find_environment_secrets({name: VALUE}) == (VALUE,)


@pytest.mark.parametrize(
    "name",
    ["page", "X-Partition-Key", "Idempotency-Key", "next_token", "password_policy", "TOKEN_COUNT"],
)
def test_other_names_say_nothing(name: str) -> None:
    assert rate_name(name) is None


@pytest.mark.parametrize("name", ["dbPassword", "DB_PASSWORD", "api-key", "X-Api-Key", "apiKey"])
def test_words_of_a_name_are_split_at_signs_and_capitals(name: str) -> None:
    assert rate_name(name) == "sure"
