"""Law 5, the pure part: provenance of a block's items, conflicts, and waiting for a stash."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.errors import MarkerError
from agent_bridge.harnesses.managed_block import Item, render_block, splice
from agent_bridge.projection.gitlaw import conflict_across, foreign_items, judge, restored_by_git


@dataclass(frozen=True)
class Fact:
    id: str
    title: str
    body: str


@dataclass(frozen=True)
class Document:
    name: str
    text: str


A = Fact("a", "Ports", "Use port 4999.\n\nNever 5000.")
B = Fact("b", "Tests", "Run them twice.")
CONVENTIONS = Document("conventions.md", "# Conventions\n\nTabs.")


def file_with(*facts: Fact, documents: tuple[Document, ...] = (), user: bytes = b"# Mine\n") -> bytes:
    return splice(user, render_block(documents, facts).body).data


def written_into(data: bytes, text: str, before: str = "<!-- agent-bridge:memory:hash") -> bytes:
    assert data.count(before.encode()) == 1
    return data.replace(before.encode(), text.encode() + before.encode())


class TestForeignItems:
    def test_a_valid_block_holds_nothing_foreign_even_if_the_store_forgot_it_all(self) -> None:
        assert foreign_items(file_with(A, B), (), (), ()) == ()

    def test_no_block(self) -> None:
        assert foreign_items(b"# Mine\n", (), (A,), ()) == ()

    def test_a_new_item_is_foreign_with_its_heading(self) -> None:
        data = written_into(file_with(A), "### By hand\n\nA colleague's line.\n\n")
        assert foreign_items(data, (), (A,), ()) == ("By hand\n\nA colleague's line.",)

    def test_a_line_added_to_an_item_of_ours_is_all_that_is_foreign(self) -> None:
        data = written_into(file_with(A, B), "- A colleague's line.\n\n")
        assert foreign_items(data, (), (A, B), ()) == ("- A colleague's line.",)

    def test_a_line_under_the_heading_of_the_block(self) -> None:
        data = written_into(file_with(A), "A colleague's line.\n\n", before="### Ports")
        assert foreign_items(data, (), (A,), ()) == ("A colleague's line.",)

    def test_a_line_in_an_empty_block(self) -> None:
        data = written_into(file_with(), "A colleague's line.\n\n")
        assert foreign_items(data, (), (), ()) == ("A colleague's line.",)

    def test_an_edited_item_is_foreign_as_a_whole(self) -> None:
        data = file_with(A, B).replace(b"4999", b"4998")
        assert foreign_items(data, (), (A, B), ()) == ("Ports\n\nUse port 4998.\n\nNever 5000.",)

    def test_an_item_of_the_store_in_another_version_of_the_block_is_ours(self) -> None:
        data = written_into(file_with(A, documents=(CONVENTIONS,)), "### Tests [b]\n\nRun them   twice.\n\n")
        assert foreign_items(data, (CONVENTIONS,), (A, B), ()) == ()

    def test_a_deleted_fact_that_a_commit_of_ours_holds_does_not_come_back(self) -> None:
        head = file_with(A, B)
        data = written_into(head, "### By hand\n\nNew.\n\n")
        assert foreign_items(data, (), (A,), (head,)) == ("By hand\n\nNew.",)
        assert foreign_items(data, (), (A,), ()) == ("Tests\n\nRun them twice.", "By hand\n\nNew.")

    def test_committed_text_of_a_colleague_is_foreign_all_the_same(self) -> None:
        data = written_into(file_with(A), "### By hand\n\nNew.\n\n")
        assert foreign_items(data, (), (A,), (data,)) == ("By hand\n\nNew.",)

    def test_revisions_with_broken_or_no_markers_prove_nothing(self) -> None:
        data = written_into(file_with(A), "### By hand\n\nNew.\n\n")
        broken = b"<!-- agent-bridge:memory:start -->\n### By hand\n\nNew.\n"
        assert foreign_items(data, (), (A,), (broken, b"", b"plain\n")) == ("By hand\n\nNew.",)

    def test_both_sides_of_a_conflict_inside_the_block(self) -> None:
        data = written_into(
            file_with(A),
            "<<<<<<< HEAD\n### Tests [b]\n\nRun them twice.\n||||||| base\n### Old\n\nGone.\n=======\n"
            "### By hand\n\nTheirs.\n>>>>>>> side\n\n",
        )
        assert foreign_items(data, (), (A, B), ()) == ("By hand\n\nTheirs.",)

    def test_crlf(self) -> None:
        data = written_into(file_with(A, user=b"# Mine\r\n"), "### By hand\r\n\r\nNew.\r\n\r\n")
        assert foreign_items(data, (), (A,), ()) == ("By hand\n\nNew.",)

    def test_a_conflict_across_the_border_waits_for_a_person(self) -> None:
        data = file_with(A).replace(b"# Mine\n", b"# Mine\n<<<<<<< HEAD\nx\n=======\n")
        data = written_into(data, ">>>>>>> side\n\n")
        with pytest.raises(MarkerError) as told:
            foreign_items(data, (), (A,), ())
        assert told.value.line == 2

    @given(
        st.lists(st.sampled_from([A, B, Fact("c", "", ""), Fact("d", "x [y]", "### z\n\n- 1")]), unique=True)
    )
    def test_what_the_store_renders_is_never_foreign(self, facts: list[Fact]) -> None:
        data = written_into(file_with(*facts, documents=(CONVENTIONS,)), "### By hand\n\nNew.\n\n")
        assert foreign_items(data, (CONVENTIONS,), facts, ()) == ("By hand\n\nNew.",)

    @given(st.text(alphabet="ab #-*[]`\n", min_size=1).filter(lambda text: text.strip("\n #`-*")))
    def test_no_word_written_into_the_block_is_lost(self, text: str) -> None:
        data = written_into(file_with(A), f"\n{text}\n")
        found = " ".join(foreign_items(data, (), (A,), ())).split()
        for word in text.split():
            letters = word.strip("#-*[]` ")
            assert not letters or any(letters in part for part in found)


def test_judge_sorts() -> None:
    ours, theirs = Item("a", "t", "x"), Item(None, "", "y")
    sorted_ = judge([ours, theirs, theirs], [Item(None, "t", " x ")])
    assert (sorted_.ours, sorted_.foreign) == ((ours,), ("y",))


class TestConflictAcross:
    START, END = b"<!-- agent-bridge:memory:start -->\n", b"<!-- agent-bridge:memory:end -->\n"
    BEGIN, MIDDLE, FINISH = b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> side\n"

    @pytest.mark.parametrize(
        ("parts", "line"),
        [
            ([START, END], None),
            ([START, BEGIN, MIDDLE, FINISH, END], None),
            ([BEGIN, MIDDLE, FINISH, START, END, BEGIN, MIDDLE, FINISH], None),
            ([BEGIN, START, MIDDLE, FINISH, END], 1),
            ([START, BEGIN, END, MIDDLE, FINISH], 2),
            ([BEGIN, START, END, MIDDLE, START, END, FINISH], 1),
            ([BEGIN, MIDDLE, FINISH, START, b"x\n", BEGIN, MIDDLE, END, FINISH], 6),
            ([BEGIN, START, END], None),  # no conflict: nothing ends it
            ([FINISH, START, END], None),
        ],
    )
    def test_table(self, parts: list[bytes], line: int | None) -> None:
        assert conflict_across(b"".join(parts)) == line
        assert conflict_across(b"".join(parts).replace(b"\n", b"\r\n")) == line


HEAD, OURS = file_with(A), file_with(A, B)


class TestRestoredByGit:
    @pytest.mark.parametrize(
        ("current", "head", "stashed", "written_at", "now", "until"),
        [
            (HEAD, HEAD, [(100, OURS)], 99.0, 101.0, 1000.0),
            (HEAD, HEAD, [(100, OURS)], 100.9, 101.0, 1000.0),  # Git's clock has whole seconds
            (HEAD, HEAD, [(100, OURS)], 102.5, 103.0, 1000.0),  # … and a stash takes its time
            (HEAD, HEAD, [(100, OURS)], 103.0, 104.0, None),  # we wrote after it: the user put HEAD back
            (HEAD, HEAD, [(100, OURS)], 99.0, 1000.0, None),  # long enough
            (HEAD, HEAD, [], 99.0, 101.0, None),
            (OURS, HEAD, [(100, OURS)], 99.0, 101.0, None),
            (HEAD, None, [(100, OURS)], 99.0, 101.0, None),
            (HEAD.replace(b"\n", b"\r\n"), HEAD, [(100, OURS)], 99.0, 101.0, 1000.0),
            (HEAD, HEAD, [(100, OURS), (200, OURS)], 99.0, 201.0, 1100.0),
            (HEAD, HEAD, [(100, OURS)], None, 101.0, 1000.0),  # restarted: the stash holds a block of ours
            (HEAD, HEAD, [(100, b"no block")], None, 101.0, None),
        ],
    )
    def test_table(
        self,
        current: bytes,
        head: bytes | None,
        stashed: list[tuple[int, bytes]],
        written_at: float | None,
        now: float,
        until: float | None,
    ) -> None:
        found = restored_by_git(current, head, stashed, written_at=written_at, now=now, limit=900.0)
        assert found == until
