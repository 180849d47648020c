"""Secrets in the formats of many issuers, generated from a seed: the repository contains none.

Each shape is a name and a function from a random generator to a secret. Prefixes are split in two
if a scanner would mistake the line of a test for a real key.
"""

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from random import Random
from urllib.parse import quote

LOWER, DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
ALNUM = LOWER + LOWER.upper() + DIGITS
HEX = DIGITS + "abcdef"
WORD = ALNUM + "_-"

type Shape = Callable[[Random], str]


def _of(beginning: str, letters: str, size: int, end: str = "") -> Shape:
    def make(chance: Random) -> str:
        said = "".join(chance.choices(letters, k=size - 2))
        return beginning.replace("~", "") + said + ("A7" if "A" in letters else "a7") + end

    return make


def _joined(*parts: Shape | str) -> Shape:
    return lambda chance: "".join(p if isinstance(p, str) else p(chance) for p in parts)


def _json_web_token(chance: Random) -> str:
    head, claims = (
        urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": str(chance.randrange(10**9))})
    )
    return f"{head}.{claims}." + "".join(chance.choices(WORD, k=43))


TOKENS: Mapping[str, Shape] = {
    "anthropic": _of("sk-~ant-api03-", WORD, 95),
    "openai": _of("sk-~", ALNUM, 48),
    "openai project": _of("sk-~proj-", WORD, 120),
    "openrouter": _of("sk-~or-v1-", HEX, 64),
    "deepseek": _of("sk-~", HEX, 32),
    "google": _of("AI~za", WORD, 35),
    "google oauth": _of("ya~29.a0", WORD, 160),
    "google client": _of("GOC~SPX-", WORD, 28),
    "google refresh": _of("1/~/0g", WORD, 60),
    "hugging face": _of("h~f_", ALNUM, 34),
    "hugging face organisation": _of("api_~org_", ALNUM, 34),
    "groq": _of("gs~k_", ALNUM, 52),
    "replicate": _of("r8~_", ALNUM, 37),
    "xai": _of("xa~i-", ALNUM, 80),
    "perplexity": _of("pp~lx-", ALNUM, 48),
    "nvidia": _of("nv~api-", WORD, 64),
    "together": _of("tgp~_v1_", WORD, 43),
    "cerebras": _of("cs~k-", ALNUM, 48),
    "tavily": _of("tv~ly-", ALNUM, 32),
    "langsmith": _of("lsv2~_pt_", HEX, 32, "_0a1b2c3d4e"),
    "pinecone": _of("pc~sk_", WORD, 70),
    "e2b": _of("e2~b_", HEX, 40),
    "jina": _of("ji~na_", ALNUM, 60),
    "github": _of("gh~p_", ALNUM, 36),
    "github oauth": _of("gh~o_", ALNUM, 36),
    "github server": _of("gh~s_", ALNUM, 36),
    "github user": _of("gh~u_", ALNUM, 36),
    "github refresh": _of("gh~r_", ALNUM, 76),
    "github fine": _of("github~_pat_", ALNUM + "_", 82),
    "gitlab": _of("gl~pat-", WORD, 20),
    "gitlab deploy": _of("gl~dt-", WORD, 20),
    "gitlab runner": _of("gl~rt-", WORD, 20),
    "gitlab trigger": _of("glp~tt-", HEX, 40),
    "gitlab job": _of("glc~bt-", WORD, 25),
    "bitbucket": _of("AT~BB", ALNUM, 32),
    "atlassian": _of("ATATT3~xFfGF0", WORD, 170, "=0A1B2C3D"),
    "npm": _of("np~m_", ALNUM, 36),
    "pypi": _of("py~pi-AgEIcHlwaS5vcmc", WORD, 140),
    "rubygems": _of("ruby~gems_", HEX, 48),
    "clojars": _of("CLO~JARS_", HEX, 60),
    "nuget": _of("oy~2", LOWER + DIGITS, 41, "z9"),
    "docker": _of("dckr~_pat_", ALNUM, 27),
    "aws id": _of("AK~IA", LOWER.upper() + "234567", 16),
    "aws session id": _of("AS~IA", LOWER.upper() + "234567", 16),
    "azure storage": _joined("Account", "Key=", _of("", ALNUM + "+/", 86, "==")),
    "azure bus": _joined("SharedAccess", "Key=", _of("", ALNUM + "+/", 43, "=")),
    "digitalocean": _of("dop~_v1_", HEX, 64),
    "databricks": _of("da~pi", HEX, 32),
    "alibaba": _of("LT~AI", ALNUM, 20),
    "tencent": _of("AK~ID", ALNUM, 32),
    "vault": _of("hv~s.", WORD, 90),
    "pulumi": _of("pu~l-", HEX, 40),
    "supabase": _of("sb~p_", HEX, 40),
    "supabase secret": _of("sb_~secret_", WORD, 31),
    "planetscale": _of("pscale~_tkn_", WORD, 43),
    "dynatrace": _of("dt0~c01.", ALNUM, 24, "." + "B7" * 32),
    "doppler": _of("dp.~pt.", ALNUM, 43),
    "prefect": _of("pn~u_", ALNUM, 36),
    "age": _of("AGE-SECRET~-KEY-1", LOWER.upper() + DIGITS, 58),
    "tailscale": _of("tskey~-auth-", ALNUM, 40),
    "one password": _of("ops~_eyJ", ALNUM, 250),
    "fly": _of("fm~2_", ALNUM + "+/", 120, "=="),
    "stripe": _of("sk~_live_", ALNUM, 24),
    "stripe new": _of("sk~_live_51", ALNUM, 97),
    "stripe test": _of("sk~_test_", ALNUM, 24),
    "stripe restricted": _of("rk~_live_", ALNUM, 24),
    "stripe webhook": _of("wh~sec_", ALNUM, 32),
    "eleven labs": _of("s~k_", HEX, 48),
    "square": _of("sq0~csp-", WORD, 43),
    "square token": _of("sq0~atp-", WORD, 22),
    "shopify": _of("shp~at_", HEX, 32),
    "shopify private": _of("shp~pa_", HEX, 32),
    "shippo": _of("shippo~_live_", HEX, 40),
    "sendgrid": _joined(_of("SG~.", WORD, 22), ".", _of("", WORD, 43)),
    "brevo": _joined(_of("xkeys~ib-", HEX, 64), "-", _of("", ALNUM, 16)),
    "twilio": _of("S~K", HEX, 32),
    "mailgun": _of("key~-", HEX, 32),
    "mailchimp": _of("", HEX, 32, "-us12"),
    "telegram": _joined("7123456789:", _of("A~A", WORD, 33)),
    "discord": _joined("M", _of("", WORD, 23), ".", _of("", ALNUM, 6), ".", _of("", ALNUM, 38)),
    "slack": _of("xo~xb-123456789012-123456789012-", ALNUM, 24),
    "slack user": _of("xo~xp-123456789012-123456789012-", HEX, 32),
    "slack app": _of("xa~pp-1-A0123456789-123456789012-", HEX, 64),
    "postman": _joined(_of("PM~AK-", HEX, 24), "-", _of("", HEX, 34)),
    "contentful": _of("CF~PAT-", WORD, 43),
    "new relic": _of("NR~AK-", LOWER.upper() + DIGITS, 27),
    "figma": _of("fi~gd_", WORD, 40),
    "notion": _of("nt~n_", ALNUM, 46),
    "notion old": _of("sec~ret_", ALNUM, 43),
    "linear": _of("lin~_api_", ALNUM, 40),
    "grafana": _of("gl~sa_", ALNUM, 32, "_0a1b2c3d"),
    "posthog": _of("ph~x_", ALNUM, 43),
    "sentry": _of("sntry~s_", ALNUM, 120),
    "easypost": _of("EZ~AK", ALNUM, 54),
    "hubspot": _of("pat-~na1-", HEX, 36),
    "terraform": _joined(_of("", ALNUM, 14), ".atlas", "v1.", _of("", ALNUM, 60)),
    "json web token": _json_web_token,
}
"""Secrets that are recognisable by their format, by issuer."""


def password(chance: Random) -> str:
    """Return letters, digits and a dash, as in passwords that people choose."""
    letters = "".join(chance.choices(LOWER, k=6))
    return f"{letters.capitalize()}-{chance.randrange(10**4, 10**6)}"


def key(chance: Random) -> str:
    """Return a key of no known issuer."""
    return "".join(chance.choices(LOWER + DIGITS, k=26)) + "x9q2k7"


PLACES: Mapping[str, tuple[str, Shape]] = {
    "json password": ('{"user":"joe","password":"%s"}', password),
    "json spaced": ('{"password" : "%s", "user": "joe"}', password),
    "json passwd": ('{"db_passwd":"%s"}', password),
    "json pwd": ('{"pwd":"%s"}', password),
    "json secret": ('{"secret":"%s"}', password),
    "json client secret": ('{"client_secret":"%s"}', key),
    "json clientSecret": ('{"clientSecret":"%s"}', key),
    "json api key": ('{"api_key":"%s"}', key),
    "json apiKey": ('{"apiKey":"%s"}', key),
    "json api-key": ('{"x-api-key":"%s"}', key),
    "json token": ('{"token":"%s"}', key),
    "json access token": ('{"access_token":"%s","token_type":"bearer"}', key),
    "json accessToken": ('{"accessToken":"%s"}', key),
    "json refresh token": ('{"refresh_token":"%s"}', key),
    "json session token": ('{"SessionToken":"%s"}', key),
    "json id token": ('{"id_token":"%s"}', key),
    "json bot token": ('{"bot_token":"%s"}', key),
    "json account key": ('{"account_key":"%s"}', key),
    "json access key": ('{"SecretAccessKey":"%s"}', key),
    "json encryption key": ('{"encryption_key":"%s"}', key),
    "json webhook secret": ('{"webhook_secret":"%s"}', key),
    "json in json": (r'{"arguments":"{\"password\":\"%s\"}"}', password),
    "json in json twice": (r'{"a":"{\"b\":\"{\\\"password\\\":\\\"%s\\\"}\"}"}', password),
    "json with signs": ('{"password":"%s"}', lambda chance: "p@ss!w0rd$" + password(chance)),
    "python": ("connect(password='%s')", password),
    "python spaced": ('PASSWORD = "%s"', password),
    "javascript": ("const opts = { password: '%s' }", password),
    "yaml": ("user: joe\npassword: %s\n", lambda chance: "k3y" + key(chance)),
    "yaml quoted": ('password: "%s"\n', password),
    "yaml api key": ("api_key: %s\n", key),
    "toml": ('api_key = "%s"\n', key),
    "ini": ("[db]\nsecret_key=%s\n", key),
    "env": ("DB_PASSWORD=%s\n", password),
    "env export": ("export API_TOKEN=%s\n", key),
    "env escaped": (r'{"text":"A=1\nDB_PASSWORD=%s\nB=2"}', password),
    "env quoted": ('MYSQL_PWD="%s"\n', password),
    "option": ("tool --api-key %s --verbose", key),
    "option equals": ("tool --api-key=%s --verbose", key),
    "option password": ("tool --password=%s -v", password),
    "option password apart": ("tool --db-password %s -v", password),
    "option list": ('["tool","--password","%s"]', password),
    "postgres": ('{"url":"postgres://app:%s@db:5432/shop"}', password),
    "mysql": ("mysql+pymysql://sa:%s@10.0.0.4/x", password),
    "mongo": ("mongodb+srv://u:%s@c0.example.net/?w=1", password),
    "redis": ("redis://:%s@cache:6379/0", password),
    "amqp": ("amqps://u:%s@mq/vhost", password),
    "git": ("[remote]\n\turl = https://x-token:%s@git.example/r.git\n", key),
    "git alone": ("url = https://%s@git.example/r.git", key),
    "dsn": ("Server=db;Database=x;User Id=sa;Password=%s;", lambda c: "k3y" + key(c)),
    "address in an address": ("/login?next=https%%3A%%2F%%2Fu%%3A%s%%40h", password),
    "bearer": ("curl -H 'Authorization: Bearer %s'", key),
    "aws": ("aws_secret_access_key = %s\n", lambda c: "wJ4" + key(c) + "/a+8Zq"),
    "kube": ("  user:\n    token: %s\n", key),
    "pem": ("-----BEGIN RSA PRIVATE " + "KEY-----\n%s\n-----END RSA PRIVATE " + "KEY-----", key),
    "pgp": ("-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\n%s\n-----END PGP", key),
}
"""Secrets that only their context reveals: a text with a placeholder, and the secret."""

ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda text: json.dumps(text)[1:-1],
    "json in json": lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
    "percent": lambda text: quote(text, safe=""),
    "percent slashes": lambda text: quote(text, safe=" \"'{}:,=\n"),
}


def basic(user: str, secret: str) -> str:
    """Return the header value of basic authentication."""
    return "Basic " + b64encode(f"{user}:{secret}".encode()).decode()
