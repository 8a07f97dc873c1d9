"""A call that is sent again, as the service ended before its answer: it is neither done twice nor refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from integration.mcp.brain.conftest import Shim

TEXT = "The gate opens at six."


def test_what_is_named_in_the_hello_was_asked_before(connect: Callable[..., Shim], project: Path) -> None:
    first = connect()
    first.begin()
    fact = _fact(first.call("remember", text=TEXT), "Remembered: ")
    first.close()

    again = connect(replayed=["2"])  # `initialize` is 1
    again.begin()
    assert _fact(again.call("remember", text=TEXT), "Remembered: ") == fact
    assert _fact(again.call("remember", text=TEXT), "This is remembered already") == fact  # 3: a new one
    again.call("forget", id=fact)
    again.close()

    late = connect(replayed=["2"])
    late.begin()
    assert not late.call("forget", id=fact)["isError"]
    assert late.call("forget", id=fact)["isError"]
    assert list((project / ".memory" / "entries").glob("*.md")) == []


def _fact(result: dict[str, Any], begins: str) -> str:
    text: str = result["content"][0]["text"]
    assert text.startswith(begins), json.dumps(result)
    return text.partition("[")[2].partition("]")[0]
