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


def build_shape(beginning: str, letters: str, size: int, end: str = "") -> Shape:
    """Return a shape: a beginning, in which `~` is left out, and `size` of the letters."""

    def make(chance: Random) -> str:
        said = "".join(chance.choices(letters, k=size - 2))
        return beginning.replace("~", "") + said + ("A7" if "A" in letters else "a7") + end

    return make


def join_shapes(*parts: Shape | str) -> Shape:
    """Return the shape of parts in a row."""
    return lambda chance: "".join(p if isinstance(p, str) else p(chance) for p in parts)


def _json_web_token(chance: Random) -> str:
    head, claims = (
        urlsafe_b64encode(json.dumps(part, separators=(",", ":")).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": str(chance.randrange(10**9))})
    )
    return f"{head}.{claims}." + "".join(chance.choices(WORD, k=43))


TOKENS: Mapping[str, Shape] = {
    "anthropic": build_shape("sk-~ant-api03-", WORD, 95),
    "openai": build_shape("sk-~", ALNUM, 48),
    "openai project": build_shape("sk-~proj-", WORD, 120),
    "openrouter": build_shape("sk-~or-v1-", HEX, 64),
    "deepseek": build_shape("sk-~", HEX, 32),
    "google": build_shape("AI~za", WORD, 35),
    "google oauth": build_shape("ya~29.a0", WORD, 160),
    "google client": build_shape("GOC~SPX-", WORD, 28),
    "google refresh": build_shape("1/~/0g", WORD, 60),
    "hugging face": build_shape("h~f_", ALNUM, 34),
    "hugging face organisation": build_shape("api_~org_", ALNUM, 34),
    "groq": build_shape("gs~k_", ALNUM, 52),
    "replicate": build_shape("r8~_", ALNUM, 37),
    "xai": build_shape("xa~i-", ALNUM, 80),
    "perplexity": build_shape("pp~lx-", ALNUM, 48),
    "nvidia": build_shape("nv~api-", WORD, 64),
    "together": build_shape("tgp~_v1_", WORD, 43),
    "cerebras": build_shape("cs~k-", ALNUM, 48),
    "tavily": build_shape("tv~ly-", ALNUM, 32),
    "langsmith": build_shape("lsv2~_pt_", HEX, 32, "_0a1b2c3d4e"),
    "pinecone": build_shape("pc~sk_", WORD, 70),
    "e2b": build_shape("e2~b_", HEX, 40),
    "jina": build_shape("ji~na_", ALNUM, 60),
    "github": build_shape("gh~p_", ALNUM, 36),
    "github oauth": build_shape("gh~o_", ALNUM, 36),
    "github server": build_shape("gh~s_", ALNUM, 36),
    "github user": build_shape("gh~u_", ALNUM, 36),
    "github refresh": build_shape("gh~r_", ALNUM, 76),
    "github fine": build_shape("github~_pat_", ALNUM + "_", 82),
    "gitlab": build_shape("gl~pat-", WORD, 20),
    "gitlab deploy": build_shape("gl~dt-", WORD, 20),
    "gitlab runner": build_shape("gl~rt-", WORD, 20),
    "gitlab trigger": build_shape("glp~tt-", HEX, 40),
    "gitlab job": build_shape("glc~bt-", WORD, 25),
    "bitbucket": build_shape("AT~BB", ALNUM, 32),
    "atlassian": build_shape("ATATT3~xFfGF0", WORD, 170, "=0A1B2C3D"),
    "npm": build_shape("np~m_", ALNUM, 36),
    "pypi": build_shape("py~pi-AgEIcHlwaS5vcmc", WORD, 140),
    "rubygems": build_shape("ruby~gems_", HEX, 48),
    "clojars": build_shape("CLO~JARS_", HEX, 60),
    "nuget": build_shape("oy~2", LOWER + DIGITS, 41, "z9"),
    "docker": build_shape("dckr~_pat_", ALNUM, 27),
    "aws id": build_shape("AK~IA", LOWER.upper() + "234567", 16),
    "aws session id": build_shape("AS~IA", LOWER.upper() + "234567", 16),
    "azure storage": join_shapes("Account", "Key=", build_shape("", ALNUM + "+/", 86, "==")),
    "azure bus": join_shapes("SharedAccess", "Key=", build_shape("", ALNUM + "+/", 43, "=")),
    "digitalocean": build_shape("dop~_v1_", HEX, 64),
    "databricks": build_shape("da~pi", HEX, 32),
    "alibaba": build_shape("LT~AI", ALNUM, 20),
    "tencent": build_shape("AK~ID", ALNUM, 32),
    "vault": build_shape("hv~s.", WORD, 90),
    "pulumi": build_shape("pu~l-", HEX, 40),
    "supabase": build_shape("sb~p_", HEX, 40),
    "supabase secret": build_shape("sb_~secret_", WORD, 31),
    "planetscale": build_shape("pscale~_tkn_", WORD, 43),
    "dynatrace": build_shape("dt0~c01.", ALNUM, 24, "." + "B7" * 32),
    "doppler": build_shape("dp.~pt.", ALNUM, 43),
    "prefect": build_shape("pn~u_", ALNUM, 36),
    "age": build_shape("AGE-SECRET~-KEY-1", LOWER.upper() + DIGITS, 58),
    "tailscale": build_shape("tskey~-auth-", ALNUM, 40),
    "one password": build_shape("ops~_eyJ", ALNUM, 250),
    "fly": build_shape("fm~2_", ALNUM + "+/", 120, "=="),
    "stripe": build_shape("sk~_live_", ALNUM, 24),
    "stripe new": build_shape("sk~_live_51", ALNUM, 97),
    "stripe test": build_shape("sk~_test_", ALNUM, 24),
    "stripe restricted": build_shape("rk~_live_", ALNUM, 24),
    "stripe webhook": build_shape("wh~sec_", ALNUM, 32),
    "eleven labs": build_shape("s~k_", HEX, 48),
    "square": build_shape("sq0~csp-", WORD, 43),
    "square token": build_shape("sq0~atp-", WORD, 22),
    "shopify": build_shape("shp~at_", HEX, 32),
    "shopify private": build_shape("shp~pa_", HEX, 32),
    "shippo": build_shape("shippo~_live_", HEX, 40),
    "sendgrid": join_shapes(build_shape("SG~.", WORD, 22), ".", build_shape("", WORD, 43)),
    "brevo": join_shapes(build_shape("xkeys~ib-", HEX, 64), "-", build_shape("", ALNUM, 16)),
    "twilio": build_shape("S~K", HEX, 32),
    "mailgun": build_shape("key~-", HEX, 32),
    "mailchimp": build_shape("", HEX, 32, "-us12"),
    "telegram": join_shapes("7123456789:", build_shape("A~A", WORD, 33)),
    "discord": join_shapes(
        "M",
        build_shape("", WORD, 23),
        ".",
        build_shape("", ALNUM, 6),
        ".",
        build_shape("", ALNUM, 38),
    ),
    "slack": build_shape("xo~xb-123456789012-123456789012-", ALNUM, 24),
    "slack user": build_shape("xo~xp-123456789012-123456789012-", HEX, 32),
    "slack app": build_shape("xa~pp-1-A0123456789-123456789012-", HEX, 64),
    "postman": join_shapes(build_shape("PM~AK-", HEX, 24), "-", build_shape("", HEX, 34)),
    "contentful": build_shape("CF~PAT-", WORD, 43),
    "new relic": build_shape("NR~AK-", LOWER.upper() + DIGITS, 27),
    "figma": build_shape("fi~gd_", WORD, 40),
    "notion": build_shape("nt~n_", ALNUM, 46),
    "notion old": build_shape("sec~ret_", ALNUM, 43),
    "linear": build_shape("lin~_api_", ALNUM, 40),
    "grafana": build_shape("gl~sa_", ALNUM, 32, "_0a1b2c3d"),
    "posthog": build_shape("ph~x_", ALNUM, 43),
    "sentry": build_shape("sntry~s_", ALNUM, 120),
    "easypost": build_shape("EZ~AK", ALNUM, 54),
    "hubspot": build_shape("pat-~na1-", HEX, 36),
    "terraform": join_shapes(
        build_shape("", ALNUM, 14), ".atlas", "v1.", build_shape("", ALNUM, 60)
    ),
    "json web token": _json_web_token,
}
"""Secrets that are recognisable by their format, by issuer."""


def password(chance: Random) -> str:
    """Return letters, digits and a dash, as in passwords that people choose."""
    letters = "".join(chance.choices(LOWER, k=6))
    return f"{letters.capitalize()}-{chance.randrange(10**4, 10**6)}"


def phrase(chance: Random) -> str:
    """Return a word, a number, a sign and a word, as in passwords that people choose."""
    words = ("".join(chance.choices(LOWER, k=5)) for _ in range(2))
    return f"{next(words).capitalize()}{chance.randrange(10, 999)}!{next(words)}"


def generated(chance: Random) -> str:
    """Return letters of both cases and a digit, as a password manager makes them."""
    letters = chance.choices(LOWER + LOWER.upper(), k=4) + chance.choices(ALNUM, k=7)
    return "".join(letters) + chance.choice(LOWER) + chance.choice(DIGITS) + "Kq"


def settings_key(chance: Random) -> str:
    """Return a key as Django makes it."""
    signs = "!@#$^&*(-_=+)"
    return "".join(chance.choices(LOWER + DIGITS + signs, k=44)) + "x9q2k7"


def word_sentence(chance: Random) -> str:
    """Return the twelve words behind a wallet."""
    return " ".join("".join(chance.choices(LOWER, k=6)) for _ in range(12))


def login(chance: Random) -> str:
    """Return a user's name and password as in RFC 7617."""
    return b64encode(f"joe:{key(chance)}".encode()).decode()


def key(chance: Random) -> str:
    """Return a key of no known issuer."""
    return "".join(chance.choices(LOWER + DIGITS, k=26)) + "x9q2k7"


ASSIGNED: Mapping[str, tuple[str, Shape]] = {
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
    "basic": ("curl -H 'Authorization: Basic %s'", login),
    "basic in json": ('{"headers":[["authorization","Basic %s"]]}', login),
    "xml password": ("<server><user>joe</user><password>%s</password></server>", password),
    "xml with signs": ("<password>%s</password>", lambda chance: "p$ss^w0rd" + password(chance)),
    "xml key": ("<apiKey>%s</apiKey>", key),
    "bearer": ("curl -H 'Authorization: Bearer %s'", key),
    "aws": ("aws_secret_access_key = %s\n", lambda c: "wJ4" + key(c) + "/a+8Zq"),
    "kube": ("  user:\n    token: %s\n", key),
    "pem": ("-----BEGIN RSA PRIVATE " + "KEY-----\n%s\n-----END RSA PRIVATE " + "KEY-----", key),
    "pgp": ("-----BEGIN PGP PRIVATE " + "KEY BLOCK-----\n%s\n-----END PGP", key),
}
"""Secrets that only their context reveals: a text with a placeholder, and the secret."""


def encoded_key(chance: Random) -> str:
    """Return a private key block in base64."""
    block = "-----BEGIN RSA PRIVATE " + "KEY-----\n" + "".join(chance.choices(ALNUM, k=300))
    return b64encode(block.encode()).decode()


def signature(chance: Random) -> str:
    """Return a signature in hexadecimal digits."""
    return "".join(chance.choices(HEX, k=60)) + "a7b8"


def crypt_hash(chance: Random) -> str:
    """Return the last part of a hash of crypt(5)."""
    return "".join(chance.choices(ALNUM + "./", k=40)) + "A7z"


PLACES: Mapping[str, tuple[str, Shape]] = {
    **ASSIGNED,
    "name and value": ('{"name":"DB_PASSWORD","value":"%s"}', password),
    "name, type and value": ('{"name": "DB_PASSWORD", "type": "x", "value": "%s"}', password),
    "key and value": ('{"Key": "password", "Value": "%s"}', password),
    "variable and value": ('{"name": "FAL_KEY", "value": "%s"}', key),
    "name and value in json": (r'{"a":"{\"name\": \"DB_PASSWORD\", \"value\": \"%s\"}"}', password),
    "name and value in yaml": ("env:\n- name: DB_PASSWORD\n  value: %s\n", password),
    "name and value in yaml quoted": ('- name: API_KEY\n  value: "%s"\n', key),
    "xml attributes": ('<add key="ApiKey" value="%s"/>', key),
    "xml property": ('<property name="password" value="%s"/>', password),
    "xml siblings": ("<property><name>a.password</name><value>%s</value></property>", password),
    "xml named element": ('<string name="api_key">%s</string>', key),
    "xml entry": ('<entry key="db.password">%s</entry>', password),
    "html input": ('<input type="password" name="pw" value="%s">', password),
    "html meta": ('<meta name="csrf-token" content="%s">', key),
    "php define": ("define('DB_PASSWORD', '%s');", password),
    "ruby": ('ENV.store("API_KEY", "%s")', key),
    "header pair": ('[["x-api-key", "%s"], ["a", "b"]]', key),
    "powershell": ("$env:API_KEY = '%s'", key),
    "powershell option": ("Connect-Thing -Password %s -Verbose", password),
    "powershell key": ('Connect-Thing -ApiKey "%s" -Verbose', key),
    "powershell call": ('[Environment]::SetEnvironmentVariable("API_KEY", "%s", "User")', key),
    "powershell secure": ('ConvertTo-SecureString "%s" -AsPlainText -Force', password),
    "sql user": ("CREATE USER joe WITH PASSWORD '%s';", password),
    "sql identified": ("ALTER USER joe IDENTIFIED BY '%s';", password),
    "sql plugin": ("CREATE USER a IDENTIFIED WITH mysql_native_password BY '%s'", password),
    "toml lines": ('password = """%s"""\n', password),
    "toml literal lines": ("password = '''%s'''\n", password),
    "toml next line": ('api_key = """\n%s\n"""', key),
    "yaml block": ("password: |\n  %s\n", password),
    "netrc": ("machine h login joe password %s\n", password),
    "presigned": ("https://b.s3.aws.test/k?X-Amz-Date=1&X-Amz-Signature=%s", signature),
    "goog signature": ("https://storage.test/k?a=1&X-Goog-Signature=%s&b=2", signature),
    "sas": ("https://x.blob.test/c?sv=2020&sig=%s&se=1", key),
    "pgpass": ("db.example.com:5432:shop:joe:%s\n", password),
    "pgpass any": ("localhost:*:*:joe:%s\n", password),
    "htpasswd": ("joe:$apr1$abcd1234$%s\n", crypt_hash),
    "shadow": ("root:$6$rounds=5000$salt1234$%s:19000:0:99999:7:::\n", crypt_hash),
    "bcrypt": ("joe:$2y$10$%s\n", crypt_hash),
    "yescrypt": ("joe:$y$j9T$abcd1234$%s:1\n", crypt_hash),
    "argon2": ("$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$%s", crypt_hash),
    "django": ("pbkdf2_sha256$600000$abcd1234$%s=", crypt_hash),
    "scram": (
        "SCRAM-SHA-256$4096:c29tZXNhbHRzb21l$a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2V5a2U=:%s=",
        crypt_hash,
    ),
    "ldap": ("userPassword: {SSHA}%s\n", crypt_hash),
    "docker login": ('{"auths":{"r.test":{"auth":"%s"}}}', login),
    "kube key": ("    client-key-data: %s\n", encoded_key),
    "kube key in json": ('{"tls.key":"%s"}', encoded_key),
    "mcp environment": ('{"x":{"command":"npx","env":{"SERVICE_PAT":"%s"}}}', key),
    "curl login": ("curl -s -u joe:%s https://h.test/", password),
    "curl login quoted": ('curl --user "joe:%s" https://h.test/', password),
    "curl login list": ('["curl","-u","joe:%s"]', password),
    "mysql login": ("mysql -h db -u root -p%s shop", password),
    "json pass": ('{"smtp":{"user":"a","pass":"%s"}}', password),
    "json passphrase": ('{"passphrase": "%s"}', password),
    "env pass": ("MYSQL_PASS=%s\n", password),
    "redis": ("requirepass %s\n", password),
    "wi-fi": ('network={ psk="%s" }', password),
    "ldap bind": ("bindpw %s\n", password),
    "properties": ("spring.datasource.password=%s\n", phrase),
    "form": ("grant_type=password&username=u&password=%s&x=1", phrase),
    "line of a password": ("user=joe\npassword=%s\n", lambda chance: "hunter2" + "abc"),
    "yaml phrase": ("db_password: %s\n", phrase),
    "yaml pass": ("a: 1\nansible_ssh_pass: %s\n", phrase),
    "dsn with a sign": ("Server=db;User Id=sa;Password=%s;", lambda c: "N3t$" + key(c)),
    "terraform": ('variable "db_password" {\n  default = "%s"\n}', password),
    "json nested": ('{"password": {"value": "%s"}}', password),
    "typescript": ("private readonly jwtSecret: string = '%s';", key),
    "rust": ('let secret_key: &str = "%s";', key),
    "python annotation": ('password: str | None = "%s"', password),
    "php": ("$dbpass = '%s';", password),
    "rails": ("config.secret_key_base = '%s'", signature),
    "numbered": ("API_KEY_2=%s\n", key),
    "option token": ("tool --token %s -v\n", key),
    "option token list": ('["tool","--token","%s"]', key),
    "option passphrase": ("gpg --batch --passphrase %s -d a.gpg", password),
    "openssl": ("openssl enc -d -aes-256-cbc -pass pass:%s -in a", password),
    "sshpass": ("sshpass -p '%s' ssh joe@h\n", password),
    "docker login option": ("docker login -u joe -p %s r.test\n", password),
    "redis login": ("redis-cli -h c -a %s ping\n", password),
    "ldap login": ("ldapsearch -x -D cn=a -w %s\n", password),
    "zip": ("zip -r -P %s a.zip b\n", password),
    "git name": ("https://%s:x-oauth-basic@github.test/a", signature),
    "wallet": ('mnemonic: "%s"', word_sentence),
    "set-cookie": ("Set-Cookie: sessionid=%s; HttpOnly\n", key),
    "cookies": ("Cookie: a=b; auth=%s\n", key),
    "csv": ("\nusername,password,note\nann,Qx7-Rt92mQ,x\njoe,%s,y\n", password),
    "markdown table": ("\n| user | password |\n|---|---|\n| joe | %s |\n", password),
    "markdown row": ("| Password | `%s` |", password),
    "markdown label": ("- **API key:** `%s`", key),
    "sentence": ("The admin password is %s and the port is 22.\n", phrase),
    "sentence to": ("I changed the password of the router to %s, as you asked.", phrase),
    "sentence de": ("Das Passwort lautet %s.\n", phrase),
    "sentence es": ("La contraseña es %s\n", phrase),
    "sentence zh": ("密码是 %s\n", phrase),
    "sentence fr": ("Le mot de passe est %s.\n", phrase),
    "sentence pt": ("A senha é %s\n", phrase),
    "sentence nl": ("Het wachtwoord is %s.\n", phrase),
    "sentence pl": ("Hasło: %s\n", phrase),
    "sentence ru": ("Пароль - %s\n", phrase),
    "sentence ja": ("パスワードは %s です\n", phrase),
    "sentence ko": ("비밀번호는 %s 입니다\n", phrase),
    "csv first": ("\npassword,user\n%s,joe\n", password),
    "login options": ("tool -H h -U admin -P %s run\n", generated),
    "login options list": ('["tool","-l","joe","-p","%s"]', generated),
    "login options of Windows": ("tool /u:joe /p:%s /v:h\n", generated),
    "login option": ("tool --auth joe:%s GET h\n", generated),
    "login option with percent": ("tool //h/x -U 'joe%%%s'\n", generated),
    "login option with comma": ("tool -u joe,%s h\n", generated),
    "login named": ("credentials: joe:%s\n", generated),
    "archive": ("7z x -p%s a.7z\n", generated),
    "key store": ("keytool -list -storepass %s\n", password),
    "option pw": ("plink -pw %s joe@h\n", password),
    "piped": ("echo %s | sudo -S ls\n", phrase),
    "piped quoted": ("printf '%s' | sudo -u joe -S ls\n", phrase),
    "piped newline": ('printf "%s\\n" | docker login -u joe --password-stdin h\n', generated),
    "piped login": ("echo 'joe:%s' | chpasswd\n", phrase),
    "piped word": ("echo correct%s | sudo -kS ls\n", build_shape("", LOWER, 12)),
    "here string": ("sudo -S ls <<< '%s'\n", phrase),
    "here string login": ("chpasswd <<< joe:%s\n", phrase),
    "named in words": ("aws configure set aws_secret_access_key %s\n", key),
    "named in words with a type": ("username admin secret 0 %s\n", generated),
    "line pass": ("\nuser: joe\npass: %s\n", generated),
    "few digits": ("host=db user=app password=%s dbname=x", generated),
    "settings key": ("SECRET_KEY = 'django-insecure-%s'\n", settings_key),
    "variable with a sign": ("PGPASSWORD=%s psql -h db\n", build_shape("Wq#Pi", LOWER, 8)),
    "sentence key": ("Your API key is %s.\n", key),
}


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
