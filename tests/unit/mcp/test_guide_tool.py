"""The guide as an agent calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
from pydantic import ValidationError

from agent_bridge.mcp.call import Call
from agent_bridge.mcp.guide import PAGES, Topic, guide
from agent_bridge.mcp.tool import Answer
from agent_bridge.mcp.tools import all_tools

GUIDE = all_tools()[-1]


def _answer(**arguments: str) -> Answer:
    wanted = GUIDE.parameters.model_validate(arguments)
    run = cast("Callable[[Call | None, Any], Coroutine[Any, Any, Answer]]", GUIDE.run)
    return asyncio.run(run(None, wanted))


@pytest.mark.parametrize("topic", PAGES)
def test_one_page(topic: str) -> None:
    answer = _answer(topic=topic)

    assert answer.text == guide(cast("Topic", topic), all_tools())
    assert answer.data == {"topic": topic, "text": answer.text}
    assert not answer.is_error


def test_all_of_it_lists_all_tools_and_itself() -> None:
    answer = _answer()

    assert answer.data["topic"] == "all"
    assert [tool.name for tool in all_tools() if f"\n- `{tool.name}`: " not in answer.text] == []


@pytest.mark.parametrize("arguments", [{"topic": "cooking"}, {"topic": "../instructions"}, {"page": "send"}])
def test_what_there_is_not(arguments: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        GUIDE.parameters.model_validate(arguments)
