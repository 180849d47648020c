"""Published formats of keys and tokens: the prefix of each and its continuation.

A format is listed if its prefix distinguishes it from other text; the class is that of the
placeholder. All are runs of token characters (see `patterns`), at most LONGEST_TOKEN bytes long
unless they are JSON Web Tokens.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache

LONGEST_TOKEN = 2048

type TokenFormat = tuple[bytes, str, bytes]
"""The literal prefix, the class, and a pattern of the token; a group in it is the secret."""

_ALONE = rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
_END = rb"(?![\w-])"
_ALNUM = rb"(?=[a-z]{0,48}[A-Z0-9])[A-Za-z0-9]{20,2048}(?![\w-])"
_MIXED = rb"(?=[\w-]{0,64}\d)[\w-]{20,2048}"
_HEX = rb"[0-9a-fA-F]{24,2048}"
_DOTTED = rb"(?=[\w.-]{0,64}\d)[\w.-]{20,2048}"

_UUID = rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}" + _END
_BOTH_CASES = rb"(?=[A-Za-z_-]{0,48}\d)(?=[a-z0-9_-]{0,48}[A-Z])(?=[A-Z0-9_-]{0,48}[a-z])"


def _formats(kind: str, rest: bytes, *beginnings: bytes) -> Iterator[TokenFormat]:
    for begin in beginnings:
        yield begin, kind, re.escape(begin) + rest


TOKEN_FORMATS: tuple[TokenFormat, ...] = (
    # Model providers.
    *_formats("a", rb"[\w-]{16,2048}", b"sk-ant-"),
    *_formats("o", rb"(?=[\w-]{0,64}?(?=\w{0,24}\d)\w{12})[\w-]{17,2048}", b"sk-"),
    *_formats("i", rb"[\w-]{35}", b"AIza"),
    *_formats("t", _ALNUM, b"hf_", b"gsk_", b"r8_", b"xai-", b"pplx-", b"fw_", b"cpk_", b"jina_"),
    *_formats("t", _MIXED, b"nvapi-", b"tgp_v1_", b"tvly-", b"lsv2_pt_", b"lsv2_sk_"),
    *_formats("t", _ALNUM, b"csk-", b"api_org_"),
    *_formats("t", _MIXED, b"pcsk_"),
    # Code hosts and package registries.
    *_formats("g", rb"[A-Za-z0-9]{20,255}", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
    *_formats("g", rb"\w{20,255}", b"github_pat_"),
    *_formats("t", _DOTTED, b"glpat-", b"gldt-", b"glrt-", b"glptt-", b"glcbt-", b"glsoat-"),
    *_formats("t", _DOTTED, b"glft-", b"glimt-", b"glagent-", b"gloas-", b"glffct-"),
    *_formats("t", _MIXED, b"GR1348941", b"ATBB", b"ATATT3xFfGF0", b"ATCTT3xFfGF0"),
    *_formats("t", _ALNUM, b"npm_", b"rubygems_", b"CLOJARS_", b"dckr_pat_", b"dckr_oat_"),
    *_formats("t", rb"(?=[\w-]{0,512}[A-Z])" + _MIXED, b"pypi-"),
    *_formats("t", rb"[a-z0-9]{43}" + _END, b"oy2"),
    # Clouds and infrastructure.
    *_formats("w", rb"[A-Z0-9]{16}(?![A-Za-z0-9])", b"AKIA", b"ASIA", b"ABIA", b"ACCA"),
    *_formats("t", rb"[\w.-]{20,2048}", b"ya29."),
    *_formats("t", rb"[\w-]{20,2048}", b"GOCSPX-"),
    *_formats("t", rb"[\w-]{30,2048}", b"1//0"),
    *_formats("t", rb"([A-Za-z0-9+/]{30,2048}={0,2})", b"AccountKey=", b"SharedAccessKey="),
    *_formats("t", _HEX, b"dop_v1_", b"doo_v1_", b"dor_v1_"),
    *_formats("t", rb"[0-9a-f]{32}(?:-\d)?" + _END, b"dapi"),
    *_formats("t", rb"(?=[a-z]{0,20}[A-Z0-9])[A-Za-z0-9]{20}" + _END, b"LTAI"),
    *_formats("t", rb"(?=[A-Za-z]{0,32}\d)[A-Za-z0-9]{32}" + _END, b"AKID"),
    *_formats("t", _MIXED, b"hvs.", b"hvb.", b"hvr.", b"sb_secret_", b"fo1_"),
    *_formats("t", rb"[0-9a-f]{40}" + _END, b"pul-", b"sbp_", b"e2b_"),
    *_formats("t", _DOTTED, b"pscale_tkn_", b"pscale_pw_", b"pscale_oauth_", b"dt0c01."),
    *_formats("t", _DOTTED, b"dp.pt.", b"dp.st.", b"dp.ct.", b"dp.sa.", b"dp.scim.", b"dp.audit."),
    *_formats("t", _ALNUM, b"pnu_", b"AGE-SECRET-KEY-1"),
    *_formats("t", rb"[\w=+/-]{40,2048}", b"ops_eyJ", b"fm2_", b"fm1r_", b"fm1a_"),
    # Payments, mail, chat and the rest.
    *_formats("t", rb"[A-Za-z0-9]{16,255}", b"sk_live_", b"sk_test_", b"rk_live_", b"rk_test_"),
    *_formats("t", rb"[A-Za-z0-9+/=]{24,255}", b"whsec_"),
    *_formats("t", rb"[0-9a-f]{32,255}", b"sk_"),
    *_formats("t", rb"[\w-]{22,255}", b"sq0csp-", b"sq0atp-", b"sq0idp-"),
    *_formats("t", _HEX, b"shpat_", b"shpca_", b"shppa_", b"shpss_", b"shippo_live_"),
    *_formats("t", rb"[\w-]{16,255}\.[\w-]{16,255}", b"SG."),
    *_formats("t", rb"[0-9a-f]{64}-[A-Za-z0-9]{16}", b"xkeysib-", b"xsmtpsib-"),
    *_formats("t", rb"[0-9a-f]{32}" + _END, b"SK", b"key-"),
    *_formats("s", rb"[a-z]-(?=[A-Za-z-]{0,64}\d)[A-Za-z0-9-]{15,2048}", b"xox"),
    *_formats("s", rb"\d-[A-Za-z0-9-]{15,2048}", b"xapp-"),
    *_formats("s", rb"T\w{6,16}/B\w{6,16}/([A-Za-z0-9]{16,64})", b"hooks.slack.com/services/"),
    *_formats("t", rb"\d{15,22}/([\w-]{40,90})", b"discord.com/api/webhooks/"),
    *_formats("t", rb"\d{15,22}/([\w-]{40,90})", b"discordapp.com/api/webhooks/"),
    *_formats("t", _MIXED, b"PMAK-", b"CFPAT-", b"NRAK-", b"NRJS-", b"figd_"),
    *_formats("t", _MIXED, b"ATCTT3xFfGN0", b"AVNS_", b"signkey-prod-", b"signkey-test-"),
    *_formats("t", _ALNUM, b"unkey_", b"sgamp_user_", b"depot_project_", b"tr_prod_", b"novu_"),
    *_formats("t", rb"(?=[A-Za-z]{0,40}\d)[A-Za-z0-9]{40,60}" + _END, b"ntn_", b"secret_"),
    *_formats("t", _ALNUM, b"lin_api_", b"lin_oauth_", b"phx_", b"phs_", b"rnd_"),
    *_formats("t", rb"[A-Za-z0-9]{32}_[0-9a-f]{8}", b"glsa_"),
    *_formats("t", _DOTTED, b"sntrys_", b"sntryu_", b"EZAK", b"EZTK", b"rdme_", b"pat-na1-"),
    # Further providers, by what their documentation shows.
    *_formats("t", _ALNUM, b"apify_api_", b"llx-", b"pylf_v1_us_", b"pylf_v1_eu_", b"rpa_", b"rf_"),
    *_formats("t", _ALNUM, b"vcp_", b"vci_", b"vca_", b"vcr_", b"vck_", b"napi_", b"nfp_", b"nfc_"),
    *_formats("t", _ALNUM, b"ddp_", b"ddo_", b"jsrt_", b"jsrp_", b"pnb_", b"polar_oat_", b"ico-"),
    *_formats("t", _ALNUM, b"polar_pat_", b"hcaik_", b"hcxik_", b"p8e-", b"STS."),
    *_formats("t", _MIXED, b"bb_live_", b"os_v2_app_", b"os_v2_org_", b"wandb_v1_", b"tk-us-"),
    *_formats("t", _MIXED, b"vercel_blob_rw_", b"fio-u-", b"HRKU-", b"duffel_live_", b"tfp_"),
    *_formats("t", _MIXED, b"duffel_test_", b"figo_", b"figu_", b"NRII-", b"secret-live-"),
    *_formats("t", _MIXED, b"pdl_live_apikey_", b"pdl_sdbx_apikey_", b"glc_eyJ"),
    *_formats("t", _MIXED, b"tskey-auth-", b"tskey-api-", b"tskey-client-"),
    *_formats("t", _MIXED, b"mercury_production_", b"mercury_sandbox_", b"secret-test-"),
    *_formats("t", _DOTTED, b"snyk_uat.", b"sl.u.", b"mlsn."),
    *_formats("t", _HEX, b"cal_live_", b"s-s4t2ud-", b"packagist_ort_", b"bkua_"),
    *_formats("t", _HEX, b"packagist_uut_"),
    *_formats("t", _HEX, b"KGAT_", b"FLWSECK-", b"FLWSECK_TEST-", b"scp-live-", b"sbp_v0_"),
    *_formats("t", rb"[0-9a-f]{40}" + _END, b"squ_", b"sqp_", b"sqa_", b"ck_", b"cs_"),
    *_formats("t", rb"[0-9a-f]{64}" + _END, b"dtn_", b"key_"),
    *_formats("t", rb"[0-9a-f]{32}" + _END, b"dose", b"dkea", b"fc-", b"cu_"),
    *_formats("t", rb"(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}" + _END, b"sgp_"),
    *_formats("t", rb"[0-9a-f]{24}-[0-9a-f]{100,200}", b"v1.0-"),
    *_formats("t", rb"[0-9a-f]{64}[0-9A-F]{8}", b"ATTA"),
    *_formats("t", _UUID, b"sdk-", b"api-", b"mob-", b"xaat-", b"xapt-", b"persona_production_"),
    *_formats("t", _UUID, b"persona_sandbox_", b"access-production-", b"access-sandbox-"),
    *_formats("t", rb"[A-Za-z0-9]{14}" + _END, b"rzp_live_", b"rzp_test_"),
    *_formats("t", rb"[A-Za-z0-9]{16}" + _END, b"sm_pat_", b"sm_aat_", b"sm_sat_"),
    *_formats("t", rb"[A-Za-z0-9]{20,24}_[0-9a-f]{40}", b"CCIPAT_", b"CCIPRJ_"),
    *_formats("t", rb"[A-Za-z0-9]{8}_[A-Za-z0-9]{24}" + _END, b"re_"),
    *_formats("t", rb"\d{6,12}_[A-Z0-9]{32}" + _END, b"pk_"),
    *_formats("t", rb"[A-Z0-9]{31}_[A-Za-z0-9]{22}" + _END, b"KEY0"),
    *_formats("t", rb"[\w-]{22}\.[0-9a-f]{24}\.[A-Za-z0-9]{20}", b"pat."),
    *_formats("t", rb"(?=[A-Z]{0,25}\d)[A-Z0-9]{25,32}" + _END, b"API-"),
    *_formats("t", _BOTH_CASES + rb"[A-Za-z0-9]{22}" + _END, b"as-", b"ak-"),
    *_formats("t", _BOTH_CASES + rb"[A-Za-z0-9]{32}" + _END, b"cio"),
    *_formats("t", _BOTH_CASES + rb"[\w-]{27,28}" + _END, b"BSA"),
    *_formats("t", _BOTH_CASES + rb"[\w-]{43}" + _END, b"pa-"),
    *_formats("t", _BOTH_CASES + rb"[\w-]{60}" + _END, b"EAAA"),
    *_formats("t", rb"[A-Za-z0-9]{90,2048}" + _END, b"EAA"),
    *_formats("t", _BOTH_CASES + rb"[\w-]{35,38}" + _END, b"AQVN"),
    *_formats("t", _BOTH_CASES + rb"[\w-]{50,64}" + _END, b"y0_"),
    *_formats("t", rb"[A-Za-z0-9]{60,80}" + _END, b"AKCp"),
    *_formats("t", rb"[A-Za-z0-9+/]{100,200}={0,2}", b"ABSK"),
    *_formats("t", rb"[A-Za-z0-9+/]{40,80}={0,2}", b"dG9rOg"),
    *_formats("t", rb"[\w-]{40,64}" + _END, b"AQ.Ab"),
    *_formats("t", rb"[\w-]{43}" + _END, b"sha256~"),
    *_formats("t", rb"[a-z0-9]{58}" + _END, b"nsec1"),
    *_formats("t", rb"[\w-]{30,400}\.[\w-]{20,60}", b"sk.eyJ"),
    *_formats("t", rb"([\w@/-]{60,300})", b"webhook.office.com/webhookb2/"),
    *_formats("j", rb"[\w-]{8,8192}\.eyJ[\w-]{2,8192}\.[\w-]{0,8192}", b"eyJ"),
)  # fmt: skip
_LONG = b"eyJ"


@cache
def compile_token_format(pattern: bytes) -> re.Pattern[bytes]:
    """Compile the pattern of a format on first use: most of them are never needed."""
    return re.compile(pattern)


UNPREFIXED: tuple[tuple[bytes, str, re.Pattern[bytes], re.Pattern[bytes]], ...] = (
    (
        b"-us",  # Mailchimp
        "t",
        re.compile(_ALONE + rb"[0-9a-f]{32}-us\d{1,2}(?!\w)"),
        re.compile(rb"[0-9a-f]{8,32}(?:-?u?s?\d?\d?)\Z"),
    ),
    (
        b".atlasv1.",  # Terraform Cloud
        "t",
        re.compile(_ALONE + rb"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,255}"),
        re.compile(rb"(?=[A-Za-z]{0,8}\d)[A-Za-z0-9]{9,14}(?:\.[\w.-]{0,270})?\Z"),
    ),
    (
        b"FFFFNRAL",  # New Relic
        "t",
        re.compile(_ALONE + rb"[0-9a-f]{36}FFFFNRAL(?!\w)"),
        re.compile(rb"[0-9a-f]{12,36}(?:F{1,4}N?R?A?L?)?\Z"),
    ),
    (
        b"_mmk",  # MaxMind
        "t",
        re.compile(_ALONE + rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?!\w)"),
        re.compile(rb"[A-Za-z0-9]{6}_[A-Za-z0-9]{4,29}(?:_m{0,2}k?)?\Z"),
    ),
    (
        b".",  # Discord
        "t",
        re.compile(_ALONE + rb"[MNO](?=[A-Za-z_-]{0,24}\d)[\w-]{23,27}"
                   rb"\.(?=[\w-]{0,5}[A-Z0-9])[\w-]{6}\.(?=[\w-]{0,39}\d)[\w-]{27,40}(?![\w-])"),
        re.compile(rb"[MNO](?=[A-Za-z_-]{0,24}\d)[\w-]{8,27}(?:\.[\w-]{0,6}(?:\.[\w-]{0,40})?)?\Z"),
    ),
    (
        b".",  # Airtable
        "t",
        re.compile(_ALONE + rb"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}(?!\w)"),
        re.compile(rb"pat[A-Za-z0-9]{6,14}(?:\.[0-9a-f]{0,64})?\Z"),
    ),
)  # fmt: skip
"""Formats without a prefix: a hint, the class, the token, and a run that may become one."""
SHORTEST_UNPREFIXED = 36


def _build_alternation(words: Iterable[bytes]) -> bytes:
    """Build a pattern for any of the words, grouped by first byte for speed."""
    by_first: dict[bytes, list[bytes]] = {}
    for word in words:
        by_first.setdefault(word[:1], []).append(word[1:])
    branches = (
        re.escape(first) + b"(?:" + b"|".join(map(re.escape, rest)) + b")"
        for first, rest in by_first.items()
    )
    return b"|".join(branches)


_BEGINNINGS = tuple(dict.fromkeys(begin for begin, _, _ in TOKEN_FORMATS))
PARTIAL_BEGINNINGS = frozenset(
    begin[:size] for begin in _BEGINNINGS for size in range(1, len(begin))
)
"""All truncations of a prefix."""


def _group_by_beginning() -> dict[bytes, tuple[TokenFormat, ...]]:
    """Return the formats under the shortest prefix that begins them."""
    groups, known = dict[bytes, list[TokenFormat]](), frozenset(_BEGINNINGS)
    for each in TOKEN_FORMATS:
        begin = each[0]
        sizes = range(1, len(begin) + 1)
        short = next(begin[:size] for size in sizes if begin[:size] in known)
        groups.setdefault(short, []).append(each)
    return {short: tuple(formats) for short, formats in groups.items()}


BY_BEGINNING = _group_by_beginning()


def _compile_standalone_words(words: Iterable[bytes]) -> re.Pattern[bytes]:
    return re.compile(
        rb"[^A-Za-z0-9](?:(?<=\\)[nrtbf])?(?=[A-Za-z1])(" + _build_alternation(words) + b")"
    )


@cache
def compile_beginning() -> re.Pattern[bytes]:
    """Compile the prefixes of all formats; the shortest one also covers those that extend it.

    A byte that is not a letter or digit precedes them, so that the search can skip to it.
    """
    return _compile_standalone_words(BY_BEGINNING)


@cache
def compile_short_beginning() -> re.Pattern[bytes]:
    """Compile the prefixes but LONG_BEGINNING."""
    return _compile_standalone_words(begin for begin in BY_BEGINNING if begin != _LONG)


LONG_BEGINNING = _LONG
PARTIAL_ENDS = frozenset(partial[-2:] for partial in PARTIAL_BEGINNINGS)
"""The last one or two bytes of any of them."""
LONGEST_BEGINNING = max(map(len, _BEGINNINGS))
