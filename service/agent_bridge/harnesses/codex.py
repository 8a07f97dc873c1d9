"""Codex: a block in the AGENTS.md that it reads, and its own memories switched off once they are imported.

Source: Codex 0.171.0, by running it. In each directory it reads the first of AGENTS.override.md, AGENTS.md
and the fallback names; in an untrusted project none. Its memories are off unless `features.memories` (or the
older `features.memory_tool`) is true; `memories.use_memories = false` holds against layers that set the
feature alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from agent_bridge import paths
from agent_bridge.harnesses import (
    agents_md,
    codex_config,
    codex_hooks,
    codex_mcp,
    codex_memories,
    codex_notes,
    codex_reads,
    skill_places,
)
from agent_bridge.harnesses.base import (
    LEAST_BUDGET,
    NO_LIMIT,
    Carrier,
    FileKind,
    Ground,
    Harness,
    HookRoom,
    InstructionFile,
    KeyEdit,
    Mode,
    NativeItem,
    Notice,
    Read,
    Scope,
    Site,
)

_FEATURES = (("features", "memories"), ("features", "memory_tool"))
_OFF = (("features", "memories"), ("memories", "use_memories"), ("memories", "generate_memories"))


class Codex(Harness):
    """Codex CLI, OpenAI's command line."""

    name = "codex"
    title = "Codex"
    hook_room = HookRoom(utf8=codex_hooks.CONTEXT_BYTES)

    def detect(self, env: Mapping[str, str]) -> bool:
        """Whether its home exists or `codex` is on PATH."""
        return paths.codex_home(env).is_dir() or shutil.which("codex", path=env.get("PATH")) is not None

    def projection_mode(self, scope: Scope) -> Mode:  # noqa: ARG002
        """Both scopes are rendered."""
        return Mode.RENDER

    def listings_wanted(self, ground: Ground) -> tuple[Path, ...]:
        """Its home (profiles) and the directories that hold memories."""
        home = paths.codex_home(ground.env)
        return (home, *codex_memories.directories(home))

    def config_wanted(self, ground: Ground, listings: Mapping[str, tuple[str, ...]]) -> tuple[Path, ...]:
        """The user's settings, every profile, and the project's."""
        names = listings.get(str(paths.codex_home(ground.env)), ())
        user = (codex_config.user_file(ground.env), codex_hooks.hooks_file(ground.env))
        own = (*user, *codex_config.profile_files(ground.env, names))
        return own if ground.project is None else (*own, codex_config.project_file(ground))

    def names_below(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[str, ...]:  # noqa: ARG002
        """Their bytes are taken off the budget."""
        return (agents_md.OVERRIDE, agents_md.NAME, *codex_config.fallback_names_in(config))

    def files_wanted(self, ground: Ground, config: Mapping[str, bytes]) -> tuple[Path, ...]:
        """The root's instruction files and the user's own."""
        home = paths.codex_home(ground.env)
        own = (home, home / agents_md.OVERRIDE, home / agents_md.NAME)
        if ground.project is None:
            return own
        names = self.names_below(ground, config)
        return (*(ground.checkout / name for name in names), *own)

    def carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        """The file that Codex reads, and an AGENTS.md that this file hides from it but not from others."""
        return site.once((self.name, scope), lambda: self._carriers(site, scope))

    def disable_native_memory(self, site: Site) -> tuple[KeyEdit, ...]:
        """Three keys, where its memory is on in any layer or holds anything.

        The older name of the feature wins over the newer one, so it is set too where it stands.
        """
        user = codex_config.user_layer(site)
        layers = [user, *codex_config.profile_layers(site), codex_config.project_layer(site)]
        on = any(layer.get(*key) is True for layer in layers if layer is not None for key in _FEATURES)
        if user.problem or not (on or codex_memories.holds_anything(site)):
            return ()
        older = [] if user.get(*_FEATURES[1]) is None else [_FEATURES[1]]
        return tuple(
            KeyEdit(
                path=user.path,
                format="toml",
                key=key,
                value=False,
                why="Codex's own memories are imported; two memories would drift apart",
                only_if="its memory is on or holds anything",
            )
            for key in (*_OFF, *older)
        )

    def notices(self, site: Site) -> tuple[Notice, ...]:
        """Why it gets nothing, where it doesn't; settings that can't be read; a memory that stays on."""
        if site.project is None:
            return ()
        others = (*self._settings_notices(site), *(codex_mcp.notices(site) if site.project.mcp else ()))
        if site.project.delivery == "hooks":
            return (*codex_hooks.notices(site), *others)
        carrier = self._carrier_notice(site)
        return (*(() if carrier is None else (carrier,)), *others)

    def hook_edits(self, site: Site, command: str) -> tuple[KeyEdit, ...]:
        """A hook of the user's, and its trust."""
        return () if site.project is None else codex_hooks.edits(site, command)

    def mcp_edits(self, site: Site, command: tuple[str, ...]) -> tuple[KeyEdit, ...]:
        """The server in the user's settings."""
        return () if site.project is None else codex_mcp.edits(site, command)

    def native_memory(self, env: Mapping[str, str]) -> list[NativeItem]:
        """Its memories of both layouts, each with the directory it belongs to."""
        return codex_memories.read(env)

    def skill_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """Its own directory first."""
        return skill_places.of_codex(env)

    def reads(self, site: Site, start: Path) -> tuple[Read, ...]:
        """Instruction files of the user and on the way down."""
        return codex_reads.reads(site, start)

    def memory_places(self, env: Mapping[str, str]) -> tuple[Path, ...]:
        """The directories and databases of its memories."""
        return codex_memories.places(env)

    def hand_written(self, site: Site) -> list[NativeItem]:
        """Texts in the instruction files that it reads here, and its memories of this checkout."""
        return codex_notes.hand_written(site)

    def watch_places(self, site: Site) -> tuple[Path, ...]:
        """The root, `.codex`, its home and the directories of its memories."""
        home = paths.codex_home(site.env)
        below = () if site.project is None else (site.checkout, site.checkout / ".codex")
        return (*below, home, *codex_memories.directories(home))

    def _carriers(self, site: Site, scope: Scope) -> tuple[Carrier, ...]:
        if scope is Scope.GLOBAL:
            return self._global_carriers(site)
        if site.project is None or site.project.delivery == "hooks" or self._carrier_notice(site):
            return ()
        return self._project_carriers(site)

    def _project_carriers(self, site: Site) -> tuple[Carrier, ...]:
        read = _read_in_root(site)
        found = [self._carrier(site, read, "Codex reads it", (self.name,))]
        shared = site.file(agents_md.NAME)
        if read.name == agents_md.OVERRIDE and shared.readable and not agents_md.why_unusable(shared):
            found.append(self._carrier(site, shared, "read where AGENTS.override.md isn't looked for", ()))
        return tuple(found)

    def _carrier(self, site: Site, file: InstructionFile, why: str, readers: tuple[str, ...]) -> Carrier:
        return Carrier(
            path=file.path,
            kind="block",
            scope=Scope.PROJECT,
            readers=readers,
            create=file.kind is FileKind.ABSENT,
            local=True,
            budget=max(agents_md.budget(site, file), 0),
            why=why,
        )

    def _global_carriers(self, site: Site) -> tuple[Carrier, ...]:
        home = paths.codex_home(site.env)
        if not site.file(home).is_directory:
            return ()
        override, shared = site.file(home / agents_md.OVERRIDE), site.file(home / agents_md.NAME)
        # An empty one hides nothing in the home; with a block in it, it would.
        hides = override.readable and agents_md.says_something(override)
        found: list[tuple[InstructionFile, tuple[str, ...], bool]] = []
        if hides:
            found.append((override, (self.name,), False))
        if shared.readable or not hides:
            found.append((shared, () if hides else (self.name,), True))
        return tuple(
            Carrier(
                path=file.path,
                kind="block",
                scope=Scope.GLOBAL,
                readers=readers,
                create=create,
                local=False,
                budget=NO_LIMIT,
                why="Codex reads it in every project" if readers else "read when AGENTS.override.md goes",
            )
            for file, readers, create in found
        )

    def _carrier_notice(self, site: Site) -> Notice | None:
        """Why nothing may be written for Codex here, None if something may."""
        user = codex_config.user_file(site.env)
        if codex_config.trust(site) == "untrusted":
            text = (
                f"Codex doesn't trust this project ({user}) and reads none of its files: nothing is written."
            )
            return Notice("warning", "codex-untrusted", text, user)
        if codex_config.max_bytes(site) == 0:
            text = "project_doc_max_bytes is 0: Codex reads no project files, so nothing is written for it."
            return Notice("warning", "codex-project-docs-off", text, user)
        read = _read_in_root(site)
        why = agents_md.why_unusable(read)
        if why:
            text = f"Codex gets no facts: {read.name} can't hold a block, as {why}."
            return Notice("warning", "codex-agents-md-unusable", text, read.path)
        room = agents_md.budget(site, read)
        if room < LEAST_BUDGET:
            text = (
                f"The project's own instruction files leave {max(room, 0)} bytes of Codex's "
                f"project_doc_max_bytes ({codex_config.max_bytes(site)}); a block needs {LEAST_BUDGET}. "
                "Facts are left out for Codex; raising the limit in config.toml makes room."
            )
            return Notice("warning", "codex-budget", text, read.path)
        return None

    def _settings_notices(self, site: Site) -> tuple[Notice, ...]:
        user = codex_config.user_layer(site)
        project = codex_config.project_layer(site)
        above = [*codex_config.profile_layers(site), *([] if project is None else [project])]
        found = [
            Notice(
                "warning", "codex-config", f"{layer.path} can't be read as TOML: {layer.problem}.", layer.path
            )
            for layer in (user, *above)
            if layer.problem
        ]
        if not any(layer.get(*key) is True for layer in above for key in _FEATURES):
            return tuple(found)
        for key, code, effect in (
            ("use_memories", "codex-memory-stays", "Codex still shows its own memories"),
            ("generate_memories", "codex-memory-writes", "Codex still writes memories of its own"),
        ):
            found += [
                Notice(
                    "warning",
                    code,
                    f"{layer.path} sets memories.{key} = true and wins over the user's settings: {effect} "
                    "in sessions that use it. Remove that line to change it.",
                    layer.path,
                )
                for layer in above
                if layer.get("memories", key) is True
            ]
        return tuple(found)


def _read_in_root(site: Site) -> InstructionFile:
    """The file that Codex reads in the root; AGENTS.md where there is none yet."""
    for name in agents_md.root_names(site):
        if site.file(name).readable:
            return site.file(name)
    return site.file(agents_md.NAME)
