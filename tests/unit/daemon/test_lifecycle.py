"""One service a user."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from agent_bridge import paths
from agent_bridge.daemon.client import lock_is_held
from agent_bridge.daemon.lifecycle import AlreadyRunningError, recorded_pid, single_instance


def test_the_lock_is_held_for_the_time_of_the_block(sealed_home: Path) -> None:
    with single_instance():
        assert lock_is_held(paths.service_lock())
        assert recorded_pid() == os.getpid()
        assert stat.S_IMODE(paths.service_lock().parent.stat().st_mode) == 0o700
        with pytest.raises(AlreadyRunningError, match=str(os.getpid())), single_instance():
            pytest.fail("there were two")
        assert recorded_pid() == os.getpid()
    assert not lock_is_held(paths.service_lock())
    assert recorded_pid() is None


def test_a_lock_whose_file_was_removed_is_taken_anew(sealed_home: Path) -> None:
    with single_instance() as instance:
        instance.keep()
        shutil.rmtree(paths.state_dir())
        assert not lock_is_held(paths.service_lock()), "now there could be two"
        instance.keep()
        assert lock_is_held(paths.service_lock())
        assert recorded_pid() == os.getpid()
        with pytest.raises(AlreadyRunningError), single_instance():
            pytest.fail("there were two")
    assert not lock_is_held(paths.service_lock())


def test_where_another_service_was_faster_it_has_the_lock(sealed_home: Path) -> None:
    with single_instance() as instance:
        paths.service_lock().unlink()
        with single_instance():
            with pytest.raises(AlreadyRunningError):
                instance.keep()
            instance.give_up()
            assert lock_is_held(paths.service_lock())


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}', '{"pid": -5}', "\xff"])
def test_a_record_that_makes_no_sense_names_nobody(sealed_home: Path, text: str) -> None:
    paths.state_dir().mkdir(parents=True)
    paths.service_lock().with_suffix(".json").write_text(text, encoding="latin-1")
    assert recorded_pid() is None
