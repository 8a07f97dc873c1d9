"""What a model is shown at the start of a session, and how to ask about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FILE_HEADING = re.compile(r"^Contents of (?P<path>/.+?) \((?P<label>[^\n]*)\):\n\n?", re.MULTILINE)
_OPENCODE_HEADING = re.compile(r"^Instructions from: (?P<path>/.+)\n", re.MULTILINE)
_OPENCODE_END = re.compile(r"^(?:<mcp_instructions>|Skills provide specialized instructions)", re.MULTILINE)
_FILES_END = "\n</system-reminder>"
_GEMINI_FILE = re.compile(
    r"^--- Context from: (?P<path>[^\n]+) ---\n(?P<text>.*?)\n--- End of Context from: (?P=path) ---$",
    re.MULTILINE | re.DOTALL,
)
_MEMORY_LABEL = "user's auto-memory"
_MEMORY_HEADING = "## Memory\n"
_BETWEEN = "\n\0\n"
"""Between two parts of a prompt; no client sends a NUL, so no two parts can run into each other."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """All text of a first request that no person typed and no model said, in order."""

    text: str

    def count(self, needle: str) -> int:
        """How often a text stands in the prompt."""
        return self.text.count(needle)


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """A file as Claude Code quotes it: `label` says whose it is."""

    path: Path
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class ClaudePrompt(Prompt):
    """Claude Code's: the system prompt, the first user message, the messages of role `system`."""

    files: tuple[InstructionFile, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        """The quoted files, in order, MEMORY.md too."""
        return tuple(file.path for file in self.files)

    def contents_of(self, path: Path) -> str | None:
        """A quoted file's text, None when it isn't in the prompt."""
        return next((file.text for file in self.files if file.path == path), None)

    @property
    def memory_index(self) -> str | None:
        """The text of MEMORY.md, wherever it lies."""
        return next((file.text for file in self.files if file.label.startswith(_MEMORY_LABEL)), None)

    @property
    def memory_directory(self) -> Path | None:
        """Where Claude is told to keep its memories, None when memory is off."""
        told = re.search(r"persistent file-based memory at `([^`]+)`", self.text)
        return Path(told[1]) if told else None


@dataclass(frozen=True, slots=True)
class CodexPrompt(Prompt):
    """Codex's: every input item of the first request."""

    @property
    def instructions(self) -> str:
        """What stands between <INSTRUCTIONS> and </INSTRUCTIONS>: the AGENTS.md files, one after another."""
        return "\n".join(re.findall(r"<INSTRUCTIONS>\n(.*?)\n</INSTRUCTIONS>", self.text, re.DOTALL))

    @property
    def memory_section(self) -> str | None:
        """The part that brings Codex's own memories, None when there is none."""
        parts = self.text.split(_BETWEEN)
        return next((part for part in parts if part.startswith(_MEMORY_HEADING)), None)


@dataclass(frozen=True, slots=True)
class GeminiPrompt(Prompt):
    """Gemini CLI's: the system instruction and the first user content."""

    system: str
    """The system instruction: the user's own GEMINI.md and private memory are in it."""
    first: str
    """The first user content: the project's files are in it, and at its end what was typed."""
    files: tuple[InstructionFile, ...]
    """The quoted files, in order, each with what it imports inside; the label is empty."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """Where the quoted files are."""
        return tuple(file.path for file in self.files)

    def contents_of(self, path: Path) -> str | None:
        """A quoted file's text with its imports in place, None when it isn't in the prompt."""
        return next((file.text for file in self.files if file.path == path), None)


@dataclass(frozen=True, slots=True)
class OpenCodePrompt(Prompt):
    """OpenCode's: every message of the first request, what was typed too."""

    files: tuple[InstructionFile, ...]
    """The instruction files, in order; OpenCode gives no label."""
    user: tuple[str, ...]
    """The parts of the messages of role `user`: what was typed, and what a plugin put beside it."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The quoted files, in order."""
        return tuple(file.path for file in self.files)

    def contents_of(self, path: Path) -> str | None:
        """A quoted file's text, None when it isn't in the prompt."""
        return next((file.text for file in self.files if file.path == path), None)


def claude_prompt(body: Mapping[str, Any]) -> ClaudePrompt:
    """Read a Messages request. Only the first user message counts: what was said later is no prompt."""
    messages = body["messages"]
    first_user = next(message for message in messages if message["role"] == "user")
    shown = [first_user, *(message for message in messages if message["role"] == "system")]
    parts = _texts(body.get("system", ""))
    parts += [text for message in shown for text in _texts(message["content"])]
    return ClaudePrompt(_joined(parts), tuple(file for part in parts for file in _files(part)))


def codex_prompt(items: Sequence[Mapping[str, Any]]) -> CodexPrompt:
    """Read the `input` list of a Responses request, or what `codex debug prompt-input` prints."""
    return CodexPrompt(_joined([text for item in items for text in _texts(item.get("content", ""))]))


def gemini_prompt(body: Mapping[str, Any]) -> GeminiPrompt:
    """Read a generateContent request. Only the first user content counts: what came later is no prompt."""
    first = next(content for content in body["contents"] if content["role"] == "user")
    system = "\n".join(_texts(body["systemInstruction"]["parts"]))
    user = "\n".join(_texts(first["parts"]))
    files = [
        InstructionFile(Path(found["path"]), "", found["text"])
        for part in (system, user)
        for found in _GEMINI_FILE.finditer(part)
    ]
    return GeminiPrompt(_joined([system, user]), system, user, tuple(files))


def opencode_prompt(body: Mapping[str, Any]) -> OpenCodePrompt:
    """Read a chat completions request."""
    parts = [(message["role"], text) for message in body["messages"] for text in _texts(message["content"])]
    system = [text for role, text in parts if role == "system"]
    return OpenCodePrompt(
        _joined([text for _, text in parts]),
        tuple(file for part in system for file in _opencode_files(part)),
        tuple(text for role, text in parts if role == "user"),
    )


def _opencode_files(part: str) -> Iterator[InstructionFile]:
    """The instruction files of a system message. The last one ends where the skills or servers begin."""
    headings = list(_OPENCODE_HEADING.finditer(part))
    ends = [*(heading.start() for heading in headings[1:]), len(part)]
    for heading, end in zip(headings, ends, strict=False):
        text = _OPENCODE_END.split(part[heading.end() : end], maxsplit=1)[0]
        yield InstructionFile(Path(heading["path"]), "", text.strip("\n"))


def _joined(parts: Sequence[str]) -> str:
    return _BETWEEN.join(parts)


def _texts(content: str | Sequence[Mapping[str, Any]]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content or () if isinstance(block.get("text"), str)]


def _files(part: str) -> Iterator[InstructionFile]:
    headings = list(_FILE_HEADING.finditer(part))
    ends = [*(heading.start() for heading in headings[1:]), len(part)]
    for heading, end in zip(headings, ends, strict=False):
        text = part[heading.end() : end].partition(_FILES_END)[0]
        yield InstructionFile(Path(heading["path"]), heading["label"], text.strip("\n"))
