"""The README, taken apart: its marked tables, so that tests can hold it to the truth."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


def rows(name: str) -> list[list[str]]:
    """The cells of the table between `<!-- name -->` and `<!-- /name -->`, without its head."""
    _, _, rest = TEXT.partition(f"<!-- {name} -->\n")
    table, end, _ = rest.partition(f"<!-- /{name} -->")
    assert end, f"the README has no table {name!r}"
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def codes(text: str) -> list[str]:
    """What stands in backquotes."""
    return _CODE.findall(text)


def first_codes(name: str) -> list[str]:
    """What stands in backquotes in the first column of a table."""
    return [code for row in rows(name) for code in codes(row[0])]
