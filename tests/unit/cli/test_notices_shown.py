"""Notices as people read them: no text twice."""

from __future__ import annotations

from agent_bridge.cli.notices_shown import gathered


def test_a_text_about_several_files_is_told_once_with_all_of_them() -> None:
    found = gathered([("info", "Read in the root only.", f"/w{number}/CLAUDE.md") for number in (1, 2)])
    assert found == [("info", "Read in the root only. (/w1/CLAUDE.md, /w2/CLAUDE.md)")]


def test_of_many_places_some_are_named() -> None:
    (told,) = gathered([("info", "Text.", f"/w{number}") for number in range(9)])
    assert told == ("info", "Text. (/w0, /w1, /w2 and 6 more)")


def test_other_texts_and_levels_stay_apart_and_in_order() -> None:
    notices = [("warning", "B.", ""), ("info", "A.", "/a"), ("warning", "A.", "/a"), ("warning", "B.", "")]
    assert gathered(notices) == [("warning", "B."), ("info", "A. (/a)"), ("warning", "A. (/a)")]


def test_a_place_that_the_text_names_is_not_repeated() -> None:
    assert gathered([("info", "/a/x is big.", "/a/x")]) == [("info", "/a/x is big.")]
