"""Does a message want an answer, where its sender didn't say? Pure.

A message wants one unless its text holds a phrase that says no, in English or Spanish; a question mark
outweighs any phrase, since "FYI, it failed again. Can you look?" is a question.
"""

from __future__ import annotations

import re
import unicodedata

from agent_bridge.channel.model import Draft, Kind

NAMELESS_SENDER = "unknown"
"""The `fromAgentId` of a sender that gave none."""

_READ = 32_768
_ASKS_BY_KIND = frozenset((Kind.CHAT, Kind.TASK_REQUEST))
_APOSTROPHES = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u00b4\u0060\uff07"), "'")
_QUESTION_MARKS = re.compile("[?\u00bf\u061f]")
_ADDRESS = re.compile(r"://\S+")
_NO_ANSWER = re.compile(
    r"""\b(?:
      no\ (?:hace\ falta|necesito|requier[oe]|respondas|responder|respuesta|contestes|contestar
            |hay\ que\ (?:responder|contestar)
            |reply
            |response\ (?:needed|required))
    | sin\ respuesta
    | solo\ (?:informo|informativo|informacion|para\ informar)
    | f\.?y\.?i
    | just\ (?:info|letting\ you\ know)
    | for\ your\ info(?:rmation)?
    | informational\ only
    | (?:no|don'?t)\ need\ to\ (?:reply|respond|answer)
    )\b""",
    re.VERBOSE,
)


def fill(draft: Draft) -> bool:
    """Whether the message wants an answer: what its sender said; else what the text of a `chat` or
    `task_request` implies, if it is known who sent it; else no.

    An answer (`replyTo`) wants one only where it asks: two programs that answer everything would go on for
    ever.
    """
    if draft.expects_response is not None:
        return draft.expects_response
    named = draft.from_agent_id != NAMELESS_SENDER or bool(draft.from_agent_name)
    if not named or draft.kind not in _ASKS_BY_KIND:
        return False
    return infer(draft.content) if draft.reply_to is None else asks(draft.content)


def infer(text: str) -> bool:
    """Whether the text wants an answer. Of a long text the first and the last 32,768 characters are read."""
    plain = _plain(_ends(text))
    return _NO_ANSWER.search(plain) is None or _has_question(plain)


def asks(text: str) -> bool:
    """Whether a question mark stands in the text, outside of addresses; read as by `infer`."""
    return _has_question(_plain(_ends(text)))


def _ends(text: str) -> str:
    return text if len(text) <= 2 * _READ else f"{text[:_READ]} {text[-_READ:]}"


def _plain(text: str) -> str:
    """Lower case, without accents, apostrophes straight, every run of white space one blank."""
    if not text.isascii():
        # One by one: to normalise a run of accents takes time by the square of its length.
        letters = "".join(unicodedata.normalize("NFKD", letter) for letter in text.translate(_APOSTROPHES))
        text = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(text.lower().replace("`", "'").split())


def _has_question(plain: str) -> bool:
    """Whether a question mark stands there that isn't merely the `?` inside of an address."""
    return _QUESTION_MARKS.search(_ADDRESS.sub(_end_of_address, plain)) is not None


def _end_of_address(address: re.Match[str]) -> str:
    return "?" if address[0].endswith("?") else ""
