"""The cursor moves on only over what is known."""

from __future__ import annotations

from agent_bridge.client.cursor import Cursor


def test_at_first_nothing_is_asked_for_and_everything_is_to_be_fetched() -> None:
    cursor = Cursor()
    assert cursor.question() == {}
    assert not cursor.identified("e", 7)
    assert cursor.question() == {"since": 7, "epoch": "e"}


def test_in_the_same_database_a_replay_follows() -> None:
    cursor = Cursor()
    cursor.identified("e", 7)
    cursor.event(9, replayed=False)
    assert cursor.question() == {"since": 9, "epoch": "e"}
    assert cursor.identified("e", 12)
    assert cursor.question() == {"since": 9, "epoch": "e"}


def test_a_live_event_during_a_replay_does_not_move_it() -> None:
    cursor = Cursor()
    cursor.identified("e", 7)
    cursor.identified("e", 12)
    cursor.event(13, replayed=False)
    assert cursor.seq == 7
    cursor.event(8, replayed=True)
    assert cursor.seq == 8
    cursor.replayed(13)
    assert cursor.seq == 13
    cursor.event(14, replayed=False)
    assert cursor.seq == 14


def test_it_never_goes_back_within_a_database() -> None:
    cursor = Cursor()
    cursor.identified("e", 7)
    cursor.event(3, replayed=False)
    assert cursor.seq == 7


def test_another_database_begins_where_it_says() -> None:
    cursor = Cursor()
    cursor.identified("e", 7)
    assert not cursor.identified("f", 2)
    assert cursor.question() == {"since": 2, "epoch": "f"}
    cursor.resync("g", 1)
    assert cursor.question() == {"since": 1, "epoch": "g"}
    assert not cursor.replaying
