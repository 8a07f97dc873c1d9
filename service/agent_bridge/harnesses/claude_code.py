"""Claude Code: its memory directory becomes the store, and one file carries the bodies.

Source: Claude Code 2.1.332, by running it. Through a link in the place of its memory directory it reads the
index, but no fact, and writes nothing. What `autoMemoryDirectory` names in `.claude/settings.local.json` of
the main checkout it reads and writes, in worktrees and sub-directories too; it must be a real directory.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import (
    agents_md,
    claude_carriers,
    claude_hooks,
    claude_mcp,
    claude_notes,
    claude_places,
    claude_reads,
    claude_settings,
    skill_places,
)
from agent_bridge.harnesses.base import (
    Adoption,
    Carrier,
    FileKind,
    Ground,
    Harness,
    HookRoom,
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
from agent_bridge.projects import STORE_NAME


class ClaudeCode(Harness):
    """Claude Code, Anthropic's command line."""

    name = claude_carriers.NAME
    title = "Claude Code"
    hook_room = HookRoom(utf16=claude_hooks.CONTEXT_LIMIT)

    def detect(self, env: Mapping[str, str]) -> bool:
        """Whether its home exists or `claude` is on PATH."""
        return paths.claude_home(env).is_dir() or shutil.which("claude", path=env.get("PATH")) is not None

    def projection_mode(self, scope: Scope) -> Mode:
        """A project's store is its memory directory; the user's own facts are rendered."""
        return Mode.SYMLINK if scope is Scope.PROJECT else Mode.RENDER

    def config_wanted(self, ground: Ground, listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:  # noqa: ARG002
        """Settings of the machine, the user, the project and the user's for the project; MCP servers."""
        own = claude_places.layers(ground)
        return own if ground.project is None else (*own, claude_mcp.servers_file(ground))

    def names_above(self, ground: Ground) -> tuple[str, ...]:  # noqa: ARG002
        """Each of these hides AGENTS.md, also from a directory above the project."""
        return claude_carriers.OWN_FILES

    def names_below(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[str, ...]:  # noqa: ARG002
        """A CLAUDE.md below the root hides AGENTS.md in sessions started beside it."""
        return (claude_carriers.MAIN, claude_carriers.LOCAL)

    def files_wanted(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[Path, ...]:
        """Instruction files, the places that decide about them, and the memory directory."""
        home = paths.claude_home(ground.env)
        if ground.project is None:
            return (home / claude_carriers.MAIN, paths.codex_home(ground.env) / agents_md.NAME)
        names = (
            agents_md.NAME,
            *claude_carriers.OWN_FILES,
            ".claude",
            ".claude/rules",
            claude_carriers.RULES,
        )
        chosen = claude_settings.memory_directory(Site.of_settings(ground, config))
        return (
            *(ground.checkout / name for name in names),
            home / claude_carriers.MAIN,
            ground.project.store,
            ground.project.root / ".claude",
            claude_places.memory_directory(ground),
            *([chosen.value] if chosen is not None and isinstance(chosen.value, Path) else []),
        )

    def follows(self, ground: Ground, file: InstructionFile) -> tuple[Path, ...]:
        """Imports."""
        return claude_carriers.follows(ground, file)

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """One file at most, and in a project CLAUDE.md too where its user asked for that."""
        return site.once((self.name, scope), lambda: self._carriers(site, scope))

    def memory_location(self, ground: Ground) -> Path | None:
        """`projects/<slug>/memory` in its home."""
        return None if ground.project is None else claude_places.memory_directory(ground)

    def links(self, site: Site) -> tuple[LinkEdit, ...]:
        """The memory directory as a link into the store, from the main checkout alone; worktrees share it."""
        if site.project is None or not _keeps_memory_here(site):
            return ()
        place = site.file(claude_places.memory_directory(site))
        store = site.file(site.project.store)
        if place.kind in (FileKind.FILE, FileKind.SYMLINK, FileKind.OTHER):
            return ()
        if place.is_directory and place.identity == store.identity:
            return () if place.kind is FileKind.DIRECTORY else (self._link(place.path, store.real),)
        return (self._link(place.path, store.real),)

    def key_edits(self, site: Site) -> tuple[KeyEdit, ...]:
        """`autoMemoryDirectory`, without which it may not write facts."""
        if site.project is None or not _keeps_memory_here(site):
            return ()
        path = claude_places.local_settings(site)
        if self._settings_problem(site):
            return ()
        return (
            KeyEdit(
                path=path,
                format="json",
                key=(claude_settings.MEMORY_DIRECTORY,),
                value=str(site.file(site.project.store).real),
                why="Claude Code reads and writes the store without asking only as its memory directory",
                local=True,
            ),
        )

    def hook_edits(self, site: Site, command: str) -> tuple[KeyEdit, ...]:
        """A hook in the project's settings.local.json."""
        if site.project is None or self._settings_problem(site):
            return ()
        return claude_hooks.edits(site, command)

    def mcp_edits(self, site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:  # noqa: ARG002
        """The server in `.mcp.json`, and the leave to use it in the project's settings.local.json."""
        if site.project is None:
            return ()
        changeable = site.project.main is None and site.is_main and not self._settings_problem(site)
        return claude_mcp.edits(site, may_change_settings=changeable)

    def adoptions(self, site: Site) -> tuple[Adoption, ...]:
        """A directory of the user's choice that our key would put aside, and one behind a foreign link."""
        if site.project is None or not _keeps_memory_here(site):
            return ()
        found: list[Adoption] = []
        said = claude_settings.memory_directory(site)
        chosen = site.file(said.value) if said is not None and isinstance(said.value, Path) else None
        if (
            said is not None
            and chosen is not None
            and chosen.is_directory
            and self._may_adopt(site, chosen)
            and not self._is_the_repositorys_word(site, said, chosen)
        ):
            everywhere = said.path == claude_places.user_settings(site.env)
            scope = Scope.GLOBAL if everywhere else Scope.PROJECT
            found.append(Adoption(chosen.path, scope, f"{said.where} names it as Claude Code's memory"))
        place = site.file(claude_places.memory_directory(site))
        if place.kind is FileKind.LINKED_DIRECTORY and self._may_adopt(site, place):
            found.append(Adoption(place.real, Scope.PROJECT, f"{place.path} was a link to it"))
        return tuple(found)

    def notices(self, site: Site) -> tuple[Notice, ...]:
        """Carrier, settings and memory switches."""
        if site.project is None:
            return ()
        choice = claude_carriers.choose(site)
        found = [*choice.notices, *claude_carriers.asked_for(site, choice.carrier).notices]
        if site.project.delivery == "hooks":
            found += claude_hooks.notices(site)
        if site.project.mcp:
            found += claude_mcp.notices(site)
        if site.project.main is not None:
            text = (
                "Claude Code keeps one memory for a repository and all its worktrees: here it shows and "
                f"writes that of {site.project.main}. The texts of this worktree's own facts reach it too."
            )
            found.append(Notice("info", "claude-memory-of-main", text, site.project.main))
        elif site.is_main:
            found += self._memory_notices(site)
        return tuple(found)

    def skill_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Its own directory first."""
        return skill_places.of_claude_code(env)

    def reads(self, site: Site, start: Path) -> tuple[Read, ...]:
        """Instruction files, rules and the index of the memory."""
        return claude_reads.reads(site, start)

    def hand_written(self, site: Site) -> list[NativeItem]:
        """Texts in CLAUDE.md and its like, in rules files, and its memories that aren't in the store yet."""
        return claude_notes.hand_written(site)

    def watch_places(self, site: Site) -> tuple[Path, ...]:
        """The root, `.claude`, its rules, Claude's home and the parent of the memory directory."""
        home = paths.claude_home(site.env)
        if site.project is None:
            return (home,)
        below = (site.checkout, site.checkout / ".claude", site.checkout / ".claude" / "rules")
        return (*below, home, claude_places.memory_directory(site).parent)

    def _carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        if scope is Scope.GLOBAL:
            found = [claude_carriers.choose_global(site).carrier]
        elif site.project is None:
            return ()
        else:
            chosen = claude_carriers.choose(site).carrier
            found = [chosen, claude_carriers.asked_for(site, chosen).carrier]
        return tuple(carrier for carrier in found if carrier is not None)

    def _link(self, path: Path, target: Path) -> LinkEdit:
        return LinkEdit(
            path, target, "Claude Code's own place for this project's memory leads into the store"
        )

    def _may_adopt(self, site: Site, place: InstructionFile) -> bool:
        """Whether a directory can be a memory: not the store, and nothing that holds the home or the project.

        A repository's settings may name any directory; `/` would be read whole.
        """
        if site.project is None:
            return False
        store = site.file(site.project.store).real
        held = (paths.home(site.env), site.project.root, store)
        return not any(each.is_relative_to(name) for each in held for name in (place.path, place.real))

    def _is_the_repositorys_word(
        self, site: Site, said: claude_settings.Said, place: InstructionFile
    ) -> bool:
        """Whether a file that Git tracks names a directory outside of the project.

        What is taken over is shared: a repository must not be able to publish its user's notes.
        """
        if site.project is None or said.path is None or not site.file(said.path).tracked:
            return False
        return not place.real.is_relative_to(site.project.root)

    def _is_too_wide(self, site: Site, chosen: Path) -> bool:
        place = site.file(chosen)
        ours = site.project is not None and place.real == site.file(site.project.store).real
        return place.is_directory and not ours and not self._may_adopt(site, place)

    def _settings_problem(self, site: Site) -> str:
        """Why `settings.local.json` can't be edited, "" if it can."""
        path = claude_places.local_settings(site)
        file = site.file(path)
        if file.kind is not FileKind.ABSENT and (why := agents_md.why_unusable(file)):
            return why
        folder = site.file(path.parent)
        if not folder.inside or (folder.kind is not FileKind.ABSENT and not folder.is_directory):
            return f"{folder.path} leads to {folder.real}, outside of the repository or to no directory"
        if file.real.is_relative_to(site.checkout):
            below = file.real.relative_to(site.checkout).parts
            if ".git" in map(str.lower, below) or below[0] == STORE_NAME:
                return f"it leads to {file.real}, which is Git's own or the memory itself"
        return claude_settings.parse(site.settings(path) or b"")[1]

    def _wins_over_us(self, site: Site, said: claude_settings.Said) -> bool:
        """Whether a value that we can't change names another directory than the store."""
        fixed = said.path is None or said.path == claude_places.POLICY
        return (
            fixed and site.project is not None and str(said.value) != str(site.file(site.project.store).real)
        )

    def _memory_notices(self, site: Site) -> list[Notice]:
        off = claude_settings.memory_switched_off(site)
        if off is not None:
            text = (
                f"Claude Code's memory is switched off by {off.where}. That is respected: it gets the texts "
                "of facts, but it adds none by itself."
            )
            return [Notice("info", "claude-memory-off", text, off.path)]
        found = [
            Notice("warning", "claude-settings", f"{path} can't be read as JSON: {why}.", path)
            for path, why in claude_settings.problems(site)
        ]
        local = claude_places.local_settings(site)
        why = self._settings_problem(site)
        if why and not any(notice.path == local for notice in found):
            text = f"{local} can't be changed: {why}. Claude Code will ask before it writes a fact."
            found.append(Notice("warning", "claude-local-settings", text, local))
        said = claude_settings.memory_directory(site)
        if said is not None and self._wins_over_us(site, said):
            text = f"{said.where} decides where Claude Code keeps its memory and wins over what we set."
            found.append(Notice("warning", "claude-memory-elsewhere", text, said.path))
        if said is not None and isinstance(said.value, Path) and self._is_too_wide(site, said.value):
            text = f"{said.where} names {said.value} as Claude Code's memory; nothing is taken over from it."
            found.append(Notice("warning", "claude-memory-too-wide", text, said.path))
        elif said is not None and isinstance(said.value, Path):
            chosen = site.file(said.value)
            if chosen.is_directory and self._is_the_repositorys_word(site, said, chosen):
                text = (
                    f"{said.where} comes with the repository and names {said.value} as Claude Code's memory; "
                    "nothing is taken over from it."
                )
                found.append(Notice("warning", "claude-memory-not-yours", text, said.path))
        place = site.file(claude_places.memory_directory(site))
        if place.kind in (FileKind.FILE, FileKind.SYMLINK, FileKind.OTHER):
            text = f"{place.path} is no directory; it is left alone."
            found.append(Notice("warning", "claude-memory-place", text, place.path))
        if site.file(local).tracked:
            text = f"{local} is tracked by Git, so the path of the store will show there as a change."
            found.append(Notice("info", "claude-local-settings-tracked", text, local))
        return found


def _keeps_memory_here(site: Site) -> bool:
    """Whether its memory for this project is the project's own: worktrees have the main checkout's."""
    own = site.project is not None and site.project.main is None and site.is_main
    return own and claude_settings.memory_switched_off(site) is None
