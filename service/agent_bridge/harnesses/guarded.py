"""Other people's harnesses, so that nothing they do can break ours: errors, wrong answers, slowness, words on
standard output, which is for our own answers, and calls that never end."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, TypeVar

from agent_bridge.harnesses.base import (
    Adoption,
    Carrier,
    Ground,
    Harness,
    InstructionFile,
    KeyEdit,
    LinkEdit,
    Mode,
    NativeItem,
    Notice,
    Read,
    Scope,
    Site,
)
from agent_bridge.harnesses.row import is_below

SLOW_S = 1.0
"""Seconds after which an answer counts as slow."""

SLOW_TIMES = 3
"""After so many slow answers a harness isn't asked again by this process: one may be the machine's fault."""

PATIENCE_S = 5.0
"""Seconds that one answer may take; who takes longer isn't asked again by this process."""

T = TypeVar("T")


def within(seconds: float, ask: Callable[[], T]) -> T:
    """What `ask` answers, or what it raises; RuntimeError for what isn't an error, SystemExit say.

    Raises TimeoutError where it takes longer; it goes on in a thread of its own then. What it prints
    meanwhile goes to standard error.
    """
    answers: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - it is raised again where it was asked for
            raised.append(error)

    thread = threading.Thread(target=work, name="another distribution's harness", daemon=True)
    with redirect_stdout(sys.stderr):
        thread.start()
        thread.join(seconds)
    for error in raised:
        if isinstance(error, Exception):
            raise error
        raise RuntimeError(f"{type(error).__name__}: {error}") from error
    if not answers:
        raise TimeoutError(f"it had no answer within {seconds:g} seconds")
    return answers[0]


class Broken(Harness):
    """The place of a harness that could not be had: it only says so."""

    def __init__(self, label: str, why: str) -> None:
        """`label` names the entry point and its distribution."""
        self.name = f"entry-point:{label}"
        self.title = label
        self.why = why

    def detect(self, env: Mapping[str, str]) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def projection_mode(self, scope: Scope) -> Mode:  # noqa: ARG002
        """In no way."""
        return Mode.NONE

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:  # noqa: ARG002
        """None."""
        return ()

    def notices(self, site: Site) -> tuple[Notice, ...]:  # noqa: ARG002
        """Why it could not be had."""
        text = f"The harness {self.title} can't be used: {self.why}. The others go on without it."
        return (Notice("warning", "harness-broken", text),)


class Guarded(Harness):
    """A harness of somebody else's: a wrong answer counts as none, and is told."""

    only_if_used = True

    def __init__(self, inner: Harness) -> None:
        """`inner` is asked until it has been slow too often."""
        self.inner = inner
        self.name = inner.name
        self.title = inner.title
        self._trouble: dict[str, str] = {}
        self._slow = 0

    def detect(self, env: Mapping[str, str]) -> bool:
        """As it says."""
        return self._ask("detect", lambda: self.inner.detect(env) is True, default=False)

    def projection_mode(self, scope: Scope) -> Mode:
        """As it says."""
        return self._ask(
            "projection_mode", lambda: Mode(self.inner.projection_mode(scope)), default=Mode.NONE
        )

    def listings_wanted(self, ground: Ground) -> tuple[Path, ...]:
        """Absolute paths."""
        return self._paths("listings_wanted", lambda: self.inner.listings_wanted(ground))

    def config_wanted(self, ground: Ground, listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:
        """Absolute paths."""
        return self._paths("config_wanted", lambda: self.inner.config_wanted(ground, listings))

    def names_above(self, ground: Ground) -> tuple[str, ...]:
        """Texts."""
        return self._all("names_above", str, lambda: self.inner.names_above(ground))

    def names_below(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[str, ...]:
        """Texts."""
        return self._all("names_below", str, lambda: self.inner.names_below(ground, config))

    def files_wanted(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[Path, ...]:
        """Absolute paths."""
        return self._paths("files_wanted", lambda: self.inner.files_wanted(ground, config))

    def follows(self, ground: Ground, file: InstructionFile) -> tuple[Path, ...]:
        """Absolute paths."""
        return self._paths("follows", lambda: self.inner.follows(ground, file))

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """Those of the scope that was asked for; a project's lie below its checkout."""
        found = self._all("carriers", Carrier, lambda: self.inner.carriers(site, scope))
        good = tuple(carrier for carrier in found if _is_sound(carrier, site, scope))
        if len(good) != len(found):
            self._trouble["carriers"] = "a carrier's path or scope isn't right"
        return good

    def key_edits(self, site: Site) -> tuple[KeyEdit, ...]:
        """Key edits."""
        return self._all("key_edits", KeyEdit, lambda: self.inner.key_edits(site))

    def disable_native_memory(self, site: Site) -> tuple[KeyEdit, ...]:
        """Key edits."""
        return self._all("disable_native_memory", KeyEdit, lambda: self.inner.disable_native_memory(site))

    def links(self, site: Site) -> tuple[LinkEdit, ...]:
        """Links."""
        return self._all("links", LinkEdit, lambda: self.inner.links(site))

    def adoptions(self, site: Site) -> tuple[Adoption, ...]:
        """Adoptions."""
        return self._all("adoptions", Adoption, lambda: self.inner.adoptions(site))

    def notices(self, site: Site) -> tuple[Notice, ...]:
        """Its own, and what went wrong with it."""
        found = self._all("notices", Notice, lambda: self.inner.notices(site))
        return (*found, *map(self._told, sorted(self._trouble.items())))

    def memory_location(self, site: Ground) -> Path | None:
        """A path or none."""
        return self._ask("memory_location", lambda: _path_or_none(self.inner.memory_location(site)), None)

    def native_memory(self, env: Mapping[str, str]) -> list[NativeItem]:
        """Items."""
        return list(self._all("native_memory", NativeItem, lambda: self.inner.native_memory(env)))

    def memory_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Absolute paths."""
        return self._paths("memory_places", lambda: self.inner.memory_places(env))

    def hook_edits(self, site: Site, command: str) -> tuple[KeyEdit, ...]:
        """Key edits."""
        return self._all("hook_edits", KeyEdit, lambda: self.inner.hook_edits(site, command))

    def mcp_edits(self, site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:
        """Key edits."""
        return self._all("mcp_edits", KeyEdit, lambda: self.inner.mcp_edits(site, command))

    def skill_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Absolute paths."""
        return self._paths("skill_places", lambda: self.inner.skill_places(env))

    def reads(self, site: Site, start: Path) -> tuple[Read, ...]:
        """Reads."""
        return self._all("reads", Read, lambda: self.inner.reads(site, start))

    def hand_written(self, site: Site) -> list[NativeItem]:
        """Items."""
        return list(self._all("hand_written", NativeItem, lambda: self.inner.hand_written(site)))

    def watch_places(self, site: Site) -> tuple[Path, ...]:
        """Absolute paths."""
        return self._paths("watch_places", lambda: self.inner.watch_places(site))

    def _paths(self, name: str, ask: Callable[[], Any]) -> tuple[Path, ...]:
        return tuple(path for path in self._all(name, Path, ask) if path.is_absolute())

    def _all(self, name: str, kind: type[T], ask: Callable[[], Any]) -> tuple[T, ...]:
        """The answers, if all of them are of one kind."""

        def checked() -> tuple[T, ...]:
            answers = tuple(ask())
            if not all(isinstance(answer, kind) for answer in answers):
                raise TypeError(f"not every answer is a {kind.__name__}")
            return answers

        return self._ask(name, checked, ())

    def _ask(self, name: str, ask: Callable[[], T], default: T) -> T:
        if self._slow >= SLOW_TIMES:
            return default
        started = time.monotonic()
        try:
            answer = within(PATIENCE_S, ask)
        except TimeoutError as error:
            self._slow = SLOW_TIMES
            self._trouble[name] = f"{error}; it isn't asked any more"
            return default
        except Exception as error:  # noqa: BLE001 - whatever other people's code raises is told, and harms nobody
            self._trouble[name] = f"{type(error).__name__}: {error}"
            return default
        took = time.monotonic() - started
        if took > SLOW_S:
            self._slow += 1
            if self._slow >= SLOW_TIMES:
                self._trouble[name] = f"it took {took:.1f} seconds, once too often: it isn't asked any more"
                return default
        self._trouble.pop(name, None)
        return answer

    def _told(self, trouble: tuple[str, str]) -> Notice:
        name, why = trouble
        text = f"The harness {self.title} ({self.name}) failed at {name}: {why}. The others go on without it."
        return Notice("warning", "harness-broken", text)


def _is_sound(carrier: Carrier, site: Site, scope: Scope) -> bool:
    if carrier.scope is not scope or not isinstance(carrier.path, Path) or ".." in carrier.path.parts:
        return False
    if scope is Scope.PROJECT:
        below = carrier.path.is_relative_to(site.checkout)
        return below and is_below(carrier.path.relative_to(site.checkout).as_posix())
    return carrier.path.is_absolute()


def _path_or_none(value: object) -> Path | None:
    if value is None or isinstance(value, Path):
        return value
    raise TypeError(f"{type(value).__name__} isn't a path")
