"""Keys by identity, in lists that a statement takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.channel.storage.keys import AT_ONCE, by_identity

_KEYS = st.lists(st.tuples(st.sampled_from(["global", "work"]), st.sampled_from("abc")))


@given(_KEYS)
def test_each_key_comes_once_with_its_identity(keys: list[tuple[str, str]]) -> None:
    found = [(identity, name) for identity, names in by_identity(keys) for name in names]
    assert sorted(found) == sorted(set(keys))


def test_many_come_in_several_lists_in_their_order() -> None:
    names = [str(number) for number in range(2 * AT_ONCE + 1)]
    lists = list(by_identity(("global", name) for name in names))
    assert [len(ids) for _, ids in lists] == [AT_ONCE, AT_ONCE, 1]
    assert [name for _, ids in lists for name in ids] == names
