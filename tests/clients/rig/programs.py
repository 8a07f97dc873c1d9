"""Where the pinned client programs are, or why they can't be used."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

CLIENTS = Path(__file__).resolve().parent.parent
"""The directory with package.json."""

_PLACES = {
    # The packages ship one native program a platform; npm installs the right one. Taken directly, they
    # need no Node to run, and no install script.
    "@anthropic-ai/claude-code": "@anthropic-ai/claude-code-*/claude",
    "@openai/codex": "@openai/codex-*/vendor/*/bin/codex",
    # No native programs: scripts for Node 20 or later.
    "@google/gemini-cli": "@google/gemini-cli/bundle/gemini.js",
    "@modelcontextprotocol/inspector-cli": "@modelcontextprotocol/inspector-cli/build/index.js",
    "opencode-ai": "opencode-*/bin/opencode",
}


@dataclass(frozen=True, slots=True)
class Missing:
    """A program that can't be used, and what to do about it."""

    reason: str


def find_program(package: str) -> Path | Missing:
    """The program of an npm package in the version that package.json pins: native, or a script for Node."""
    wanted = json.loads((CLIENTS / "package.json").read_text("utf-8"))["dependencies"][package]
    modules = CLIENTS / "node_modules"
    try:
        installed = json.loads((modules / package / "package.json").read_text("utf-8"))["version"]
    except FileNotFoundError:
        return Missing(f"{package} {wanted} is not installed: run scripts/test, or npm install in {CLIENTS}")
    if installed != wanted:
        return Missing(f"{package} is {installed}, tests want {wanted}: run npm install in {CLIENTS}")
    found = sorted(modules.glob(_PLACES[package]))
    if not found:
        return Missing(f"{package} {wanted} brought no program for this platform")
    if found[0].suffix == ".js" and shutil.which("node") is None:
        return Missing(f"{package} {wanted} needs node on PATH")
    return found[0]
