"""What a client hears of a tool that is used wrongly, refuses, fails or says too much."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import Any, cast

import pytest
from pydantic import AliasChoices, Field

from agent_bridge.errors import NotFoundError
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.running import FAILED, Counts, run_tool
from agent_bridge.mcp.tool import ANSWER_BYTES, Answer, Hints, Parameters, Tool


class Told(Parameters):
    text: str = Field(validation_alias=AliasChoices("text", "content"), max_length=20)
    times: int = Field(1, ge=1)


async def echo(_call: Call, told: Told) -> Answer:
    match told.text:
        case "refuse":
            raise NotFoundError("There is no such fact", remedy="Look with recall.")
        case "fail":
            raise KeyError("a secret of ours")
        case "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/\nwhere")
        case "odd":
            raise OSError("nothing is said")
        case "long":
            return Answer("é" * ANSWER_BYTES)
        case "huge":
            return Answer("x", {"rows": ["y" * ANSWER_BYTES] * 4})
    return Answer(told.text * told.times, {"text": told.text})


ECHO = Tool("echo", "Echo", "Says it again.", Told, {"type": "object"}, Hints(), echo)


def ran(counts: Counts | None = None, **arguments: object) -> Answer:
    call = cast("Call", None)  # echo doesn't look at it
    return asyncio.run(run_tool(ECHO, call, arguments, counts or Counts()))


def test_it_answers_by_any_name_of_a_parameter() -> None:
    assert ran(text="a", times=2) == Answer("aa", {"text": "a"})
    assert ran(content="b").text == "b"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "text is missing"),
        ({"text": "a", "nope": 1}, "nope isn't known"),
        ({"text": "a", "times": 0}, "times: Input should be greater than or equal to 1"),
        ({"text": "secretsecretsecretsecret"}, "at most 20 characters"),
    ],
)
def test_wrong_parameters_are_told_with_those_there_are(arguments: dict[str, Any], told: str) -> None:
    counts = Counts()
    answer = ran(counts, **arguments)
    assert answer.is_error
    assert told in answer.text
    assert answer.text.endswith("It has these: text, times.")
    assert "secretsecret" not in answer.text
    assert (counts.calls, counts.errors) == (1, 0)


def test_a_refusal_is_one_sentence() -> None:
    assert ran(text="refuse") == Answer("There is no such fact. Look with recall.", is_error=True)


def test_a_fault_of_ours_is_counted_and_its_inside_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    counts = Counts()
    assert ran(counts, text="fail") == Answer(FAILED, is_error=True)
    assert (counts.errors, counts.last_error) == (1, "The tool echo failed: KeyError.")
    assert "a secret of ours" in capsys.readouterr().err


def test_what_the_system_refuses_is_told_as_it_is() -> None:
    counts = Counts()
    answer = ran(counts, text="full")
    assert answer.is_error
    assert answer.text.startswith("The system refused it: No space left on device: /some/ where.")
    assert counts.errors == 1
    assert "No space left" in str(counts.last_error)
    assert ran(counts, text="odd").text == FAILED


def test_a_text_that_is_too_long_is_cut_between_characters() -> None:
    text = ran(text="long").text
    assert len(text.encode()) <= ANSWER_BYTES
    assert text.endswith("é\n[The answer is cut here.]")


def test_data_that_is_far_too_large_is_not_sent() -> None:
    answer = ran(text="huge")
    assert answer.is_error
    assert "too large" in answer.text
    assert answer.data == {}
