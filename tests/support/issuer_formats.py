"""Further formats of keys, as the documentation of their issuers has them; no rule was read for it.

As in `tests.support.secret_shapes` each is generated from a seed. `BARE` have a beginning or form
of their own and are secrets wherever they are; `NAMED` are plain letters or digits, which only the
name beside them makes a secret.
"""

from collections.abc import Mapping
from random import Random

from tests.support.secret_shapes import ALNUM, DIGITS, HEX, LOWER, WORD, Shape, join_shapes

UPPER = LOWER.upper()
_joined = join_shapes


def _of(beginning: str, letters: str, size: int, end: str = "") -> Shape:
    """Return a beginning, in which `~` is left out, letters of all kinds, and an end."""
    kinds = [kind for kind in (LOWER, UPPER, DIGITS) if set(kind) <= set(letters)]
    sure = [kind[-3] for kind in kinds] if letters != HEX else ["7", "d"]

    def make(chance: Random) -> str:
        said = [*chance.choices(letters, k=size - len(sure)), *sure]
        return beginning.replace("~", "") + "".join(said) + end

    return make


def _uuid(chance: Random) -> str:
    text = "".join(chance.choices(HEX, k=32))
    return "-".join((text[:8], text[8:12], "4" + text[13:16], "a" + text[17:20], text[20:]))


BARE: Mapping[str, Shape] = {
    "aiven": _of("AVN~S_", WORD, 20),
    "amp": _of("sgamp~_user_", HEX, 60),
    "atlassian admin": _of("ATCTT3~xFfGN0", WORD, 180, "=1A2B3C4D"),
    "depot": _of("depot~_project_", HEX, 64),
    "inngest": _of("signkey~-prod-", HEX, 64),
    "trigger": _of("tr~_prod_", ALNUM, 24),
    "unkey": _of("un~key_", ALNUM, 40),
    "adobe": _of("p8~e-", ALNUM, 32),
    "airtable": _joined(_of("pa~t", ALNUM, 14), ".", _of("", HEX, 64)),
    "alibaba sts": _of("STS.~N", ALNUM, 28),
    "anthropic admin": _of("sk-~ant-admin01-", WORD, 93),
    "anthropic oauth": _of("sk-~ant-oat01-", WORD, 93),
    "apify": _of("apify~_api_", ALNUM, 36),
    "artifactory": _of("AKC~p8", ALNUM, 67),
    "aws bedrock": _of("ABSK~", ALNUM + "+/", 128, "="),
    "axiom": _joined("xaa" "t-", _uuid),
    "azure client": _joined(_of("", ALNUM, 3), "8Q~", _of("", ALNUM + "-_", 34)),
    "brave": _of("BS~A", WORD, 27),
    "braintree": _joined(
        "access_token$production$", _of("", LOWER + DIGITS, 16), "$", _of("", HEX, 32)
    ),
    "browserbase": _of("bb~_live_", WORD, 28),
    "buildkite": _of("bk~ua_", HEX, 40),
    "cal": _of("cal~_live_", HEX, 32),
    "circle ci": _joined(_of("CCI~PAT_", ALNUM, 22), "_", _of("", HEX, 40)),
    "checkly": _of("cu~_", HEX, 32),
    "clickup": _joined("pk_", _of("", DIGITS, 8), "_", _of("", UPPER + DIGITS, 32)),
    "cloudflare origin": _joined(_of("v1.~0-", HEX, 24), "-", _of("", HEX, 146)),
    "crates": _of("ci~o", ALNUM, 32),
    "cursor": _of("key~_", HEX, 64),
    "databricks oauth": _of("do~se", HEX, 32),
    "daytona": _of("dt~n_", HEX, 64),
    "deno": _of("dd~p_", ALNUM, 36),
    "discord hook": _joined(
        "https://discord.com/api/webhooks/112233445566778899/", _of("", WORD, 68),
    ),
    "docker organisation": _of("dckr~_oat_", ALNUM, 32),
    "doppler service": _of("dp.~st.prd.", ALNUM, 43),
    "dropbox": _of("sl.~u.", WORD, 140),
    "duffel": _of("duffel~_live_", WORD, 43),
    "facebook": _of("EAAC~EdEose0cBA", ALNUM, 120),
    "figma oauth": _of("fi~go_", WORD, 40),
    "firecrawl": _of("f~c-", HEX, 32),
    "flutterwave": _joined(_of("FLWSE~CK-", HEX, 32), "-X"),
    "frame io": _of("fio~-u-", WORD, 64),
    "github old app": _of("gh~s_", ALNUM, 36),
    "gitlab feed": _of("gl~ft-", WORD, 20),
    "google gemini": _of("AQ.~Ab8R", WORD, 45),
    "grafana cloud": _of("gl~c_eyJ", ALNUM, 100, "=="),
    "harness": _joined(_of("pat~.", WORD, 22), ".", _of("", HEX, 24), ".", _of("", ALNUM, 20)),
    "helicone": _joined("sk" "-helicone-", _of("", LOWER + DIGITS, 28)),
    "heroku": _of("HRKU~-AA", WORD, 58),
    "honeycomb": _of("hca~ik_01", LOWER + DIGITS, 58),
    "infracost": _of("ic~o-", ALNUM, 32),
    "intra": _of("s-s4t2~ud-", HEX, 64),
    "intercom": _of("dG9r~Og", ALNUM, 52, "="),
    "jsr": _of("jsr~t_", ALNUM, 40),
    "kaggle": _of("KGA~T_", HEX, 32),
    "langfuse": _joined("sk" "-lf-", _uuid),
    "launchdarkly": _joined("sdk" "-", _uuid),
    "launchdarkly api": _joined("api" "-", _uuid),
    "letta": _of("sk~-let-", ALNUM, 64),
    "linear oauth": _of("lin~_oauth_", HEX, 64),
    "llama cloud": _of("ll~x-", ALNUM, 48),
    "logfire": _of("pylf~_v1_us_", ALNUM, 43),
    "mailersend": _of("mlsn~.", HEX, 64),
    "mapbox": _joined(_of("sk~.eyJ1Ijoi", ALNUM, 60), ".", _of("", WORD, 22)),
    "maxmind": _joined(_of("", ALNUM, 6), "_", _of("", ALNUM, 29), "_mmk"),
    "mercury": _joined("secret-token:mercury_production_wma_", _of("", ALNUM, 42)),
    "modal": _of("as~-", ALNUM, 22),
    "neon": _of("nap~i_", LOWER + DIGITS, 64),
    "netlify": _of("nf~p_", ALNUM, 36),
    "new relic insights": _of("NRI~I-", WORD, 32),
    "new relic license": _joined(_of("", HEX, 36), "FFFF", "NRAL"),
    "nostr": _of("nsec~1", LOWER + DIGITS, 58),
    "octopus": _of("API~-", UPPER + DIGITS, 26),
    "okta sws": _joined("Authorization: SSWS 00", _of("", WORD, 40)),
    "onesignal": _of("os_v2~_app_", LOWER + DIGITS, 80),
    "openai admin": _of("sk-~admin-", WORD, 120),
    "openai service": _of("sk-~svcacct-", WORD, 120),
    "openshift": _joined("sha256", chr(126), _of("", WORD, 43)),
    "packagist": _of("packagist~_ort_", HEX, 80),
    "paddle": _joined(
        _of("pdl_live~_apikey_01", LOWER + DIGITS, 24), "_", _of("", ALNUM, 22), "_",
        _of("", ALNUM, 3),
    ),
    "persona": _joined("persona" "_production_", _uuid),
    "plaid": _joined("access" "-production-", _uuid),
    "polar": _of("polar~_oat_", ALNUM, 43),
    "prefect bot": _of("pn~b_", ALNUM, 36),
    "pulumi access": _of("pu~l-", HEX, 40),
    "razorpay": _of("rzp~_live_", ALNUM, 14),
    "readme": _of("rd~me_", LOWER + DIGITS, 70),
    "resend": _joined(_of("re~_", ALNUM, 8), "_", _of("", ALNUM, 24)),
    "roboflow": _of("r~f_", ALNUM, 28),
    "runpod": _of("rp~a_", UPPER + DIGITS, 40),
    "scalingo": _of("tk~-us-", WORD, 48),
    "scrapfly": _of("scp~-live-", HEX, 32),
    "settlemint": _of("sm~_pat_", ALNUM, 16),
    "shopify custom": _of("shp~ca_", HEX, 32),
    "shopify secret": _of("shp~ss_", HEX, 32),
    "slack config": _joined("xo" "xe.xoxp-1-", _of("", ALNUM, 160)),
    "slack refresh": _of("xo~xe-1-", ALNUM, 146),
    "slack hook": _joined(
        "https://hooks.slack.com/services/T0123456789/B0123456789/", _of("", ALNUM, 24),
    ),
    "snyk": _joined("snyk_uat.", _of("", HEX, 8), ".", _of("", WORD, 80)),
    "sonar": _of("sq~u_", HEX, 40),
    "sonar project": _of("sq~p_", HEX, 40),
    "sourcegraph": _joined(_of("sg~p_", HEX, 16), "_", _of("", HEX, 40)),
    "square access": _of("EA~AA", WORD, 60),
    "stytch": _of("secret~-live-", WORD, 36, "="),
    "supabase publishable": _of("sb~p_v0_", HEX, 40),
    "tailscale client": _joined("tskey" "-client-", _of("", ALNUM, 17), "-", _of("", ALNUM, 32)),
    "teams hook": _joined(
        "https://acme.webhook.office.com/webhookb2/", _uuid, "@", _uuid, "/IncomingWebhook/",
        _of("", HEX, 32), "/", _uuid,
    ),
    "telnyx": _joined("KEY0", _of("", UPPER + DIGITS, 31), "_", _of("", ALNUM, 22)),
    "trello": _of("ATT~A", HEX, 64, "0A1B2C3D"),
    "typeform": _of("tf~p_", WORD, 59),
    "vault batch": _of("hv~b.AAAAAQ", WORD, 150),
    "vercel": _of("vc~p_", ALNUM, 56),
    "vercel blob": _joined("vercel" "_blob_rw_", _of("", ALNUM, 16), "_", _of("", ALNUM, 30)),
    "voyage": _of("p~a-", WORD, 43),
    "wandb": _joined("wandb" "_v1_", _of("", WORD, 24), "_", _of("", ALNUM, 36)),
    "woo": _of("ck~_", HEX, 40),
    "woo secret": _of("cs~_", HEX, 40),
    "yandex": _of("AQV~N", WORD, 35),
    "yandex oauth": _of("y0~_", WORD, 55),
}  # fmt: skip

NAMED: Mapping[str, tuple[str, Shape]] = {
    "algolia": ("ALGOLIA_ADMIN_KEY", _of("", HEX, 32)),
    "asana": ("ASANA_ACCESS_TOKEN", _joined(
        "2/", _of("", DIGITS, 16), "/", _of("", DIGITS, 16), ":", _of("", HEX, 32),
    )),
    "assembly ai": ("ASSEMBLYAI_API_KEY", _of("", HEX, 32)),
    "auth0": ("AUTH0_CLIENT_SECRET", _of("", WORD, 64)),
    "aws": ("AWS_SECRET_ACCESS_KEY", _of("", ALNUM + "+/", 40)),
    "azure openai": ("AZURE_OPENAI_API_KEY", _of("", HEX, 32)),
    "baseten": ("BASETEN_API_KEY", _joined(_of("B", ALNUM, 7), ".", _of("C7k39s", ALNUM, 26))),
    "beamer": ("BEAMER_API_KEY", _of("b~_", WORD, 44)),
    "cohere": ("COHERE_API_KEY", _of("", ALNUM, 40)),
    "convex": ("CONVEX_DEPLOY_KEY", _joined("prod:happy-otter-123|", _of("", ALNUM, 60))),
    "datadog": ("DD_API_KEY", _of("", HEX, 32)),
    "deepgram": ("DEEPGRAM_API_KEY", _of("", HEX, 40)),
    "exa": ("EXA_API_KEY", _uuid),
    "fal": ("FAL_KEY", _joined(_uuid, ":", _of("", HEX, 32))),
    "mistral": ("MISTRAL_API_KEY", _of("", ALNUM, 32)),
    "okta": ("OKTA_API_TOKEN", _of("0~0", WORD, 40)),
    "pagerduty": ("PAGERDUTY_TOKEN", _of("u~+", ALNUM, 18)),
    "sanity": ("SANITY_AUTH_TOKEN", _of("sk", ALNUM, 178)),
    "qdrant": ("QDRANT_API_KEY", _joined(_uuid, "|", _of("", WORD, 54))),
    "serper": ("SERPER_API_KEY", _of("", HEX, 40)),
    "twilio token": ("TWILIO_AUTH_TOKEN", _of("", HEX, 32)),
    "zhipu": ("ZHIPU_API_KEY", _joined(_of("", HEX, 32), ".", _of("", ALNUM, 16))),
    "vault old": ("VAULT_TOKEN", _of("s~.", ALNUM, 24)),
    "zendesk": ("ZENDESK_API_TOKEN", _of("", ALNUM, 40)),
}  # fmt: skip
"""The name of the environment variable in the documentation, and the value's form."""
