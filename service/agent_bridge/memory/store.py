"""A store: a directory of facts, read as a whole and written one fact at a time.

The files are the truth. Reading creates nothing; writing happens under the store's lock in its state
directory and never overwrites a file that changed meanwhile.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from agent_bridge import files
from agent_bridge.errors import AgentBridgeError, RefusedError
from agent_bridge.memory import fact_cache, naming, scan, snapshot
from agent_bridge.memory.adding import EDITS_WITHIN_S, Added, Adding, as_seen, create_new
from agent_bridge.memory.documents import DOCUMENTS, Document
from agent_bridge.memory.draft import Draft, check_text, revised
from agent_bridge.memory.fact import (
    MAX_BYTES,
    Fact,
    FactProblem,
    is_fact_name,
    parse_fact,
    plain_body,
    set_keys,
)
from agent_bridge.memory.finding import Similar, fact_at, find_fact, refuse_duplicate, similar_facts
from agent_bridge.memory.privacy import Judgements, PrivacyRecord
from agent_bridge.memory.scan import Known
from agent_bridge.memory.snapshot import Problem, Snapshot
from agent_bridge.memory.texts import Texts
from agent_bridge.paths import ensure_private_dir

__all__ = ["Added", "Document", "Draft", "Problem", "Similar", "Snapshot", "Store"]

IGNORED = ("MEMORY.md", "index.json")
"""Derived files: what a store's own .gitignore names."""


class Store:
    """The facts below `root`. `state` is a private directory outside the repository, for this store alone."""

    def __init__(
        self,
        root: Path,
        *,
        scope: str = "project",
        state: Path,
        lock_timeout_s: float = 30.0,
        threshold: float = 0.5,
        step: Callable[[], None] = lambda: None,
    ) -> None:
        """`step` is called for each file that a scan looks at; it may end the scan by raising."""
        self.root = root
        self.scope = scope
        self.state = state
        self._lock_timeout_s = lock_timeout_s
        self._threshold = threshold
        self._step = step
        self._privacy = PrivacyRecord(state)
        self._known: dict[str, Known] | None = None
        self._listing_problems: tuple[Problem, ...] = ()
        self._judged: object = None
        self._snapshot: Snapshot | None = None
        self._scanned_at = -EDITS_WITHIN_S
        self._texts = Texts(threshold)

    # --- reading

    def scan(self) -> Snapshot:
        """The store as it is now. Reads only what changed; the same object where nothing did."""
        self._scanned_at = time.monotonic()
        return self._scan(trusting=False)

    def _scan(self, *, trusting: bool) -> Snapshot:
        """`trusting`: what is the same file as before is taken to hold the same."""
        root = os.path.realpath(self.root)
        known = self._known
        listing = scan.walk(root, known if trusting else None)
        cached = known is None
        if known is None:
            known = fact_cache.load(fact_cache.cache_path(self.state), root)
        now: dict[str, Known] = {}
        read = 0
        for path, signature in listing.found.items():
            self._step()
            one = known.get(path)
            if one is None or (one.racy and not trusting) or one.signature != signature:
                before, one = one, scan.read(root, path, listing.links.get(path), one)
                read += one is not None and (before is None or not one.says_the_same(before))
            if one is not None:
                now[path] = one
        if cached and read >= fact_cache.WORTHWHILE:
            fact_cache.save(fact_cache.cache_path(self.state), root, now)
        return self._settle(now, listing.problems, unchanged=not read and now.keys() == known.keys())

    def refresh(self, *paths: Path) -> Snapshot:
        """The store with these files read anew, all else as the last scan knew it (a scan if none was)."""
        root = os.path.realpath(self.root)
        if self._known is None:
            return self.scan()
        now = dict(self._known)
        same = True
        for path in paths:
            full = Path(os.path.realpath(path.parent)) / path.name
            relative = PurePosixPath(os.path.relpath(full, root)).as_posix()
            hidden = any(part.startswith(".") for part in relative.split("/"))
            deep = relative.count("/") > scan.MAX_DEPTH
            if hidden or deep or not is_fact_name(path.name) or not scan.is_plain(full):
                return self.scan()
            before = now.pop(relative, None)
            one = scan.read(root, relative, None, before)
            if one is not None:
                now[relative] = one
            same = same and scan.is_same(before, one)
        return self._settle(now, self._listing_problems, unchanged=same)

    def find(self, key: str) -> Fact:
        """The fact with this id or path (with or without .md), or the only one whose id begins so.

        Raises NotFoundError, UsageError where several begin so.
        """
        return find_fact(self.scan().facts, key)

    def similar(self, text: str, *, but: str = "") -> list[Similar]:
        """The facts that resemble a text, the most similar first; `but` is an id to leave out."""
        return similar_facts(self.scan().facts, text, threshold=self._threshold, but=but)

    # --- writing

    def create(self) -> None:
        """Make the store's directories and its .gitignore, where they are missing."""
        if self.scope == "global":
            ensure_private_dir(self.root)
        (self.root / "entries").mkdir(parents=True, exist_ok=True)
        image = files.read_image(self.root / ".gitignore", within=self.root, plain=True)
        present = image.data.decode("utf-8", "replace").splitlines()
        missing = [name for name in IGNORED if name not in present]
        if missing:
            gap = b"" if image.data.endswith(b"\n") or not image.data else b"\n"
            data = image.data + gap + "".join(f"{name}\n" for name in missing).encode()
            files.replace(image, data, keep_dir=self._keep_dir)

    def add(
        self,
        text: str,
        *,
        tags: Iterable[str] = (),
        type: str = "project",  # noqa: A002 - the key's own name
        source: str = "cli",
        private: bool = False,
        title: str | None = None,
        pinned: bool = False,
        origin: str = "",
        now: datetime | None = None,
    ) -> Added:
        """Add a fact. Raises DuplicateError (names the fact of this text), UsageError, LockTimeoutError."""
        draft = Draft(
            text=text,
            tags=tuple(tags),
            type=type,
            source=source,
            private=private,
            title=title,
            pinned=pinned,
            origin=origin,
        )
        [done] = self.add_all([draft], now=now)
        if isinstance(done, AgentBridgeError):
            raise done
        return done

    def add_all(
        self, drafts: Sequence[Draft], *, now: datetime | None = None
    ) -> list[Added | AgentBridgeError]:
        """Add facts in one go, with one look at the store; for each what was added, or what `add` raises.

        Raises only what concerns all of them: LockTimeoutError, or a store that can't be made.
        """
        moment = now or datetime.now(UTC)
        done: list[Added | AgentBridgeError] = []
        with self.locked("add a fact"):
            adding: Adding | None = None
            for draft in drafts:
                try:
                    draft.check(moment)
                    adding = adding or self._begin_adding(moment, sync=len(drafts) == 1)
                    done.append(adding.put(draft))
                except AgentBridgeError as error:
                    done.append(error)
            return self._settle_added(drafts, done)

    def adopt(self, data: bytes, name: str, source: str, *, private: bool = False) -> Added:
        """Take a file over from a harness: its frontmatter stays byte for byte.

        `name` is its name there (may hold directories); a taken name gets `.imported-N`. A file without
        frontmatter gets one that names `source`. Raises DuplicateError, FactProblem, EmptyFact.
        """
        parsed = parse_fact(name, data)
        if not data.removeprefix(b"\xef\xbb\xbf").startswith(b"---"):
            data = set_keys(data, {"source": source})
        if private and not parsed.private:
            data = set_keys(data, {"private": True})
        stem = naming.safe_stem(name, parsed.body)
        with self.locked("take over a fact"):
            facts = self.scan().facts
            refuse_duplicate(facts, parsed.body)
            self.create()
            path = create_new(
                self.root,
                lambda attempt: f"{stem}.md" if not attempt else f"{stem}.imported-{attempt}.md",
                lambda _: data,
                keep_dir=self._keep_dir,
            )
            return self._added(path, facts, private=private)

    def edit(
        self,
        key: str,
        text: str | None = None,
        *,
        title: str | None = None,
        tags: Iterable[str] | None = None,
        now: datetime | None = None,
    ) -> Fact:
        """Give a fact another text, title or tags; what is None stays, and so does every other key.

        Raises NotFoundError, DuplicateError, RefusedError, ConflictError, UsageError.
        """
        with self.locked("edit a fact"):
            facts = self.scan().facts
            fact = find_fact(facts, key)
            if text is not None:
                refuse_duplicate([one for one in facts if one.path != fact.path], text)
                check_text(plain_body(text), text.encode())
            moment = now or datetime.now(UTC)
            return self._rewrite(
                fact, lambda data: revised(data, fact, text=text, title=title, tags=tags, now=moment)
            )

    def remove(self, key: str, *, keep: Callable[[bytes], object] = lambda _: None) -> Fact:
        """Delete a fact's file; `keep` gets the very bytes. ConflictError if it is saved just then."""
        with self.locked("remove a fact"):
            fact = self.find(key)
            image = files.read_image(self.root / fact.path, within=self.root)
            keep(image.data)
            files.delete(image, keep_dir=self._keep_dir)
            self.refresh(self.root / fact.path)
            return fact

    def share(self, key: str) -> Fact:
        """Judge a fact shared: its file says so where it must, and the record forgets it. Git is not touched.

        Raises RefusedError where the fact holds a credential or the same text is private elsewhere.
        """
        with self.locked("share a fact"):
            found = self.scan()
            fact = find_fact(found.facts, key)
            if fact.secrets:
                raise RefusedError(
                    f"This fact holds a credential ({', '.join(fact.secrets)}) and can't be shared",
                    path=self.root / fact.path,
                    remedy="Take it out of the text first.",
                )
            twins = [one for one in found.private if one is not fact and one.text_hash == fact.text_hash]
            if twins:
                raise RefusedError(
                    "The same text is private in another fact",
                    path=self.root / twins[0].path,
                    remedy="Share or remove that one first.",
                )
            if fact.private:
                fact = self._rewrite(fact, lambda data: set_keys(data, {"private": False}))
            self._privacy.release(fact)
            fact = fact_at(self.scan().facts, fact.path)
            if fact.private:
                raise RefusedError(
                    "Another line of this fact's file still says that it is private",
                    path=self.root / fact.path,
                    remedy="Remove that line by hand.",
                )
            return fact

    def unshare(self, key: str) -> Fact:
        """Judge a fact private, in its file and in the record. Git is not touched."""
        with self.locked("make a fact private"):
            fact = self.find(key)
            self._privacy.add([fact])
            if fact.private:
                return fact
            return self._rewrite(fact, lambda data: set_keys(data, {"private": True}))

    def recover(self) -> list[str]:
        """Clear away what a killed writer left in store and state; sentences about what touched a fact.

        The caller holds the lock of whoever else writes into the state directory.
        """
        with self.locked("repair the store"), self._privacy.locked("repair the record of private facts"):
            folders = {PurePosixPath(path).parent for path in (self._known or {})} | {
                PurePosixPath("entries")
            }
            state = [Path(directory) for directory, _, _ in os.walk(self.state)]
            places = [*state, self.root, *sorted(self.root / folder for folder in folders)]
            return files.recover(self._keep_dir, [place for place in places if place.is_dir()])

    # --- details

    @property
    def _keep_dir(self) -> Path:
        return self.state / "kept"

    def locked(self, purpose: str) -> files.Locking:
        """Hold the store's lock, which every writer takes."""
        return files.locked(self.state / "store.lock", timeout=self._lock_timeout_s, purpose=purpose)

    def _settle(self, now: dict[str, Known], problems: tuple[Problem, ...], *, unchanged: bool) -> Snapshot:
        """Turn what is known into a snapshot, and remember as private what is seen to be."""
        self._known = now
        judged = self._privacy.current()
        last = self._snapshot
        same = unchanged and judged == self._judged and problems == self._listing_problems
        if last is not None and same and not self._privacy.pending:
            return last
        self._listing_problems = problems
        known = now.values()
        ranked = [(one.order, one.fact) for one in known if one.fact is not None and one.order is not None]
        secret = [fact for _, fact in ranked if fact.private or fact.secrets]
        if judged:
            secret = [fact for _, fact in ranked if fact.private or fact.secrets or judged.hold(fact)]
        unheld = [fact for fact in secret if not judged.fully_hold(fact)]
        found = [*problems, *(one.problem for one in now.values() if one.problem is not None)]
        if (unheld or self._privacy.pending) and not judged.all_private:
            judged = self._remember(unheld, found)
            # What is private by its text makes twins private, which the new judgements know of only now.
            secret = [fact for _, fact in ranked if fact.private or judged.hold(fact)]
        self._judged = judged
        documents = tuple(
            one.document
            for name in DOCUMENTS
            if (one := now.get(name)) is not None and one.document is not None
        )
        if judged.all_private:
            found.append(
                Problem(
                    str(self._privacy.path),
                    "the record of private facts can't be read, so no fact is shared",
                    "Mend the file, or remove it: then only the marks in the facts' files count.",
                )
            )
        self._snapshot = snapshot.build(ranked, documents, found, frozenset(fact.path for fact in secret))
        return self._snapshot

    def _remember(self, private: list[Fact], problems: list[Problem]) -> Judgements:
        """Record these as private; a record that can't be written is told, and tried again next time."""
        try:
            return self._privacy.add(private)
        except AgentBridgeError as error:
            remedy = "Mend that: until then private facts stay private by this process alone."
            problems.append(Problem(str(self._privacy.path), f"it can't be written: {error.title}", remedy))
            return self._privacy.current()

    def _begin_adding(self, moment: datetime, *, sync: bool) -> Adding:
        is_recent = time.monotonic() - self._scanned_at < EDITS_WITHIN_S
        seen = self._scan(trusting=True) if is_recent else self.scan()
        self.create()
        self._texts.follow(seen.facts)
        return Adding(self.root, self._texts, moment, self._keep_dir, sync=sync)

    def _settle_added(
        self, drafts: Sequence[Draft], done: list[Added | AgentBridgeError]
    ) -> list[Added | AgentBridgeError]:
        """The same with the facts as the store sees them; what is meant to be private is remembered so."""
        paths = [self.root / one.fact.path for one in done if isinstance(one, Added)]
        if not paths:
            return done
        if len(drafts) > 1:
            files.sync_all(paths)
        settled = as_seen(done, self.refresh(*paths))
        wanted = [one for draft, one in zip(drafts, settled, strict=True) if draft.private]
        private = [one.fact for one in wanted if isinstance(one, Added)]
        if private:
            self._privacy.add(private)
        return settled

    def _added(self, path: str, before: Iterable[Fact], *, private: bool) -> Added:
        fact = fact_at(self.refresh(self.root / path).facts, path)
        if private:
            self._privacy.add([fact])
        return Added(fact, similar_facts(before, fact.body, threshold=self._threshold))

    def _rewrite(self, fact: Fact, change: Callable[[bytes], bytes]) -> Fact:
        path = self.root / fact.path
        image = files.read_image(path, within=self.root, limit=MAX_BYTES)
        try:
            data = change(image.data)
            parse_fact(fact.path, data)
        except FactProblem as problem:
            raise RefusedError(
                f"This fact can't be changed: {problem.reason}", path=path, remedy=problem.remedy
            ) from problem
        files.replace(image, data, keep_dir=self._keep_dir)
        return fact_at(self.refresh(path).facts, fact.path)
