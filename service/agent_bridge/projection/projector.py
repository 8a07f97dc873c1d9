"""Brings a set of targets in line with what a scope has to say, one file after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from agent_bridge import files, git
from agent_bridge.errors import AgentBridgeError, ConflictError
from agent_bridge.files import FileImage
from agent_bridge.harnesses import managed_block
from agent_bridge.harnesses.base import Notice
from agent_bridge.projection import apply, block_edits, gitlaw, review
from agent_bridge.projection.ledger import Ledger
from agent_bridge.projection.plan import Decision, Evidence, Wanted, decide
from agent_bridge.projection.targets import Target, why_misled

_TRIES = 3


@dataclass(slots=True)
class Outcome:
    """What one pass over the targets did.

    `left_out` maps a target's path to the ids that didn't fit there; `waiting` says what Git is doing, in
    words, where a tracked file has to wait for it; `said` maps a path to the ids that its block includes.
    """

    wrote: list[Path] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    left_out: dict[str, tuple[str, ...]] = field(default_factory=dict)
    said: dict[str, tuple[str, ...]] = field(default_factory=dict)
    waiting: str | None = None

    def after(self, first: Outcome) -> Outcome:
        """What two passes did, of which this was the second."""
        return replace(self, wrote=[*first.wrote, *self.wrote], notices=[*first.notices, *self.notices])


class Projector:
    """Writes blocks for one owner; remembers what it wrote, so that its own bytes need no second look."""

    def __init__(self, ledger: Ledger, state: Path, step: Callable[[], None] = lambda: None) -> None:
        """`step` is called before each target."""
        self._step = step
        self._ledger = ledger
        self._state = state
        self._written: dict[Path, bytes] = {}
        self._written_at: dict[Path, float] = {}

    def project(
        self, targets: Sequence[Target], wanted: Wanted, checkouts: Mapping[Path, git.Checkout]
    ) -> Outcome:
        """Bring every target in line; trouble with one is told in the outcome and stops no other.

        `checkouts` by their root; a tracked file waits while Git is at work in its own.
        """
        outcome = Outcome()
        for target in targets:
            self._step()
            checkout = checkouts.get(target.checkout) if target.checkout and target.tracked else None
            busy = git.activity(checkout) if checkout is not None else None
            if checkout is not None and busy:
                outcome.waiting = f"Git is at work ({busy}) in {checkout.root}"
                continue
            try:
                self._project_one(target, wanted, checkout, outcome)
            except AgentBridgeError as error:
                # Bytes of ours that come back are no echo then: they end the trouble.
                self._written.pop(target.real, None)
                outcome.notices.append(Notice("warning", error.code, error.sentence(), target.path))
        return outcome

    def knows(self, path: Path) -> bool:
        """Whether we have written the file at this real path."""
        return path in self._written

    def wrote(self, path: Path, data: bytes) -> bool:
        """Whether these are the bytes that we wrote there last."""
        return self._written.get(path) == data

    def _project_one(
        self, target: Target, wanted: Wanted, checkout: git.Checkout | None, outcome: Outcome
    ) -> None:
        for attempt in range(_TRIES):
            # What was surveyed may have become a link that leads out of the checkout since.
            image = files.read_image(target.path, within=target.checkout)
            misled = target.checkout and why_misled(target.path, image.real, target.checkout)
            if misled:
                text = f"{target.path} can't hold a block: {misled}."
                outcome.notices.append(Notice("warning", "carrier-misled", text, target.path))
                return
            if _vanished(target, image):
                return
            evidence, wait = self._evidence(target, image, checkout)
            if wait:
                outcome.waiting = wait
                return
            decision = decide(target, image.data if image.existed else None, wanted, evidence)
            if decision.refused is not None:
                self._written.pop(image.real, None)
                outcome.notices.append(decision.refused)
                return
            self._keep_candidates(target, decision, image.data, wanted, outcome)
            if checkout is not None and git.activity(checkout):
                outcome.waiting = f"Git has begun to work in {checkout.root}"
                return
            try:
                changed = self._write(target, image, decision)
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
                continue
            if changed:
                outcome.wrote.append(target.path)
            if decision.left_out:
                outcome.left_out[str(target.path)] = decision.left_out
            outcome.said[str(target.path)] = decision.included + decision.skipped
            return

    def _evidence(
        self, target: Target, image: FileImage, checkout: git.Checkout | None
    ) -> tuple[Evidence, str | None]:
        entry = self._ledger.get(target.path)
        separator = None if entry is None or entry.separator is None else entry.separator.encode("ascii")
        ours = image.existed and self._written.get(image.real) == image.data
        revisions: tuple[bytes, ...] = ()
        if not ours and checkout is not None:
            relative = image.real.relative_to(checkout.root).as_posix()
            wait = gitlaw.restored_by_stash(
                checkout, relative, image.data, written_at=self._written_at.get(image.real)
            )
            if wait:
                return Evidence(), wait
            if not managed_block.is_ours(image.data):
                revisions = gitlaw.committed_versions(checkout, relative)
        evidence = Evidence(
            ours=ours,
            recorded=entry is not None,
            created=entry is not None and entry.created,
            separator=separator,
            revisions=revisions,
        )
        return evidence, None

    def _keep_candidates(
        self, target: Target, decision: Decision, data: bytes, wanted: Wanted, outcome: Outcome
    ) -> None:
        for text in decision.candidates:
            edit = block_edits.describe(text, data, wanted.facts)
            review.keep_candidate(
                self._state,
                text,
                origin=str(target.path),
                why=edit.why,
                now=datetime.now(UTC),
                similar=edit.fact_id,
                score=edit.score,
            )
        names = {review.candidate_id(text) for text in decision.candidates}
        count = sum(review.candidate_file(self._state, name).exists() for name in names)
        if count:  # not the rejected ones
            texts = "1 text was" if count == 1 else f"{count} texts were"
            text = f"{texts} found inside the block of {target.path} and kept for review."
            outcome.notices.append(Notice("info", "candidates", text, target.path))

    def _write(self, target: Target, image: FileImage, decision: Decision) -> bool:
        if decision.after is None:
            if image.existed:
                apply.remove_file(self._ledger, image)
            self._written.pop(image.real, None)
            return image.existed
        if not image.existed and not decision.after:
            return False
        header = target.header if target.own else ""
        changed = apply.write_block(
            self._ledger, image, decision.after, separator=decision.separator, header=header
        )
        if decision.included or decision.skipped or changed:
            self._written[image.real] = decision.after
        if changed:
            self._written_at[image.real] = datetime.now(UTC).timestamp()
        if target.retired:
            self._written.pop(image.real, None)
            self._ledger.drop(str(target.path))
        return changed


def _vanished(target: Target, image: FileImage) -> bool:
    """Whether the file went with its checkout, or goes with it right now: `git worktree remove` deletes the
    files first. One that Git tracks and that is gone is put back by a person or by Git, not by us."""
    if target.checkout is None or image.existed:
        return False
    return target.tracked or not target.checkout.is_dir()
