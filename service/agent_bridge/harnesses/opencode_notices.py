"""What a person should know about OpenCode in a project. Pure."""

from __future__ import annotations

from agent_bridge.harnesses import (
    agents_md,
    claude_carriers,
    managed_block,
    opencode_config,
    opencode_files,
    opencode_global,
)
from agent_bridge.harnesses.base import InstructionFile, KeyEdit, Notice, Site

LARGE = 200_000
"""Bytes. An instruction file isn't cut, and a system prompt over the model's limit ends in a loop of
compactions (1.18.33); this is half of a context of 100,000 tokens."""

_MAY_HAVE_A_BLOCK = (
    *opencode_files.NAMES,
    agents_md.OVERRIDE,
    *claude_carriers.OWN_FILES[1:],
    claude_carriers.RULES,
)


def notices(site: Site) -> tuple[Notice, ...]:
    """All of them; those about the user's own files come with the first project."""
    if site.project is None:
        return ()
    found = [*_settings(site), *opencode_global.choose(site).notices]
    if opencode_config.project_switched_off(site):
        text = (
            "OPENCODE_DISABLE_PROJECT_CONFIG is set: OpenCode reads no file of the project and gets no facts."
        )
        return (*found, Notice("warning", "opencode-project-off", text, site.checkout))
    return (*found, *_carrier(site), *_doubles(site), *_unset(site), *_large(site))


def _settings(site: Site) -> list[Notice]:
    layers = (*opencode_config.user_layers(site), *opencode_config.project_layers(site))
    return [
        Notice("warning", "opencode-config", f"{layer.path} can't be used: {layer.problem}.", layer.path)
        for layer in layers
        if layer.problem
    ]


def _carrier(site: Site) -> list[Notice]:
    found = []
    shared = site.file(agents_md.NAME)
    if shared.is_directory:
        text = "AGENTS.md is a directory, and OpenCode reads no instruction files beside one."
        found.append(Notice("warning", "opencode-agents-md", text, shared.path))
    asked = site.project is not None and opencode_files.NAME in site.project.requested
    why = opencode_files.bridge_problem(site)
    carriers = opencode_files.carriers(site)
    if why and (asked or not carriers):
        lost = "" if carriers else " It gets no facts."
        text = f"OpenCode can't have a file of its own here: {why}.{lost}"
        found.append(Notice("warning", "opencode-no-carrier", text, site.checkout / opencode_files.BRIDGE))
    return found


def _doubles(site: Site) -> list[Notice]:
    if len(opencode_files.carriers(site)) > 1:
        text = (
            f"OpenCode gets each fact twice, by {agents_md.NAME} and by {opencode_files.BRIDGE}, which "
            "`sync --to opencode` asked for. `agent-bridge sync --not-to opencode` takes it back."
        )
        return [Notice("info", "opencode-double", text, site.checkout / opencode_files.BRIDGE)]
    shown = [file for file in map(site.file, _MAY_HAVE_A_BLOCK) if _shown(site, file)]
    names = [file.name for file in shown if managed_block.has_block(file.data)]
    if len(names) < 2:
        return []
    text = f"OpenCode shows {' and '.join(names)}, by its `instructions`: it gets the facts in each of them."
    return [Notice("warning", "opencode-double", text, site.checkout / names[-1])]


def _unset(site: Site) -> list[Notice]:
    """It is a warning where OpenCode has no facts until then."""
    alone = all(carrier.kind == "own" for carrier in opencode_files.carriers(site))
    return [
        Notice(
            "warning" if alone and edit.value == opencode_files.BRIDGE else "info",
            "opencode-init-again",
            f"{edit.path} doesn't list {edit.value!r} in `instructions`: {edit.why}. "
            "`agent-bridge init` sets it.",
            edit.path,
        )
        for edit in (*opencode_files.unset(site), *_unset_for_all(site))
    ]


def _unset_for_all(site: Site) -> list[KeyEdit]:
    listed = {entry for layer in opencode_config.user_layers(site) for entry in layer.entries}
    return [edit for edit in opencode_global.key_edits(site) if edit.value not in listed]


def _large(site: Site) -> list[Notice]:
    shown = [file for file in map(site.file, opencode_files.NAMES) if _shown(site, file)]
    return [
        Notice(
            "warning",
            "opencode-large",
            f"{file.name} has {len(file.data)} bytes. OpenCode cuts nothing, and where its instructions "
            "alone exceed the model's context it compacts again and again.",
            file.path,
        )
        for file in shown
        if len(file.data) > LARGE
    ]


def _shown(site: Site, file: InstructionFile) -> bool:
    native = opencode_files.native_name(site) == file.name
    return file.readable and (native or opencode_config.lists(site, file.path))
