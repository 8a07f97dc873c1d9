"""Credentials are found, prose and documented examples pass, and no pattern can be made to hang.

Every key here is put together when the test runs: none stands in this file.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.secrets import find_secrets, masked


def _run(
    length: int, alphabet: str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
) -> str:
    return "".join(alphabet[(7 * at + at // 5) % len(alphabet)] for at in range(length))


_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_DIGITS = "1234567890"
_FENCE = "-" * 5

PLANTED = {
    "AWS access key id": ["AK" + "IA" + _run(16, _BASE32), "AS" + "IA" + _run(16, _BASE32)],
    "AWS secret access key": [
        "aws_secret_access" + "_key = " + _run(40),
        'AWS_SECRET_ACCESS_KEY="' + _run(40) + '"',
        "export AWS_SECRET_KEY=" + _run(40),
        '"SecretAccess' + 'Key": "' + _run(39) + '/"',
    ],
    "GitHub token": ["gh" + kind + "_" + _run(36) for kind in "pousr"],
    "GitHub fine-grained token": ["github" + "_pat_" + _run(22) + "_" + _run(59)],
    "GitLab token": ["gl" + "pat-" + _run(20)],
    "Slack token": [
        "xo" + "xb-" + _run(12, _DIGITS) + "-" + _run(12, _DIGITS) + "-" + _run(24),
        "xo" + "xp-1" + _run(30),
    ],
    "Slack app token": ["xa" + "pp-1-A" + _run(10) + "-" + _run(13, _DIGITS) + "-" + _run(64)],
    "Slack webhook": ["https://hooks.slack" + ".com/services/T" + _run(8) + "/B" + _run(8) + "/" + _run(24)],
    "Google API key": ["AI" + "za" + _run(35)],
    "Google OAuth client secret": ["GOC" + "SPX-" + _run(28)],
    "Google OAuth token": ["ya" + "29." + _run(60)],
    "OAuth client secret": ['"client' + '_secret": "' + _run(32) + '"', "CLIENT" + "_SECRET=" + _run(24)],
    "JSON web token": ["ey" + "J" + _run(30) + ".ey" + "J" + _run(60) + "." + _run(43)],
    "private key": [
        f"{_FENCE}BEGIN {kind}PRIVATE KEY{_FENCE}\n{_run(64)}\n{_run(64)}\n"
        for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ")
    ]
    + [
        f"{_FENCE}BEGIN PRIVATE KEY{_FENCE}\\n" + _run(64),
        f"{_FENCE}BEGIN RSA PRIVATE KEY{_FENCE}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n\n"
        + _run(64),
    ],
    "Stripe key": [kind + "k_li" + "ve_" + _run(24) for kind in "sr"],
    "Anthropic key": ["sk-" + "ant-api03-" + _run(80)],
    "OpenAI key": ["s" + "k-" + _run(48), "s" + "k-proj-" + _run(100)],
    "npm token": ["np" + "m_" + _run(36)],
    "PyPI token": ["py" + "pi-AgEIcHlwaS5vcmc" + _run(60)],
    "password in a URL": [
        "postgres://admin:" + _run(12) + "@db.internal:5432/app",
        "https://bot:" + _run(20) + "@example.org/repo.git",
        "redis://:" + _run(10) + "@127.0.0.1",
    ],
}


@pytest.mark.parametrize(
    ("kind", "key"),
    [pytest.param(kind, key, id=f"{kind} {at}") for kind in PLANTED for at, key in enumerate(PLANTED[kind])],
)
@pytest.mark.parametrize(
    "around", ["{}", "The key is {} and it works.\n", "```\nKEY={}\n```", "“{}”, (`{}`)"]
)
def test_planted_keys_are_found(kind: str, key: str, around: str) -> None:
    if kind in {"OAuth client secret", "AWS secret access key"} and "KEY=" in around:
        around = "{}"
    found = find_secrets(around.replace("{}", key))
    assert kind in {secret.kind for secret in found}
    first = next(secret for secret in found if secret.kind == kind)
    assert around.replace("{}", key)[first.start : first.end] in key + "\n"


@pytest.mark.parametrize("text", [
    "Never write the password into the repository; ask for it.",
    "The password: see the vault. The secret is that there is no secret.",
    "AWS's documentation uses " + "AKIAIOSFODNN7" + "EXAMPLE as access key id.",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
    "Tokens begin with ghp_ or github_pat_; Slack's with xoxb-.",
    "Set OPENAI_API_KEY to sk-... and ANTHROPIC_API_KEY to sk-ant-...",
    "client_secret: your_client_secret_goes_here",
    "client_secret = ${GOOGLE_CLIENT_SECRET}",
    "postgres://user:password@localhost/db is the form of the address.",
    "postgres://${USER}:${PASSWORD}@host/db, https://<user>:<token>@host",
    "http://localhost:8080/@scope/package and git@github.com:owner/name.git",
    "ssh://git@host:22/repo",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b and sha256 " + "0" * 64,
    "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n",
    "A PEM file begins with -----BEGIN PRIVATE KEY----- on a line of its own.",
    "The class is called task-management-and-other-things-that-are-long-enough",
    "pk_live_ keys are public; sk_live_ keys are not.",
    "aws secret key rotation happens every 90 days",
])  # fmt: skip
def test_prose_and_documented_examples_pass(text: str) -> None:
    assert find_secrets(text) == []


def test_several_are_told_in_reading_order_and_once() -> None:
    first, second = PLANTED["npm token"][0], PLANTED["AWS access key id"][0]
    text = f"{first} then {second}"
    assert [(found.kind, text[found.start : found.end]) for found in find_secrets(text)] == [
        ("npm token", first),
        ("AWS access key id", second),
    ]


@given(st.text(max_size=300))
def test_any_text_can_be_searched(text: str) -> None:
    for found in find_secrets(text):
        assert 0 <= found.start < found.end <= len(text)


@pytest.mark.parametrize(
    "unit",
    [
        "AKIA",
        "aws key",
        "aws",
        "secret access key",
        "secretaccesskey = ",
        "ghp_",
        "github_pat_",
        "glpat-a",
        "xoxb-",
        "xapp-1-",
        "hooks.slack.com/services/",
        "hooks.slack.com/services/aaaaaaaa/",
        "AIza",
        "GOCSPX-",
        "ya29.",
        "client_secret=",
        "client_secret = a",
        "eyJ",
        "eyJaaaaaaaaaa.",
        "eyJaaaaaaaaaa.eyJ",
        "-----BEGIN ",
        "-----BEGIN A PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n",
        "sk_live_",
        "sk-ant-",
        "sk-proj-",
        "sk-",
        "npm_",
        "pypi-",
        "://",
        "a://b:",
        "a://:",
        "a+",
        "http://a:b",
        "x://a:bbb",
        " \t",
        "-",
        "EXAMPLE ",
    ],
)
@pytest.mark.timeout(60)
def test_no_pattern_hangs_on_a_mebibyte(unit: str) -> None:
    """A pattern that backtracks over the whole text would need hours; the time limit ends it."""
    find_secrets(unit * (1_000_000 // len(unit)))


def test_a_masked_text_keeps_all_but_the_credential() -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    (kind,) = {secret.kind for secret in find_secrets(key)}
    assert masked(f"Use {key} here, not {key}.") == f"Use [{kind}] here, not [{kind}]."
    assert masked("Nothing to hide.") == "Nothing to hide."
