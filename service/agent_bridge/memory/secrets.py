"""Find credentials in a text, so that they never reach a prompt or a repository. Pure.

Only shapes that their issuers document are looked for; prose about passwords passes, and so do the
example keys of AWS's documentation. Each pattern is a fixed prefix and a run of one character class,
or stops at a line's end: none can backtrack over more than it has just read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

RULES_VERSION = 1
"""Raise it when a rule changes: what is remembered about texts is then looked at again."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A credential in a text: what kind, and the characters from `start` up to `end`."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    hints: tuple[str, ...]  # one of them stands in every match: a cheap test before the pattern runs
    pattern: re.Pattern[str]


def _rule(kind: str, hints: tuple[str, ...], pattern: str, flags: int = 0) -> _Rule:
    return _Rule(kind, hints, re.compile(pattern, flags))


_HEAD = r"(?<![A-Za-z0-9])"
_TAIL = r"(?![A-Za-z0-9])"

_RULES = (
    _rule(
        "AWS access key id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _HEAD + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}" + _TAIL,
    ),
    _rule(
        "AWS secret access key",
        ("aws", "secret"),
        r"(?:aws.{0,24}(?:key|secret)|secret.?access.?key)[\"'`]{0,2}"
        r"[ \t]{0,4}(?:[:=]{1,2}>?|\bis\b)[ \t]{0,4}[\"'`]{0,2}"
        r"(?P<value>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        re.IGNORECASE,
    ),
    _rule("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _HEAD + r"gh[pousr]_[A-Za-z0-9]{36,255}"),
    _rule("GitHub fine-grained token", ("github_pat_",), r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    _rule("GitLab token", ("glpat-",), _HEAD + r"glpat-[A-Za-z0-9_-]{20,64}"),
    _rule("Slack token", ("xox",), _HEAD + r"xox[abeoprs]-(?:[0-9]-)?[A-Za-z0-9-]{10,250}"),
    _rule("Slack app token", ("xapp-",), _HEAD + r"xapp-[0-9]-[A-Za-z0-9-]{20,250}"),
    _rule(
        "Slack webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9]{6,20}/[A-Za-z0-9]{6,24}/[A-Za-z0-9]{16,64}",
    ),
    _rule("Google API key", ("AIza",), _HEAD + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    _rule("Google OAuth client secret", ("GOCSPX-",), _HEAD + r"GOCSPX-[A-Za-z0-9_-]{28}"),
    _rule("Google OAuth token", ("ya29.",), _HEAD + r"ya29\.[A-Za-z0-9_-]{20,2048}"),
    _rule(
        "OAuth client secret",
        ("client_secret", "clientsecret", "client-secret"),
        r"client[_-]?secret[\"'`]{0,2}[ \t]{0,4}[:=][ \t]{0,4}[\"'`]{0,2}(?P<value>[A-Za-z0-9_~.-]{20,200})",
        re.IGNORECASE,
    ),
    _rule(
        "JSON web token",
        ("eyJ",),
        _HEAD + r"eyJ[A-Za-z0-9_-]{10,8192}\.eyJ[A-Za-z0-9_-]{10,8192}\.[A-Za-z0-9_-]{16,2048}",
    ),
    _rule(
        "private key",
        ("PRIVATE KEY",),
        r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[\s\"'`+,>|*]|\\[nr]){0,12}"
        r"(?:(?:Proc-Type|DEK-Info|Version|Comment)[^\n]{0,120}\s{1,12}){0,4}[A-Za-z0-9+/=]{20}",
    ),
    _rule("Stripe key", ("k_live_",), _HEAD + r"[sr]k_live_[A-Za-z0-9]{16,255}"),
    _rule("Anthropic key", ("sk-ant-",), _HEAD + r"sk-ant-[A-Za-z0-9_-]{24,256}"),
    _rule(
        "OpenAI key",
        ("sk-",),
        _HEAD + r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{32,256}|[A-Za-z0-9]{32,64}" + _TAIL + ")",
    ),
    _rule("npm token", ("npm_",), _HEAD + r"npm_[A-Za-z0-9]{36}" + _TAIL),
    _rule("PyPI token", ("pypi-",), _HEAD + r"pypi-[A-Za-z0-9_-]{50,512}"),
    _rule(
        "password in a URL",
        ("://",),
        r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@?#<>{}$*\[\]\"'`]{0,128}:"
        r"(?P<value>[^\s/@?#<>{}$*\[\]\"'`]{3,256})@[A-Za-z0-9\[]",
    ),
)

_PLACEHOLDERS = frozenset(
    {
        "password",
        "passwd",
        "pass",
        "pwd",
        "secret",
        "token",
        "changeme",
        "example",
        "your_password",
        "your-password",
    }
)


def masked(text: str) -> str:
    """The text with each credential replaced by its kind in brackets."""
    parts: list[str] = []
    end = 0
    for secret in find_secrets(text):
        parts += [text[end : secret.start], f"[{secret.kind}]"]
        end = secret.end
    return "".join([*parts, text[end:]])


def find_secrets(text: str) -> list[Secret]:
    """The credentials in a text, in reading order; one that lies within another is not told twice."""
    lowered = text.lower()
    found = []
    for rule in _RULES:
        if not any(hint.lower() in lowered for hint in rule.hints):
            continue
        for match in rule.pattern.finditer(text):
            value = match["value"] if "value" in rule.pattern.groupindex else match[0]
            if not _harmless(rule.kind, value):
                found.append(Secret(rule.kind, match.start(), match.end()))
    found.sort(key=lambda secret: (secret.start, -secret.end))
    kept: list[Secret] = []
    for secret in found:
        if not kept or secret.end > kept[-1].end:
            kept.append(secret)
    return kept


def _harmless(kind: str, value: str) -> bool:
    """Documentation's own examples, and words that stand where a secret would."""
    if kind.startswith("AWS"):
        return "EXAMPLE" in value
    if kind in {"password in a URL", "OAuth client secret"}:
        plain = value.lower().strip("._-~")
        return (
            plain in _PLACEHOLDERS
            or len(set(plain)) <= 2
            or plain.startswith(("your", "example", "placeholder"))
        )
    return False
