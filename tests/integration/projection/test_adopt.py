"""A harness's directory becomes a link to the store: also when something comes between."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_bridge.files import kernel
from agent_bridge.memory.store import Store
from agent_bridge.projection import adopt, housekeeping
from agent_bridge.projection.ledger import Ledger

ASIDE = ".memory.agent-bridge-old"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(tmp_path / "store", state=tmp_path / "state")
    found.create()
    return found


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "state")


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """A harness's directory with one memory."""
    place = tmp_path / "home" / "memory"
    place.mkdir(parents=True)
    (place / "style.md").write_text("Tabs are four columns wide.\n")
    return place


def texts(store: Store) -> set[str]:
    return {fact.body for fact in store.scan().facts}


def test_what_is_written_while_the_directory_is_swapped_is_taken_over_too(
    store: Store, ledger: Ledger, native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = kernel.exchange

    def late(one: Path, other: Path) -> bool:
        (native / "late.md").write_text("The client wrote this a moment ago.\n")
        (native / "style.md").write_text("Tabs are eight columns wide after all.\n")
        return exchange(one, other)

    monkeypatch.setattr(kernel, "exchange", late)
    adopt.make_link(ledger, store, native, "claude-code")
    assert native.readlink() == store.root
    assert not (native.parent / ASIDE).exists()
    assert {"The client wrote this a moment ago.", "Tabs are eight columns wide after all."} <= texts(store)
    adopt.close_adoption(ledger, store, frozenset())
    (entry,) = ledger.entries()
    adopt.undo_link(ledger, store, entry)
    assert (native / "late.md").read_text() == "The client wrote this a moment ago.\n"
    assert (native / "style.md").read_text() == "Tabs are eight columns wide after all.\n"


def test_a_kill_right_after_the_swap_is_made_good_by_the_next_pass(
    store: Store, ledger: Ledger, native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = kernel.exchange

    def killed(one: Path, other: Path) -> bool:
        exchange(one, other)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(kernel, "exchange", killed)
        with pytest.raises(KeyboardInterrupt):
            adopt.make_link(ledger, store, native, "claude-code")
    aside = native.parent / ASIDE
    (aside / "open.md").write_text("Written through a file that was open.\n")
    assert housekeeping.check_links(ledger, store) == []
    assert not aside.exists()
    assert "Written through a file that was open." in texts(store)


def test_a_kill_right_before_the_swap_is_made_good_by_the_next_init(
    store: Store, ledger: Ledger, native: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_one: Path, _other: Path) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(kernel, "exchange", killed)
        with pytest.raises(KeyboardInterrupt):
            adopt.make_link(ledger, store, native, "claude-code")
    assert (native / "style.md").read_text() == "Tabs are four columns wide.\n"
    adopt.make_link(ledger, store, native, "claude-code")
    assert native.readlink() == store.root
    assert texts(store) == {"Tabs are four columns wide."}
