"""Writing to a store: add, edit, remove, share, take over; nobody's bytes are lost on the way."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_bridge.errors import DuplicateError, NotFoundError, RefusedError, UsageError
from agent_bridge.memory.fact import EmptyFact, FactProblem
from agent_bridge.memory.store import Store

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
TOKEN = "np" + "m_" + "a1B2" * 9


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "project" / ".memory", state=tmp_path / "state")


def test_the_first_fact_makes_the_store(store: Store) -> None:
    fact = store.add("Use port 5000.", tags=["net", " net ", "", "a, b"], now=NOW).fact
    assert fact.path == f"entries/{fact.id}.md"
    assert fact.id.startswith("20260304-0001-use-port-5000-")
    assert (fact.tags, fact.source, fact.created_at) == (("net", "a, b"), "cli", "2026-03-04T05:06:07.000Z")
    assert (store.root / fact.path).stat().st_mode & 0o777 == 0o644
    assert sorted(path.name for path in store.root.iterdir()) == [".gitignore", "entries"]
    assert (store.root / ".gitignore").read_text() == "MEMORY.md\nindex.json\n"
    assert [path.name for path in (store.root / "entries").iterdir()] == [f"{fact.id}.md"]


def test_a_gitignore_of_the_users_is_only_added_to(store: Store) -> None:
    store.root.mkdir(parents=True)
    (store.root / ".gitignore").write_bytes(b"# mine\r\nindex.json")
    store.create()
    assert (store.root / ".gitignore").read_bytes() == b"# mine\r\nindex.json\nMEMORY.md\n"
    store.create()
    assert (store.root / ".gitignore").read_bytes() == b"# mine\r\nindex.json\nMEMORY.md\n"


def test_numbers_go_up_from_the_highest_of_the_day(store: Store) -> None:
    first = store.add("One.", now=NOW).fact
    second = store.add("Two.", now=NOW).fact
    store.remove(first.id)
    third = store.add("Three.", now=NOW).fact
    assert [fact.id[:13] for fact in (first, second, third)] == [
        "20260304-0001",
        "20260304-0002",
        "20260304-0003",
    ]
    (store.root / "entries" / "20260304-0041-broken-xxxx.md").write_bytes(b"\xff\xff")
    assert store.add("Four.", now=NOW).fact.id.startswith("20260304-0042-")
    assert store.add("Five.", now=NOW.replace(day=5)).fact.id.startswith("20260305-0001-")


@pytest.mark.parametrize("twin", ["Use port 5000.", "  Use port\n5000.\r\n", "\ufeffUse port 5000."])
def test_the_same_text_is_refused_with_the_id(store: Store, twin: str) -> None:
    fact = store.add("Use port 5000.").fact
    with pytest.raises(DuplicateError) as caught:
        store.add(twin)
    assert caught.value.fact_id == fact.id
    assert len(store.scan().facts) == 1


def test_similar_texts_are_told(store: Store) -> None:
    first = store.add("use port 4999").fact
    (similar,) = store.add("use port 5000").similar
    assert (similar.fact.id, similar.score) == (first.id, 0.5)
    assert "4999" in similar.why


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "x" * 1_100_000])
def test_what_cannot_be_remembered_is_refused_and_creates_nothing(store: Store, text: str) -> None:
    with pytest.raises(UsageError):
        store.add(text)
    assert not store.root.exists()


def test_hostile_text_is_one_fact(store: Store) -> None:
    text = "---\nprivate: false\nid: other\n---\n<!-- agent-bridge:memory:end -->\n# Heading\n\n---\nend"
    fact = store.add(text, private=True, title="a: [b]\n# c").fact
    (read,) = Store(store.root, state=store.state).scan().facts
    assert (read.body, read.id, read.private) == (text, fact.id, True)


def test_a_fact_is_found_by_id_path_or_beginning(store: Store) -> None:
    fact = store.add("One.", now=NOW).fact
    store.add("Two.", now=NOW)
    for key in (fact.id, fact.path, fact.path.removesuffix(".md"), "20260304-0001"):
        assert store.find(key).id == fact.id
    with pytest.raises(UsageError, match="Several"):
        store.find("20260304")
    for key in ("nothing", "", "202"):
        with pytest.raises(NotFoundError):
            store.find(key)


def test_an_edit_keeps_everything_but_the_text(store: Store) -> None:
    store.create()
    path = store.root / "native.md"
    path.write_bytes(
        b"---\r\nname: n # why\r\nodd: {a: 1}\r\nmetadata: \r\n  node_type: memory\r\n  type: user\r\n---\r\n"
        b"\r\nOld.\r\n"
    )
    path.chmod(0o600)
    fact = store.edit("native", "New\nlines.", now=NOW)
    assert path.read_bytes() == (
        b"---\r\nname: n # why\r\nodd: {a: 1}\r\nmetadata: \r\n  node_type: memory\r\n  type: user\r\n"
        b"  updated_at: 2026-03-04T05:06:07.000Z\r\n---\r\n\r\nNew\r\nlines.\r\n"
    )
    assert path.stat().st_mode & 0o777 == 0o600
    assert (fact.body, fact.private, fact.updated_at) == ("New\nlines.", True, "2026-03-04T05:06:07.000Z")


def test_an_edit_to_another_facts_text_is_refused(store: Store) -> None:
    one, other = store.add("One.").fact, store.add("Other.").fact
    before = (store.root / one.path).read_bytes()
    with pytest.raises(DuplicateError) as caught:
        store.edit(one.id, "Other.")
    assert caught.value.fact_id == other.id
    with pytest.raises(UsageError):
        store.edit(one.id, "")
    assert (store.root / one.path).read_bytes() == before


def test_a_fact_that_was_replaced_by_a_way_out_is_not_written(store: Store, tmp_path: Path) -> None:
    fact = store.add("One.").fact
    outside = tmp_path / "outside.md"
    outside.write_text("Theirs.")
    store.scan()
    (store.root / fact.path).unlink()
    (store.root / fact.path).symlink_to(outside)
    with pytest.raises(NotFoundError):
        store.edit(fact.id, "New.")
    with pytest.raises(NotFoundError):
        store.remove(fact.id)
    assert outside.read_text() == "Theirs."


def test_an_entries_directory_that_leads_out_is_refused(store: Store, tmp_path: Path) -> None:
    store.root.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (store.root / "entries").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError):
        store.add("One.")
    assert list((tmp_path / "elsewhere").iterdir()) == []


# --- shared and private


def test_private_sticks_when_the_file_loses_its_mark(store: Store) -> None:
    fact = store.add("I live by the sea.", private=True).fact
    path = store.root / fact.path
    path.write_text("I live in the hills.\n")  # mark, id and text gone: the path holds
    (found,) = store.scan().private
    assert (found.body, store.scan().shared) == ("I live in the hills.", ())
    path.rename(store.root / "moved.md")  # now the path goes too: the text holds
    assert [one.path for one in Store(store.root, state=store.state).scan().private] == ["moved.md"]


def test_share_and_unshare(store: Store) -> None:
    fact = store.add("I live by the sea.", private=True, type="user").fact
    shared = store.share(fact.id)
    assert not shared.private
    assert "private: false" in (store.root / fact.path).read_text()
    for reader in (store, Store(store.root, state=store.state)):
        assert [one.id for one in reader.scan().shared] == [fact.id]
    store.unshare(fact.id)
    for reader in (store, Store(store.root, state=store.state)):
        assert [one.id for one in reader.scan().private] == [fact.id]


def test_sharing_what_only_the_record_holds_back_leaves_the_file(store: Store) -> None:
    fact = store.add("Text.", private=True).fact
    (store.root / fact.path).write_text("Text.\n")
    assert store.scan().shared == ()
    store.share(fact.path)
    assert (store.root / fact.path).read_text() == "Text.\n"
    assert [one.path for one in store.scan().shared] == [fact.path]


def test_a_text_that_is_private_elsewhere_is_not_shared(store: Store) -> None:
    store.create()
    (store.root / "a.md").write_text("---\nprivate: true\n---\nSame.")
    (store.root / "b.md").write_text("Same.")
    assert store.scan().shared == ()
    for key in ("a", "b"):
        with pytest.raises(RefusedError, match="another fact"):
            store.share(key)
    store.remove("a")
    assert store.share("b").path == "b.md"
    assert [fact.path for fact in store.scan().shared] == ["b.md"]


def test_another_process_judgement_counts_at_once(store: Store) -> None:
    fact = store.add("Text.").fact
    other = Store(store.root, state=store.state)
    assert [one.id for one in other.scan().shared] == [fact.id]
    store.unshare(fact.id)
    assert [one.id for one in other.scan().private] == [fact.id]


def test_a_secret_goes_nowhere_and_stays_private_when_it_is_gone(store: Store) -> None:
    fact = store.add(f"The token is {TOKEN}.").fact
    assert (fact.private, fact.secrets) == (True, ("npm token",))
    found = store.scan()
    assert ([one.id for one in found.withheld], found.shared, found.private) == ([fact.id], (), ())
    with pytest.raises(RefusedError, match="npm token"):
        store.share(fact.id)
    store.edit(fact.id, "The token is in the vault.")
    assert [one.id for one in store.scan().private] == [fact.id]
    store.share(fact.id)
    assert [one.id for one in store.scan().shared] == [fact.id]


def test_a_broken_record_shares_nothing_and_says_so(store: Store) -> None:
    store.add("Text.")
    (store.state / "privacy.json").write_text("{")
    found = store.scan()
    assert found.shared == ()
    assert any("record of private facts" in problem.reason for problem in found.problems)


def test_a_record_that_cannot_be_written_is_told_and_written_later(store: Store) -> None:
    store.create()
    (store.root / "a.md").write_text("---\nprivate: true\n---\nText.")
    store.state.mkdir(exist_ok=True)
    (store.state / "privacy.lock").mkdir()  # nobody can lock it
    for _ in range(2):
        found = store.scan()
        assert [fact.path for fact in found.private] == ["a.md"]
        assert any("can't be written" in problem.reason for problem in found.problems)
    (store.root / "a.md").write_text("Text.")
    assert store.scan().shared == ()
    (store.state / "privacy.lock").rmdir()
    assert store.scan().problems == ()
    assert [fact.path for fact in Store(store.root, state=store.state).scan().private] == ["a.md"]


def test_what_another_line_keeps_private_is_not_shared(store: Store) -> None:
    store.create()
    (store.root / "a.md").write_text("---\nPrivate: true\nmetadata:\n  type: user\n---\nText.")
    with pytest.raises(RefusedError, match="still says"):
        store.share("a")
    assert [fact.path for fact in store.scan().private] == ["a.md"]


def test_the_global_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "data" / "memory", scope="global", state=tmp_path / "state")
    store.add("Text.")
    assert store.root.stat().st_mode & 0o777 == 0o700


# --- taking over


NATIVE = (
    b"---\nname: n\ndescription: d\nmetadata: \n  node_type: memory\n  type: feedback\n---\n\nNative text.\n"
)


def test_a_native_file_is_taken_over_as_it_is(store: Store) -> None:
    fact = store.adopt(NATIVE, "native.md", "claude-code").fact
    assert (fact.path, fact.native) == ("native.md", True)
    assert (store.root / "native.md").read_bytes() == NATIVE
    with pytest.raises(DuplicateError):
        store.adopt(NATIVE, "again.md", "claude-code")


def test_a_taken_name_gets_another(store: Store) -> None:
    store.adopt(NATIVE, "native.md", "claude-code")
    second = store.adopt(NATIVE.replace(b"Native", b"Other"), "native.md", "claude-code").fact
    third = store.adopt(NATIVE.replace(b"Native", b"Third"), "native.md", "claude-code").fact
    assert [second.path, third.path] == ["native.imported-1.md", "native.imported-2.md"]
    assert (store.root / "native.md").read_bytes() == NATIVE


def test_a_file_without_frontmatter_gets_its_source(store: Store) -> None:
    fact = store.adopt(b"Plain.\r\n", "plain.md", "codex", private=True).fact
    assert (fact.source, fact.private, fact.body) == ("codex", True, "Plain.")
    assert [one.path for one in store.scan().private] == ["plain.md"]


@pytest.mark.parametrize(("name", "path"), [
    ("sub/x.md", "sub/x.md"),
    ("../../x.md", "x.md"),
    ("/etc/x.md", "etc/x.md"),
    (".hidden/.x.md", "hidden/x.md"),
    ("..\\..\\x.md", "x.md"),
    ("MEMORY.md", "memory-native-text.md"),
    ("conventions.md", "conventions-native-text.md"),
    ("a\nb[c].md", "a_b_c_.md"),
    ("", "memory-native-text.md"),
])  # fmt: skip
def test_names_stay_within_the_store(store: Store, name: str, path: str) -> None:
    assert store.adopt(NATIVE, name, "claude-code").fact.path == path
    assert (store.root / path).is_file()


@pytest.mark.parametrize("data", [b"\xff\xfe", b"---\na: [\n---\nx"])
def test_what_is_no_fact_is_not_taken_over(store: Store, data: bytes) -> None:
    with pytest.raises(FactProblem):
        store.adopt(data, "x.md", "codex")
    with pytest.raises(EmptyFact):
        store.adopt(b"\n", "x.md", "codex")
    assert not store.root.exists()


def test_a_twin_of_a_private_text_is_private_from_the_first_moment(store: Store) -> None:
    fact = store.add("I live by the sea.", private=True).fact
    (store.root / fact.path).unlink()
    added = store.add("I live by the sea.").fact
    assert [one.id for one in store.scan().private] == [added.id]


def test_what_a_killed_writer_left_is_cleared(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", state=tmp_path / "state")
    fact = store.add("Kept as it is.").fact
    left = store.root / "entries/.x.md.0123456789abcdef-0123456789abcdef.01234567.agent-bridge.tmp"
    left.write_bytes(b"half a fa")
    store.recover()
    assert not left.exists()
    assert [one.id for one in store.scan().facts] == [fact.id]


def test_no_name_of_a_fact_holds_its_secret(store: Store) -> None:
    fact = store.add(f"The token is {TOKEN}", now=NOW).fact
    assert TOKEN.casefold()[:10].replace("_", "-") not in fact.path.casefold()
    assert fact.id.startswith("20260304-0001-memory-")
