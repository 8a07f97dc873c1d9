"""Ranked search over a store: every word must occur in a fact's text, title, description or tags.

Words are compared as substrings after folding (case, accents, compatibility forms), so "cafe" finds "Café"
and a CJK word is found inside a sentence. The ranking is BM25 with SQLite FTS5's parameters; a hit in a
title or a tag weighs more, and of two equal hits the newer fact wins.

The facts are the truth. A cache (SQLite FTS5, trigram tokenizer) outside the repository answers fast; it is
brought up to date by each fact's digest before each query, rebuilt when it can't be read, and never needed:
where it can't be used the same ranking runs over the facts in memory. Facts that hold secrets stay out of it.
"""

from __future__ import annotations

import contextlib
import heapq
import math
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_bridge.errors import AgentBridgeError
from agent_bridge.memory.canonical import canonical
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.snapshot import Snapshot
from agent_bridge.paths import ensure_private_dir

Columns = tuple[str, str, str, str]
"""A fact's folded title, tags, description and body, in the order of `_WEIGHTS`."""

_WEIGHTS = (10.0, 8.0, 3.0, 1.0)
_K1, _B = 1.2, 0.75  # the constants of FTS5's bm25()
_MIN_IDF = 1e-6
_DIGITS = 9
_TRIGRAM = 3
_BUSY_S = 2.0
_SNIPPET_CHARACTERS = 120
_SCHEMA = 1
_TABLES = """
CREATE TABLE facts
  (rowid INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL, digest TEXT NOT NULL, stamp TEXT NOT NULL,
   length INTEGER NOT NULL);
CREATE VIRTUAL TABLE texts USING fts5(title, tags, description, body, tokenize = 'trigram');
CREATE TABLE meta (digest TEXT NOT NULL);
INSERT INTO meta VALUES ('');
"""
_MATCHING = f"""
SELECT facts.path, -bm25(texts, {", ".join(map(str, _WEIGHTS))}) AS score
FROM texts JOIN facts ON facts.rowid = texts.rowid WHERE texts MATCH ?
ORDER BY round(score, {_DIGITS}) DESC, facts.stamp DESC, facts.path LIMIT ?
"""  # noqa: S608 - the weights are constants of this module
_ADD_FACT = "INSERT INTO facts (path, digest, stamp, length) VALUES (?, ?, ?, ?)"
_ADD_TEXTS = "INSERT INTO texts (rowid, title, tags, description, body) VALUES (?, ?, ?, ?, ?)"
_WHOLE = "title || char(10) || tags || char(10) || description || char(10) || body"
_HOLDS = f"instr({_WHOLE}, ?)"
_ROWS_THAT = """
SELECT path, stamp, title, tags, description, body FROM texts JOIN facts ON facts.rowid = texts.rowid WHERE
"""
_COUNT_HOLDING = f"SELECT count(*) FROM texts WHERE {_HOLDS}"  # noqa: S608 - constants
_UNUSABLE = {1, 11, 26}  # SQLITE_ERROR (a table is missing), SQLITE_CORRUPT, SQLITE_NOTADB
_MARKS = dict.fromkeys(range(0x300, 0x370))  # accents only: Japanese voicing marks tell words apart
# NUL ends a text for FTS5, and SQLite takes no surrogates.
_BROKEN = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")

_Row = tuple[str, str, Columns]
"""A fact's path, the time of its last change, and its columns."""


@dataclass(frozen=True, slots=True)
class _Corpus:
    """What BM25 has to know of all facts: how many, their length in all, and how many hold each word."""

    count: int
    length: int
    holding: dict[str, int]


@dataclass(frozen=True, slots=True)
class Hit:
    """A fact that holds all words; a higher `score` is better, `snippet` is the line of the first word."""

    fact: Fact
    score: float
    snippet: str


@dataclass(frozen=True, slots=True)
class Search:
    """Queries with a cache in `cache_file`, whose directory is made (0700) when the first fact is cached.

    None: without a cache, for a store that nothing may be written for.
    """

    cache_file: Path | None

    def query(self, snapshot: Snapshot, words: Sequence[str], limit: int = 20) -> list[Hit]:
        """The best `limit` facts of `snapshot` that hold all of `words`; without words its first ones."""
        wanted = [word for text in words for word in fold(text).split()]
        if not wanted:
            return [Hit(fact, 0.0, _snippet(fact, "")) for fact in snapshot.facts[:limit]]
        ranked = self._ranked(snapshot, wanted, limit)
        by_path = {fact.path: fact for fact in snapshot.facts}
        return [Hit(by_path[path], score, _snippet(by_path[path], wanted[0])) for path, score in ranked]

    def _ranked(self, snapshot: Snapshot, words: Sequence[str], limit: int) -> list[tuple[str, float]]:
        if not snapshot.facts:
            return []
        secret = [fact for fact in snapshot.facts if fact.secrets]
        file = self.cache_file
        if file is not None and not any(_holds(_columns(fact), words) for fact in secret):
            with contextlib.suppress(sqlite3.Error, OSError, AgentBridgeError):
                return _from_cache(file, snapshot, words, limit)
        rows = [(fact.path, _stamp(fact), _columns(fact)) for fact in snapshot.facts]
        found = [row for row in rows if _holds(row[2], words)]
        return _rank(found, words, _count_in_memory(rows, words), limit)


def fold(text: str) -> str:
    """`text` as it is compared: lower case, without accents, in one form for each character."""
    if text.isascii() and "\0" not in text:
        return text.lower()
    bare = canonical("NFKD", text).translate(_MARKS)
    return canonical("NFC", bare.casefold()).translate(_BROKEN)


def _from_cache(
    cache_file: Path, snapshot: Snapshot, words: Sequence[str], limit: int
) -> list[tuple[str, float]]:
    try:
        return _ask(cache_file, snapshot, words, limit)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _UNUSABLE:
            raise
    for suffix in ("", "-journal"):
        cache_file.with_name(cache_file.name + suffix).unlink(missing_ok=True)
    return _ask(cache_file, snapshot, words, limit)


def _ask(cache_file: Path, snapshot: Snapshot, words: Sequence[str], limit: int) -> list[tuple[str, float]]:
    with _transaction(cache_file) as database:
        _bring_up_to_date(database, snapshot)
        if min(map(len, words)) >= _TRIGRAM:
            quoted = " AND ".join('"' + word.replace('"', '""') + '"' for word in words)
            return [(path, score) for path, score in database.execute(_MATCHING, (quoted, limit))]
        holding = database.execute(_ROWS_THAT + " AND ".join([_HOLDS] * len(words)), words)
        rows = ((path, stamp, (a, b, c, d)) for path, stamp, a, b, c, d in holding)
        return _rank(rows, words, _count_in_cache(database, words), limit)


@contextlib.contextmanager
def _transaction(cache_file: Path) -> Iterator[sqlite3.Connection]:
    """One transaction from the look at the digest to the last row, so that no other process comes between."""
    ensure_private_dir(cache_file.parent)
    with contextlib.closing(sqlite3.connect(cache_file, timeout=_BUSY_S, isolation_level=None)) as database:
        database.execute("PRAGMA secure_delete = ON")
        database.execute("BEGIN IMMEDIATE")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version == 0:
            cache_file.chmod(0o600)
            for statement in _TABLES.strip().split(";\n"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {_SCHEMA}")
        elif version != _SCHEMA:
            raise _other_schema()
        yield database
        database.execute("COMMIT")


def _other_schema() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("the cache was written by another version")
    error.sqlite_errorcode = sqlite3.SQLITE_NOTADB
    return error


def _bring_up_to_date(database: sqlite3.Connection, snapshot: Snapshot) -> None:
    if database.execute("SELECT digest FROM meta").fetchone()[0] == snapshot.digest:
        return
    known = {
        path: (rowid, digest)
        for rowid, path, digest in database.execute("SELECT rowid, path, digest FROM facts")
    }
    for fact in snapshot.facts:
        if fact.secrets:
            continue
        rowid, old = known.pop(fact.path, (None, None))
        if fact.digest == old:
            continue
        if rowid is not None:
            _forget(database, rowid)
        columns = _columns(fact)
        row = (fact.path, fact.digest, _stamp(fact), sum(map(len, columns)))
        database.execute(_ADD_TEXTS, (database.execute(_ADD_FACT, row).lastrowid, *columns))
    for rowid, _ in known.values():
        _forget(database, rowid)
    database.execute("UPDATE meta SET digest = ?", (snapshot.digest,))


def _forget(database: sqlite3.Connection, rowid: int) -> None:
    database.execute("DELETE FROM texts WHERE rowid = ?", (rowid,))
    database.execute("DELETE FROM facts WHERE rowid = ?", (rowid,))


def _count_in_memory(rows: Sequence[_Row], words: Sequence[str]) -> _Corpus:
    texts = ["\n".join(columns) for _, _, columns in rows]
    return _Corpus(
        len(rows), sum(map(len, texts)), {word: sum(word in text for text in texts) for word in words}
    )


def _count_in_cache(database: sqlite3.Connection, words: Sequence[str]) -> _Corpus:
    count, length = database.execute("SELECT count(*), total(length) FROM facts").fetchone()
    holding = {word: database.execute(_COUNT_HOLDING, (word,)).fetchone()[0] for word in words}
    return _Corpus(count, int(length), holding)


def _rank(
    found: Iterable[_Row], words: Sequence[str], corpus: _Corpus, limit: int
) -> list[tuple[str, float]]:
    """BM25 as FTS5 computes it over trigrams, for what FTS5 can't be asked: (path, score), best first."""
    idf = {
        word: max(_MIN_IDF, math.log((corpus.count - often + 0.5) / (often + 0.5)))
        for word, often in corpus.holding.items()
    }
    average = max(1.0, corpus.length / max(1, corpus.count))

    def scored(row: _Row) -> tuple[float, str, str]:
        path, stamp, columns = row
        flat = _K1 * (1 - _B + _B * sum(map(len, columns)) / average)
        score = 0.0
        for word in words:
            often = _frequency(columns, word)
            score += idf[word] * often * (_K1 + 1) / (often + flat)
        return round(score, _DIGITS), stamp, path

    in_order = sorted(found, key=lambda row: row[0])
    best = heapq.nlargest(limit, map(scored, in_order), key=lambda row: row[:2])
    return [(path, score) for score, _, path in best]


def _frequency(columns: Columns, word: str) -> float:
    in_title, in_tags, in_description, in_body = _WEIGHTS
    title, tags, description, body = columns
    return (
        in_title * title.count(word)
        + in_tags * tags.count(word)
        + in_description * description.count(word)
        + in_body * body.count(word)
    )


def _holds(columns: Columns, words: Sequence[str]) -> bool:
    return all(any(word in text for text in columns) for word in words)


def _columns(fact: Fact) -> Columns:
    return fold(fact.title), fold("\n".join(fact.tags)), fold(fact.description), fold(fact.body)


def _stamp(fact: Fact) -> str:
    return max(fact.updated_at, fact.created_at)


def _snippet(fact: Fact, word: str) -> str:
    """The first line of the body with `word` in it, else its first one; cut around the word."""
    lines = [line.strip() for line in fact.body.splitlines() if line.strip()]
    line = next((line for line in lines if word in fold(line)), lines[0] if lines else "")
    if len(line) <= _SNIPPET_CHARACTERS:
        return line
    # Folding may shift positions by a few characters; that is close enough to choose a window.
    middle = max(0, fold(line).find(word))
    start = max(0, min(middle - _SNIPPET_CHARACTERS // 3, len(line) - _SNIPPET_CHARACTERS))
    end = start + _SNIPPET_CHARACTERS
    return ("…" if start else "") + line[start:end].strip() + ("…" if end < len(line) else "")
