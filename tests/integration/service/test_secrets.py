"""Keys that somebody left in a fact are shown to no agent and get into no file that Git takes."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from .user import Served, User, serving, write, write_fact

_LETTERS = string.ascii_letters + string.digits
_UPPER = string.ascii_uppercase + "234567"


def _run(letters: str, length: int) -> str:
    return "".join(random.Random(length).choices(letters, k=length))


# Put together here, so that no file of this repository holds anything that looks like a key.
KEYS = {
    "aws": "AK" + "IA" + _run(_UPPER, 16),
    "github": "gh" + "p_" + _run(_LETTERS, 36),
    "slack": "xo" + "xb-" + f"{_run('123456789', 12)}-{_run('123456789', 12)}-{_run(_LETTERS, 24)}",
    "google": "AI" + "za" + _run(_LETTERS, 35),
    "jwt": ".".join(("ey" + "J" + _run(_LETTERS, 30), "ey" + "J" + _run(_LETTERS, 60), _run(_LETTERS, 43))),
    "pem": "\n".join(
        (
            "-----BEGIN RSA " + "PRIVATE KEY-----",
            *(_run(_LETTERS, 64) for _ in range(3)),
            "-----END RSA " + "PRIVATE KEY-----",
        )
    ),
}
HARMLESS = (
    "Passwords are rotated each May, and nobody writes a password or an API key into a ticket.",
    "The documentation's own key is " + "AK" + "IA" + "IOSFODNN7" + "EXAMPLE, it opens nothing.",
    "Tokens begin with ghp_ at GitHub and with xoxb- at Slack.",
)


def _core(key: str) -> str:
    """A line of a key that stands in no other text."""
    return max(key.splitlines(), key=len)


def _readable(user: User, root: Path) -> bytes:
    """All that agents read or Git would take."""
    places = [root / name for name in ("AGENTS.md", "CLAUDE.md", ".memory/MEMORY.md", ".memory/index.json")]
    places += [user.home / name for name in (".codex/AGENTS.md", ".claude/CLAUDE.md")]
    return b"\n".join(place.read_bytes() for place in places if place.exists())


def _staged(user: User, root: Path) -> bytes:
    user.git(root, "add", "-A")
    return user.index_texts(root)


@pytest.fixture(scope="module")
def root(shared: Served) -> Path:
    """One project for all: what was withheld stays there and has to stay withheld."""
    return shared.project("project")


@pytest.mark.parametrize("kind", sorted(KEYS))
def test_a_planted_key_reaches_nobody(shared: Served, root: Path, kind: str) -> None:
    key = KEYS[kind]
    withheld = shared.state(root)["facts"]["withheld"]
    place = write_fact(root, f"{kind}.md", f"The {kind} access of the build:\n\n{key}\n\nKeep it.")
    write_fact(root, f"beside-{kind}.md", f"An open fact beside {kind}.")
    shared.until_in(root / "AGENTS.md", f"An open fact beside {kind}.")
    shared.until(lambda: shared.state(root)["facts"]["withheld"] == withheld + 1, lambda: shared.state(root))
    assert _core(key).encode() not in _readable(shared.user, root)
    assert f"The {kind} access".encode() not in _readable(shared.user, root)
    staged = _staged(shared.user, root)
    assert _core(key).encode() not in staged
    assert place.name.encode() not in staged.split(b"\n")
    assert f"beside-{kind}.md".encode() in staged


def test_status_names_each_and_shows_none(shared: Served, root: Path) -> None:
    place = write_fact(root, "named.md", f"A token: {KEYS['github'][:-1]}Z")

    def told() -> bool:
        found = [one for one in shared.state(root)["notices"] if one["code"] == "secret"]
        return any(str(place) in one["text"] for one in found)

    shared.user.run("sync", cwd=root)
    shared.until(told, lambda: shared.state(root)["notices"])
    printed = str(shared.user.run("status", cwd=root, exit_codes=(0, 1)))
    assert KEYS["github"][:-1] not in printed


def test_in_a_file_already_tracked_status_says_what_to_do(shared: Served, names: Iterator[str]) -> None:
    files = {f".memory/{kind}.md": f"The {kind} access:\n\n{key}\n" for kind, key in KEYS.items()}
    root = shared.project(next(names), files={"AGENTS.md": "# Rules\n"} | files)
    shared.until_told(root, "secret-tracked")
    notices = [one for one in shared.state(root)["notices"] if one["code"] == "secret-tracked"]
    told = {Path(one["path"]).stem: one["text"] for one in notices}
    assert told.keys() == KEYS.keys()
    for kind, text in told.items():
        assert "Rotate" in text
        assert f"git rm --cached -- .memory/{kind}.md" in text
    printed = str(shared.user.run("status", cwd=root, exit_codes=(0, 1)))
    seen = printed.encode() + _readable(shared.user, root)
    assert [kind for kind, key in KEYS.items() if _core(key).encode() in seen] == []
    shared.user.git(root, "rm", "-q", "--cached", "--", *files)
    shared.user.run("sync", cwd=root)
    staged = _staged(shared.user, root)
    assert [kind for kind, key in KEYS.items() if _core(key).encode() in staged] == []


def test_a_key_that_comes_into_a_fact_takes_it_out(shared: Served, root: Path) -> None:
    place = write_fact(root, "later.md", "The later fact.")
    shared.until_in(root / "AGENTS.md", "The later fact.")
    place.write_text(f"The later fact.\n\n{KEYS['slack']}\n")
    shared.until_not_in(root / "AGENTS.md", "The later fact.")
    shared.until_not_in(root / ".memory/MEMORY.md", "later.md")
    place.write_text("The later fact.\n")
    shared.user.run("share", "later.md", cwd=root)
    shared.until_in(root / "AGENTS.md", "The later fact.")


def test_prose_about_passwords_and_documented_examples_pass(shared: Served, names: Iterator[str]) -> None:
    root = shared.project(next(names))
    for number, text in enumerate(HARMLESS):
        write_fact(root, f"{number}.md", text)
    shared.until_in(root / "AGENTS.md", *HARMLESS)
    shared.settle(root)
    assert shared.state(root)["facts"] == {"shared": len(HARMLESS), "private": 0, "withheld": 0}
    assert all(text.encode() in _staged(shared.user, root) for text in HARMLESS)


def test_what_was_planted_before_init_and_while_nobody_watched(user: User) -> None:
    root = user.repository("project")
    write(root / ".memory/before.md", f"Before: {KEYS['jwt']}\n")
    write(user.claude_memory(root) / "native.md", f"Native: {KEYS['aws']}\n")
    user.init(root)
    write(root / ".memory/between.md", f"Between:\n{KEYS['pem']}\n")
    with serving(user) as served:
        assert served.state(root)["facts"]["withheld"] == 3
        seen = _readable(user, root) + _staged(user, root)
        for kind in ("jwt", "aws", "pem"):
            assert _core(KEYS[kind]).encode() not in seen
