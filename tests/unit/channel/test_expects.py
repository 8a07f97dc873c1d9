"""Who wants an answer: the phrases, the question mark that outweighs them, and texts made to be slow."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.expects import fill, infer
from agent_bridge.channel.model import Draft, Kind

NO_ANSWER = [
    "No hace falta que respondas.",
    "no necesito nada más",
    "No requiero respuesta",
    "Esto no requiere acción",
    "no respondas",
    "no responder",
    "no respuesta",
    "Sin respuesta, gracias",
    "Solo informo: el build está listo",
    "Sólo informo",
    "so\u0301lo informativo",
    "SÓLO INFORMACIÓN",
    "Solo para informar: terminé",
    "No contestes a esto",
    "No hay que responder",
    "no hay que contestar",
    "No reply please",
    "no response needed",
    "No response required.",
    "FYI the build is green",
    "F.Y.I. the build is green",
    "f.y.i",
    "fy.i: done",
    "(fyi)",
    "just fyi",
    "Just info: merged",
    "Just letting you know that it is merged",
    "For your information, merged",
    "for your info",
    "Informational only",
    "No need to reply",
    "no need to respond",
    "no need to answer",
    "You don't need to reply",
    "You don\u2019t need to answer",
    "you don\u02bct need to respond",
    "you don`t need to respond",
    "dont need to respond",
    "No\n  need\tto\u00a0reply",
    "ＦＹＩ: full width",
]
ANSWER = [
    "Hola",
    "Ping.",
    "",
    "El build está listo",
    "Necesito que revises el build",
    "What is the port?",
    "Please check the migration",
    "The fyiserver is down",
    "notfyi",
    "just letting you in",
    "sin respuestas",
    "Casino respondas",
    "no replying agents were found",
    "piano reply",
    "The information is here",
    "solo informe",
    "no answer came from the server",
]


@pytest.mark.parametrize("text", NO_ANSWER)
def test_phrases_that_say_no(text: str) -> None:
    assert not infer(text)
    assert not infer(f"Hello. {text} Bye.")


@pytest.mark.parametrize("text", ANSWER)
def test_everything_else_wants_an_answer(text: str) -> None:
    assert infer(text)


@pytest.mark.parametrize("mark", ["?", "？", "¿", "؟", "⁇"])
@pytest.mark.parametrize("text", NO_ANSWER)
def test_a_question_mark_outweighs_them(text: str, mark: str) -> None:
    assert infer(f"{text} Y entonces{mark}")
    assert infer(f"{mark} {text}")


@pytest.mark.parametrize(("text", "wants"), [
    ("el build no requiere cambios, ¿lo revisas?", True),
    ("FYI it failed again, can you check?", True),
    ("FYI: https://ci.example/run?id=7", False),
    ("FYI https://ci.example/run?id=7 is red. Fix it?", True),
    ("FYI did you see https://ci.example/run?", True),
    ("FYI ://", False),
])  # fmt: skip
def test_questions_and_addresses(text: str, wants: bool) -> None:
    assert infer(text) is wants


@pytest.mark.parametrize(("fields", "wants"), [
    ({}, True),
    ({"kind": Kind.TASK_REQUEST}, True),
    ({"content": "FYI"}, False),
    ({"content": "FYI", "expects_response": True}, True),
    ({"expects_response": False}, False),
    ({"kind": Kind.TASK_RESULT}, False),
    ({"kind": Kind.ERROR}, False),
    ({"kind": Kind.ACK}, False),
    ({"kind": Kind.PRESENCE}, False),
    ({"kind": Kind.TASK_RESULT, "expects_response": True}, True),
    ({"reply_to": "m"}, False),
    ({"reply_to": "m", "content": "Done. Next?"}, True),
    ({"reply_to": "m", "content": "See http://h/?q"}, False),
    ({"reply_to": "m", "expects_response": True}, True),
    ({"from_agent_id": "unknown"}, False),
    ({"from_agent_id": "unknown", "from_agent_name": "CI"}, True),
    ({"from_agent_id": "unknown", "expects_response": True}, True),
])  # fmt: skip
def test_what_is_filled_in(fields: dict[str, object], wants: bool) -> None:
    values = {"identity": "x", "from_agent_id": "a", "kind": Kind.CHAT, "content": "Hola"} | fields
    assert fill(Draft(**values)) is wants  # type: ignore[arg-type]


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    assert infer(text) in (True, False)
    assert infer(f"{text} ?")


@pytest.mark.parametrize("part", [
    "no ", "no" + " " * 999, "f.y.", "don't need to ", "://", "?://", "just letting you ", "é", "\ufdfa",
    "\u0301", "\u0301\u0316", "\u0345" * 32_000 + "\u0316" * 32_000, "\u0f73",
    "no hay que ", "for your ", "\n", "\ud800",
])  # fmt: skip
def test_eight_megabytes_of_anything_take_no_time(part: str) -> None:
    text = part * (8_000_000 // len(part))
    started = time.process_time()
    infer(text)
    infer(f"FYI {text} FYI")
    assert time.process_time() - started < 2


def test_the_ends_of_a_long_text_count() -> None:
    filler = "log line\n" * 100_000
    assert infer(filler)
    assert not infer(f"FYI {filler}")
    assert not infer(f"{filler} No reply needed.")
    assert infer(f"FYI {filler} Can you look?")
