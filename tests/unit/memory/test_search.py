"""Folding, ranking and snippets: what counts as found, and what comes first."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.memory.fact import Fact, parse_fact
from agent_bridge.memory.search import Search, fold
from agent_bridge.memory.snapshot import Snapshot


def fact(path: str, text: str) -> Fact:
    return parse_fact(path, text.encode())


def snapshot(*facts: Fact) -> Snapshot:
    return Snapshot(facts=facts, digest="|".join(f"{one.path} {one.digest}" for one in facts))


def found(tmp_path: Path, facts: list[Fact], *words: str) -> list[str]:
    return [hit.fact.path for hit in Search(tmp_path / "cache.sqlite").query(snapshot(*facts), words)]


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café", "cafe"),
        ("CAFE\u0301", "cafe"),
        ("Straße", "strasse"),
        ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
        ("ﬁle", "file"),
        ("İstanbul", "istanbul"),
        ("ガ", "ガ"),
        ("각", "각"),
        ("a\0b", "a\ufffdb"),
        ("a\udcffb", "a\ufffdb"),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text())
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "words", "is_found"),
    [
        ("Deploy with make release", ["release", "deploy"], True),
        ("Deploy with make release", ["DEPLOY", "ploy"], True),
        ("Deploy with make release", ["deploy", "database"], False),
        ("Deploy with make release", ["deploy with"], True),
        ("Deploy with make release", ["with deploy"], True),
        ("We meet in the café", ["cafe"], True),
        ("We meet in the cafe", ["Café"], True),
        ("本番環境へのデプロイ手順", ["デプロイ"], True),
        ("本番環境へのデプロイ手順", ["環境", "手順"], True),
        ("本番環境へのデプロイ手順", ["境"], True),
        ("本番環境へのデプロイ手順", ["テプロイ"], False),
        ("plan B is C", ["b", "c"], True),
        ("plan B is C", ["d"], False),
        ('say "hello" OR NOT', ['"hello"'], True),
        ("say hello", ['"hello"'], False),
        ("say hello", ["hel*"], False),
        ("say hello", ["title:hello"], False),
        ("say hello", ["hello OR nothing"], False),
        ("say hello", ['hello" OR "say'], False),
        ("say hello", ["NEAR(say"], False),
        ("100% of $HOME; (a+b)^c", ["100%", "$home;", "(a+b)^c"], True),
        ("nul is no end", ["no\0end"], False),
        ("odd bytes", ["odd\udcff"], False),
    ],
)
def test_all_words_must_occur(tmp_path: Path, text: str, words: list[str], is_found: bool) -> None:
    assert found(tmp_path, [fact("one.md", text)], *words) == (["one.md"] if is_found else [])


@pytest.mark.parametrize("words", [["harbour"], ["ha"]], ids=["from the index", "word by word"])
class TestOrder:
    """The same order by FTS5 and by our own ranking of words that it can't look up."""

    def test_title_then_tag_then_text(self, tmp_path: Path, words: list[str]) -> None:
        filler = [fact(f"filler{number}.md", f"Nothing of it {number}") for number in range(9)]
        facts = [
            fact("text.md", "# Ships\n\nThey lie in the harbour."),
            fact("tag.md", "---\ntags: [harbour]\n---\n# Boats\n\nThey are on the sea now."),
            fact("title.md", "# Harbour\n\nThe ships are elsewhere."),
        ]
        assert found(tmp_path, [*facts, *filler], *words) == ["title.md", "tag.md", "text.md"]

    def test_of_equal_hits_the_newer(self, tmp_path: Path, words: list[str]) -> None:
        facts = [
            fact(f"day{day}.md", f"---\ncreated_at: 2026-01-0{day}T00:00:00Z\n---\nA harbour.")
            for day in (1, 3, 2)
        ]
        assert found(tmp_path, facts, *words) == ["day3.md", "day2.md", "day1.md"]

    def test_a_short_text_before_a_long_one(self, tmp_path: Path, words: list[str]) -> None:
        filler = [fact(f"filler{number}.md", f"Nothing of it {number}") for number in range(9)]
        facts = [
            fact("long.md", "---\nname: x\n---\nA harbour. " + "Much more text. " * 40),
            fact("short.md", "---\nname: x\n---\nA harbour."),
        ]
        assert found(tmp_path, [*facts, *filler], *words) == ["short.md", "long.md"]

    def test_limit(self, tmp_path: Path, words: list[str]) -> None:
        facts = [fact(f"{number}.md", f"harbour {number}") for number in range(9)]
        hits = Search(tmp_path / "cache.sqlite").query(snapshot(*facts), words, limit=4)
        assert len(hits) == 4


def test_without_words_the_first_facts(tmp_path: Path) -> None:
    assert found(tmp_path, [fact("b.md", "b"), fact("a.md", "a")], " ") == ["b.md", "a.md"]


def test_snippet_is_the_line_of_the_word(tmp_path: Path) -> None:
    one = fact("one.md", "# Title\n\nFirst line.\n  The Harbour is north.\nLast line.")
    (hit,) = Search(tmp_path / "cache.sqlite").query(snapshot(one), ["harbour"])
    assert hit.snippet == "The Harbour is north."


def test_snippet_of_a_long_line_holds_the_word(tmp_path: Path) -> None:
    one = fact("one.md", "word " * 200 + "harbour " + "word " * 200)
    (hit,) = Search(tmp_path / "cache.sqlite").query(snapshot(one), ["harbour"])
    assert "harbour" in hit.snippet
    assert len(hit.snippet) <= 122


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=5), st.data())
def test_any_piece_of_a_text_finds_it(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    facts = [
        Fact(path=f"{number}.md", id=str(number), title="", hook="", body=text, digest=text)
        for number, text in enumerate(texts)
        if not any(0xD800 <= ord(character) < 0xE000 for character in text)
    ]
    for one in facts:
        start = data.draw(st.integers(0, len(one.body) - 1))
        piece = one.body[start : start + data.draw(st.integers(1, 8))]
        hits = found(tmp_path_factory.mktemp("search"), facts, piece)
        expected = [
            other.path for other in facts if all(word in fold(other.body) for word in fold(piece).split())
        ]
        assert sorted(hits) == sorted(expected)
