"""Who gives way when too many are connected."""

from __future__ import annotations

from agent_bridge.registry.crowd import Crowd


class Caller:
    """A connection; what becomes of it is noted."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_given_way = False

    def give_way(self) -> None:
        self.has_given_way = True


def test_the_one_that_has_waited_longest_goes() -> None:
    crowd = Crowd(3)
    first, second, third, fourth = (Caller(name) for name in ("first", "second", "third", "fourth"))
    for caller in (first, second, third):
        crowd.waits(caller)
        assert crowd.make_room(caller, len(crowd))
    crowd.waits(first)  # it has been answered just now
    crowd.waits(fourth)
    assert crowd.make_room(fourth, 4)
    assert [one.name for one in (first, second, third, fourth) if one.has_given_way] == ["second"]
    assert len(crowd) == 3


def test_who_works_does_not_give_way() -> None:
    crowd = Crowd(1)
    busy, late = Caller("busy"), Caller("late")
    crowd.waits(busy)
    crowd.leaves(busy)
    crowd.waits(late)
    assert not crowd.make_room(late, 2)
    assert not busy.has_given_way
    assert not late.has_given_way


def test_as_many_as_it_takes() -> None:
    crowd = Crowd(1)
    callers = [Caller(str(number)) for number in range(4)]
    for caller in callers:
        crowd.waits(caller)
    assert crowd.make_room(callers[-1], 4)
    assert [one.has_given_way for one in callers] == [True, True, True, False]
