"""The outbox: everything once and in order, never more than its limit, nothing while the peer is full."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_bridge.registry.outbox import PIECE_BYTES, Outbox


class _Peer:
    """Takes bytes until `room` is used up."""

    def __init__(self, *, frames: int = 100, size: int = 1 << 30, room: int = 1 << 30) -> None:
        self.taken: list[bytes] = []
        self.room = room
        self.outbox = Outbox(self._take, frames=frames, size=size)

    def _take(self, data: bytes) -> None:
        assert not self.outbox.is_paused, "written to while the peer is full"
        self.taken.append(data)
        self.room -= len(data)
        if self.room < 0:
            self.outbox.pause()

    @property
    def text(self) -> bytes:
        return b"".join(self.taken)


def test_frames_go_together_with_the_flush() -> None:
    peer = _Peer()
    for frame in (b"a", b"b", b"c"):
        assert peer.outbox.put(frame)
    assert peer.taken == []

    peer.outbox.flush()

    assert peer.taken == [b"abc"]
    assert peer.outbox.taken == 3
    assert len(peer.outbox) == 0


def test_what_a_full_peer_doesnt_take_waits_until_it_does() -> None:
    peer = _Peer(room=0)
    peer.outbox.put(b"a")
    peer.outbox.flush()
    peer.outbox.put(b"b")
    peer.outbox.flush()
    assert peer.text == b"a"

    peer.room = 10
    peer.outbox.resume()

    assert peer.text == b"ab"


def test_a_burst_of_our_own_is_not_the_peers_fault() -> None:
    peer = _Peer(frames=2)

    assert all(peer.outbox.put(b"%d" % number) for number in range(7))
    peer.outbox.flush()

    assert peer.text == b"0123456"


def test_too_many_frames_for_a_full_peer() -> None:
    peer = _Peer(frames=2)
    peer.outbox.pause()

    assert [peer.outbox.put(b"x") for _ in range(3)] == [True, True, False]


def test_too_many_bytes_for_a_full_peer() -> None:
    peer = _Peer(size=10)
    peer.outbox.pause()

    assert [peer.outbox.put(b"12345") for _ in range(3)] == [True, True, False]


def test_much_is_handed_over_in_pieces_so_that_the_peer_can_say_stop() -> None:
    peer = _Peer(room=PIECE_BYTES)
    frame = b"x" * (PIECE_BYTES // 2)
    for _ in range(8):
        peer.outbox.put(frame)

    peer.outbox.flush()

    assert len(peer.taken) == 2
    assert len(peer.outbox) == 4


def test_what_nobody_takes_any_more_is_forgotten() -> None:
    peer = _Peer()
    peer.outbox.put(b"a")

    peer.outbox.clear()
    peer.outbox.flush()

    assert peer.taken == []


_STEPS = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=40).map(lambda frame: ("put", frame)),
        st.just(("flush", b"")),
        st.just(("resume", b"")),
        st.just(("pause", b"")),
    ),
    max_size=60,
)


@given(_STEPS, st.integers(0, 200))
def test_everything_comes_once_and_in_order(steps: list[tuple[str, bytes]], room: int) -> None:
    peer = _Peer(frames=1000, room=room)
    put = b""
    for step, frame in steps:
        if step == "put":
            assert peer.outbox.put(frame)
            put += frame
        elif step == "flush":
            peer.outbox.flush()
        elif step == "pause":
            peer.outbox.pause()
        else:
            peer.room = room
            peer.outbox.resume()
        assert put.startswith(peer.text)
    peer.room = 1 << 30
    peer.outbox.resume()

    assert peer.text == put
