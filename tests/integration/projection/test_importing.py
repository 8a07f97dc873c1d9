"""Imports into a real store: the source is only read, a second run adds nothing and brings nothing back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge import paths
from agent_bridge.config import Settings
from agent_bridge.errors import RefusedError
from agent_bridge.harnesses import managed_block
from agent_bridge.memory.similarity import text_hash
from agent_bridge.memory.store import Store
from agent_bridge.projection import review, setup
from agent_bridge.projection.importing.items import Kind, Outcome
from agent_bridge.projection.importing.run import Report, Wishes, import_source
from agent_bridge.projection.importing.sources import recognise

Tree = Callable[[Path], dict[str, tuple[str, int, bytes]]]
CORPUS = Path(__file__).parents[2] / "corpus"
KEY = "ghp_" + "a1B2" * 9


@pytest.fixture
def store(sealed_home: Path) -> Store:
    return Store(sealed_home / "work/.memory", state=sealed_home / "state")


def _import(store: Store, path: Path, kind: Kind | None = None, **wishes: object) -> Report:
    wanted = Wishes(**wishes)  # type: ignore[arg-type]
    return import_source(recognise(path, kind), store, wanted, threshold=0.5)


def _notes(root: Path, **texts: str) -> Path:
    root.mkdir(exist_ok=True)
    for name, text in texts.items():
        (root / f"{name}.md").write_text(text)
    return root


@pytest.mark.parametrize("name", ["memory_bridge", "basic_memory", "rulesync", "ruler", "claude_memory"])
def test_the_source_is_only_read_and_twice_is_once(
    store: Store, sealed_home: Path, tree: Tree, name: str
) -> None:
    source = Path(shutil.copytree(CORPUS / name, sealed_home / "source"))
    before = tree(source)
    first = _import(store, source)
    added = first.counts()["added"]
    assert added >= 3
    facts = tree(store.root)
    second = _import(store, source)
    assert second.counts() == {**first.counts(), "added": 0, "duplicate": added}
    assert tree(store.root) == facts
    assert tree(source) == before
    snapshot = store.scan()
    assert (len(snapshot.facts), snapshot.problems) == (added, ())
    assert len(snapshot.shared) == first.shared


def test_the_source_key_names_the_kind(store: Store) -> None:
    for name in ("memory_bridge", "basic_memory", "rulesync", "ruler"):
        _import(store, CORPUS / name)
    kinds = ("memory-bridge", "basic-memory", "rulesync", "ruler")
    assert {fact.source for fact in store.scan().facts} == {f"import:{kind}" for kind in kinds}


def test_claudes_files_stay_byte_for_byte(store: Store) -> None:
    _import(store, CORPUS / "claude_memory")
    for name in ("ports.md", "mondays.md"):
        assert (store.root / name).read_bytes() == (CORPUS / "claude_memory" / name).read_bytes()


def test_a_deleted_fact_comes_back_only_by_again(store: Store, sealed_home: Path) -> None:
    notes = _notes(sealed_home / "notes", a="The tide turns at six.")
    (line,) = _import(store, notes, Kind.MARKDOWN).lines
    store.remove(line.fact_id)
    assert [one.outcome for one in _import(store, notes, Kind.MARKDOWN).lines] == [Outcome.KNOWN]
    assert store.scan().facts == ()
    assert [one.outcome for one in _import(store, notes, Kind.MARKDOWN, again=True).lines] == [Outcome.ADDED]
    assert len(store.scan().facts) == 1


def test_an_edited_fact_stays_edited(store: Store, sealed_home: Path) -> None:
    notes = _notes(sealed_home / "notes", a="The tide turns at six.")
    (line,) = _import(store, notes, Kind.MARKDOWN).lines
    store.edit(line.fact_id, "High water comes with the full moon.")
    assert _import(store, notes, Kind.MARKDOWN).counts()["known"] == 1
    assert [fact.body for fact in store.scan().facts] == ["High water comes with the full moon."]


def test_similar_texts_go_to_the_review_and_stay_reviewed(store: Store, sealed_home: Path) -> None:
    fact = store.add("Use port 4999 for the tide service.").fact
    notes = _notes(
        sealed_home / "notes", a="Use port 5000 for the tide service.", b="Bread is baked at five."
    )
    report = _import(store, notes, Kind.MARKDOWN)
    line = report.lines[0]
    assert (line.outcome, line.fact_id) == (Outcome.REVIEW, fact.id)
    assert "share" in line.why
    (candidate,) = review.load_candidates(store.state)
    assert (candidate.text, candidate.similar) == ("Use port 5000 for the tide service.", fact.id)
    assert [one.body for one in store.scan().facts if "port" in one.body] == [fact.body]
    (review.candidates_directory(store.state) / f"{candidate.id}.md").unlink()
    assert _import(store, notes, Kind.MARKDOWN).counts() == {
        **report.counts(),
        "added": 0,
        "duplicate": 1,
    } | {
        "review": 0,
        "known": 1,
    }
    assert review.load_candidates(store.state) == []


def test_texts_of_one_import_are_compared_with_each_other(store: Store, sealed_home: Path) -> None:
    texts = {
        f"n{number}": f"The lamp on pier {number} is repaired by the harbour office." for number in range(9)
    }
    counts = _import(store, _notes(sealed_home / "notes", **texts), Kind.MARKDOWN).counts()
    assert (counts["added"], counts["review"]) == (1, 8)


def test_a_secret_comes_in_private_and_is_printed_nowhere(store: Store, sealed_home: Path) -> None:
    notes = _notes(sealed_home / "notes", a=f"The key of the robot is {KEY} as of today.", b="Bread at five.")
    report = _import(store, notes, Kind.MARKDOWN)
    snapshot = store.scan()
    assert [KEY in fact.body for fact in snapshot.withheld] == [True]
    assert "private: true" in (store.root / snapshot.withheld[0].path).read_text()
    assert report.shared == len(snapshot.shared) == 1
    assert KEY not in repr(report)


def test_private_for_all_also_for_what_waits(store: Store, sealed_home: Path) -> None:
    store.add("Use port 4999 for the tide service.")
    notes = _notes(sealed_home / "notes", a="Bread at five.", b="Use port 5000 for the tide service.")
    report = _import(store, notes, Kind.MARKDOWN, private=True)
    assert (report.counts()["added"], report.counts()["review"], report.shared) == (1, 1, 0)
    accepted = store.add("Use port 5000 for the tide service.").fact
    assert accepted in store.scan().private


def test_a_dry_run_says_the_same_and_changes_nothing(store: Store, sealed_home: Path, tree: Tree) -> None:
    store.add("Use port 4999 for the tide service.")
    notes = _notes(sealed_home / "notes", a="Bread at five.", b="Use port 5000 for the tide service.")
    before = tree(sealed_home)
    told = _import(store, notes, Kind.MARKDOWN, dry=True)
    assert tree(sealed_home) == before
    done = _import(store, notes, Kind.MARKDOWN)
    assert told.counts() == done.counts()
    assert told.shared == done.shared == 1


def test_our_own_store_is_no_source(store: Store, sealed_home: Path) -> None:
    store.add("A fact.")
    link = sealed_home / "link"
    link.symlink_to(store.root)
    for path in (store.root, link, store.root / "entries", store.root.parent):
        with pytest.raises(RefusedError):
            _import(store, path, Kind.MEMORY_BRIDGE if path != store.root.parent else None)
    assert len(store.scan().facts) == 1


def test_nothing_of_our_own_comes_in_with_the_directories_around_it(store: Store, sealed_home: Path) -> None:
    user = Store(paths.global_store(), scope="global", state=paths.user_state())
    user.create()
    user.add("The key lies under the mat.", private=True)
    kept = paths.project_state("0" * 16) / "removed"
    kept.mkdir(parents=True)
    (kept / "gone.md").write_text("The lamp is out.\n")
    _notes(sealed_home / ".local" / "notes", a="Bread is baked at five.")
    report = _import(store, sealed_home / ".local", Kind.MARKDOWN)
    assert [fact.body for fact in store.scan().facts] == ["Bread is baked at five."]
    assert {line.why for line in report.lines if line.outcome is Outcome.NO_FACT} >= {
        "it is agent-bridge's own"
    }


def test_a_block_of_ours_is_no_text_of_the_file_that_it_stands_in(store: Store, sealed_home: Path) -> None:
    body = managed_block.with_hash("## Memory for all projects\n\n### Mat [a]\n\nThe key is under the mat.")
    block = managed_block.splice(b"Bread is baked at five.\n", body).data
    place = sealed_home / "notes"
    place.mkdir()
    (place / "CLAUDE.md").write_bytes(block)
    (place / "only.md").write_bytes(managed_block.splice(b"", body).data)
    (place / "torn.md").write_bytes(block.replace(managed_block.END.encode(), b""))
    report = _import(store, place, Kind.MARKDOWN)
    assert [fact.body for fact in store.scan().facts] == ["Bread is baked at five."]
    assert [(line.origin, line.outcome) for line in report.lines] == [
        ("CLAUDE.md", Outcome.ADDED),
        ("only.md", Outcome.NO_FACT),
        ("torn.md", Outcome.REFUSED),
    ]


def test_what_is_private_in_another_project_comes_in_private(
    repository: Path, settings: Settings, sealed_home: Path
) -> None:
    project = setup.describe(repository)
    setup.init(project, settings)
    theirs = Store(project.store, state=project.state)
    told = theirs.add("Nobody else's business.").fact
    theirs.unshare(told.id)
    place = project.store / told.path
    place.write_text(place.read_text().replace("  private: true\n", ""))
    theirs.add("Everybody's business, though.")
    mine = Store(sealed_home / "mine/.memory", state=sealed_home / "state")
    assert _import(mine, project.store).shared == 1
    assert [fact.body for fact in mine.scan().private] == ["Nobody else's business."]


def test_files_that_cant_be_used_are_told_and_the_others_go_on(store: Store, sealed_home: Path) -> None:
    notes = _notes(sealed_home / "notes", good="Bread at five.", empty="\n")
    (notes / "wide.md").write_bytes("Text.".encode("utf-16"))
    (notes / "bomb.md").write_text("---\na: &a [x, x]\nb: [*a, *a]\n---\n\nText.\n")
    (notes / "picture.png").write_bytes(b"\x89PNG")
    lines = {line.origin: line.outcome for line in _import(store, notes, Kind.MARKDOWN).lines}
    assert lines == {
        "bomb.md": Outcome.REFUSED,
        "empty.md": Outcome.NO_FACT,
        "good.md": Outcome.ADDED,
        "picture.png": Outcome.NO_FACT,
        "wide.md": Outcome.REFUSED,
    }


def test_a_type_for_all(store: Store) -> None:
    _import(store, CORPUS / "memory_bridge", type="reference")
    assert {fact.type for fact in store.scan().facts} == {"reference"}


def test_two_stores_with_the_same_id_for_other_texts(store: Store, sealed_home: Path) -> None:
    for number, text in enumerate(("Bread is baked at five.", "The tide turns at six.")):
        place = sealed_home / f"s{number}/.memory/entries/20260101-0001-memory.md"
        place.parent.mkdir(parents=True)
        place.write_text(f"---\nid: 20260101-0001-memory\ntype: memory\ntags: []\n---\n\n{text}\n")
        assert _import(store, place.parents[1]).counts()["added"] == 1
    facts = store.scan().facts
    assert {fact.body for fact in facts} == {"Bread is baked at five.", "The tide turns at six."}
    assert len({fact.id for fact in facts}) == 2
    assert store.scan().problems == ()


def test_two_thousand_notes(store: Store, sealed_home: Path) -> None:
    texts = {f"n{number}": f"w{number} x{number} y{number} the and of {number % 7}" for number in range(2000)}
    notes = _notes(sealed_home / "notes", **texts)
    assert _import(store, notes, Kind.MARKDOWN).counts()["added"] == 2000
    assert len(store.scan().facts) == 2000


@pytest.mark.parametrize("fact_id", ["../../x", "a/b", ".hidden", "x" * 400, "\u0000", "漢" * 120, "MEMORY"])
def test_an_id_of_somebody_else_leads_nowhere(store: Store, sealed_home: Path, fact_id: str) -> None:
    place = sealed_home / "theirs/.memory"
    place.mkdir(parents=True)
    row = {"id": fact_id, "summary": "The tide turns at six.", "path": "entries/gone.md", "tags": ["a", 1]}
    (place / "index.json").write_text(json.dumps({"version": 1, "entries": [row, 5, {}]}))
    (line,) = [one for one in _import(store, place).lines if one.outcome is Outcome.ADDED]
    (fact,) = store.scan().facts
    assert (fact.body, fact.id) == ("The tide turns at six.", line.fact_id)
    assert fact.path.startswith("entries/")
    assert store.scan().problems == ()
    assert sorted(one.name for one in sealed_home.iterdir()) == ["state", "theirs", "work"]


def test_where_a_text_came_from_stands_in_the_fact(store: Store) -> None:
    _import(store, CORPUS / "basic_memory")
    heads = [(store.root / fact.path).read_text() for fact in store.scan().facts]
    assert (
        sum("origin: notes/Coffee.md" in head or 'origin: "notes/Coffee.md"' in head for head in heads) == 1
    )


@given(
    st.dictionaries(
        st.from_regex(r"[a-z]{1,8}", fullmatch=True),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=60),
        max_size=6,
    )
)
def test_any_notes_twice_are_once(tmp_path_factory: pytest.TempPathFactory, texts: dict[str, str]) -> None:
    base = tmp_path_factory.mktemp("any")
    store = Store(base / ".memory", state=base / "state")
    notes = base / "notes"
    notes.mkdir()
    for name, text in texts.items():
        (notes / f"{name}.md").write_bytes(text.encode())
    first = _import(store, notes, Kind.MARKDOWN).counts()
    facts = store.scan()
    again = _import(store, notes, Kind.MARKDOWN)
    assert again.counts()["added"] == again.counts()["review"] == 0
    assert store.scan().digest == facts.digest
    assert len(facts.facts) == first["added"]
    kept = {text_hash(one.text) for one in review.load_candidates(store.state)}
    assert len(kept | {fact.text_hash for fact in facts.facts}) >= first["added"]
