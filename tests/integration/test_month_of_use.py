"""A month of use in seconds: people, editors, Git, harnesses and agent-bridge take turns at random.

What must hold after each pass is said in `month`; at the end `eject` gives everything back. A failure prints
the seed and what was done; to search longer, set MONTH_FIRST_SEED, MONTH_SEEDS and MONTH_STEPS.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from integration.month import Month
from integration.month_of_every_harness import MonthOfEveryHarness

SEEDS = int(os.environ.get("MONTH_SEEDS", "3"))
FIRST_SEED = int(os.environ.get("MONTH_FIRST_SEED", "1"))
STEPS = int(os.environ.get("MONTH_STEPS", "40"))

OPERATIONS = (
    (Month.add, 4),
    (Month.add_by_hand, 4),
    (Month.claude_writes, 2),
    (Month.edit_fact, 4),
    (Month.remove_fact, 1),
    (Month.user_edits, 5),
    (Month.edit_inside, 3),
    (Month.spoil_markers, 1),
    (Month.user_mends, 2),
    (Month.git_work, 6),
    (Month.share_or_not, 1),
    (Month.edit_settings, 2),
    (Month.new_engine, 1),
    (Month.init_again, 1),
    (Month.eject_and_return, 1),
    (Month.sync, 8),
)
EVERY_HARNESS = (
    *OPERATIONS,
    (MonthOfEveryHarness.codex_notes, 3),
    (MonthOfEveryHarness.gemini_notes, 3),
    (MonthOfEveryHarness.claude_writes_by_its_link, 2),
    (MonthOfEveryHarness.add_for_all, 3),
    (MonthOfEveryHarness.edit_own_file, 3),
    (MonthOfEveryHarness.review_one, 5),
    (MonthOfEveryHarness.ask_for_files, 3),
    (MonthOfEveryHarness.blocks_or_hooks, 2),
    (MonthOfEveryHarness.take_over, 2),
    (MonthOfEveryHarness.forget_one, 2),
    (MonthOfEveryHarness.bring_back, 2),
)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_nothing_is_lost_leaked_or_garbled(sealed_home: Path, seed: int) -> None:
    _live(Month(sealed_home, seed), OPERATIONS, seed)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_nor_with_every_harness_in_use(sealed_home: Path, seed: int) -> None:
    _live(MonthOfEveryHarness(sealed_home, seed), EVERY_HARNESS, seed)


def _live(month: Month, operations: tuple[tuple[Callable[..., None], int], ...], seed: int) -> None:
    choices = [operation for operation, weight in operations for _ in range(weight)]
    try:
        for _ in range(STEPS):
            operation = month.random.choice(choices)
            month.did.append(operation.__name__)
            operation(month)
            if month.random.random() < 0.5:
                month.did.append("sync")
                month.sync()
        month.did.append("end")
        month.end()
    except Exception as error:
        raise AssertionError(f"seed {seed}: {', '.join(month.did[-60:])}\n{error}") from error
