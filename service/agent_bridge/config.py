"""Every setting, in one class: from the settings file, the environment and the command line.

Later wins: default, `config.toml` (see `paths.config_file`), `AGENT_BRIDGE_<KEY>`, a flag. The file is flat
TOML: `quiet_ms = 20`. Keys that nobody knows are kept out and warned about, so that an older version can
read a newer one's file.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from agent_bridge import paths
from agent_bridge.errors import ConfigError

ENVIRONMENT_PREFIX = "AGENT_BRIDGE_"


class Settings(BaseSettings):
    """The settings in force. Immutable; `load_settings` makes them."""

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="ignore")

    block_budget: int = Field(default=16384, ge=1024, le=1 << 20)
    """Bytes that the managed block of an instruction file may have."""

    quiet_ms: int = Field(default=20, ge=0, le=10_000)
    """Milliseconds without a further event after which a change counts as complete."""

    burst_ms: int = Field(default=250, ge=0, le=60_000)
    """Milliseconds after which a stream of changes is acted on though it goes on."""

    index_delay_s: float = Field(default=1.0, ge=0, le=3600, allow_inf_nan=False)
    """Seconds of quiet before `index.json` is written."""

    claude_index_grace_s: float = Field(default=30.0, ge=0, le=3600, allow_inf_nan=False)
    """Seconds that Claude Code gets to add the MEMORY.md line of a fact that it wrote itself."""

    reconcile_interval_s: float = Field(default=60.0, ge=1, le=86_400, allow_inf_nan=False)
    """Seconds between two full comparisons of everything."""

    git_poll_s: float = Field(default=0.5, ge=0.05, le=60, allow_inf_nan=False)
    """Seconds between two looks at what Git is doing, while it is at work."""

    root_check_s: float = Field(default=2.0, ge=0.05, le=60, allow_inf_nan=False)
    """Seconds between two checks whether a watched directory is still the same one."""

    similarity: float = Field(default=0.5, ge=0, le=1, allow_inf_nan=False)
    """Share of common words from which two facts count as similar: 0 to 1."""

    worktrees: Literal["shared", "separate"] = "shared"
    """`shared`: worktrees get the main checkout's memory; `separate`: each has one of its own."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe messages that are logged."""

    lock_timeout_s: float = Field(default=30.0, ge=0, le=3600, allow_inf_nan=False)
    """Seconds to wait for another process that works on the same project."""

    polling: bool = False
    """Look at directories regularly instead of using file events (network file systems)."""

    registry_port: int = Field(default=4999, ge=1, le=65_535)
    """Port of the registry on 127.0.0.1; the next free one is taken where it is in use."""

    database_url: str = ""
    """Where messages are kept: empty for SQLite in the state directory, else `postgresql+psycopg://…`."""

    message_bytes: int = Field(default=8 << 20, ge=1024, le=64 << 20)
    """Bytes that the body of one request or frame to the registry may have."""

    inbox_limit: int = Field(default=1000, ge=1, le=1_000_000)
    """Open messages that one recipient may have; a further one is refused, none is dropped."""

    send_rate_per_s: float = Field(default=200.0, gt=0, le=1_000_000, allow_inf_nan=False)
    """Messages a second that one sender may send for long."""

    send_burst: int = Field(default=2000, ge=1, le=1_000_000)
    """Messages that one sender may send at once before that rate holds."""

    socket_backlog: int = Field(default=2000, ge=10, le=1_000_000)
    """Frames that may wait for a WebSocket client that reads slowly; with more it is cut off."""

    socket_ping_s: float = Field(default=15.0, ge=0.05, le=3600, allow_inf_nan=False)
    """Seconds between two pings of a WebSocket client; one that didn't answer by the next is cut off."""

    agent_unhealthy_s: float = Field(default=90.0, ge=0.1, le=86_400, allow_inf_nan=False)
    """Seconds without a heartbeat after which a session counts as unhealthy."""

    agent_remove_s: float = Field(default=120.0, ge=0.1, le=604_800, allow_inf_nan=False)
    """Seconds without a heartbeat after which a session is taken out of the list."""

    presence_sweep_s: float = Field(default=15.0, ge=0.05, le=86_400, allow_inf_nan=False)
    """Seconds between two looks at who is still there."""

    expiry_sweep_s: float = Field(default=60.0, ge=0.05, le=86_400, allow_inf_nan=False)
    """Seconds between two sweeps that mark unanswered messages past their time as failed."""

    terminal_sweep_s: float = Field(default=300.0, ge=0.05, le=604_800, allow_inf_nan=False)
    """Seconds between two sweeps that archive conversations which have come to an end."""

    terminal_retention_min: float = Field(default=60.0, ge=0, le=525_600, allow_inf_nan=False)
    """Minutes after its last message that a finished conversation stays in the list."""

    retention_sweep_s: float = Field(default=3600.0, ge=0.05, le=2_592_000, allow_inf_nan=False)
    """Seconds between two sweeps that delete old conversations."""

    retention_days: float = Field(default=30.0, gt=0, le=36_500, allow_inf_nan=False)
    """Days after its last message that a conversation is kept at all."""

    database_upkeep_s: float = Field(default=3600.0, ge=0.05, le=2_592_000, allow_inf_nan=False)
    """Seconds between two checkpoints and optimizations of the database."""

    warnings: tuple[str, ...] = Field(default=(), exclude=True)
    """What was odd in the settings file, as plain sentences. Not a setting."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `load_settings` passes: it has to know where each value came from."""
        return (init_settings,)


KEYS: tuple[str, ...] = tuple(name for name in Settings.model_fields if name != "warnings")
"""The names of all settings."""


def meanings() -> dict[str, str]:
    """What each setting means, by its name: the text below it in `Settings`.

    Read from the source on demand; having the class do it would cost every command a tenth of its time.
    """
    import ast
    import inspect

    body = ast.parse(inspect.getsource(Settings)).body[0]
    lines = body.body if isinstance(body, ast.ClassDef) else []
    return {
        setting.target.id: inspect.cleandoc(text.value.value)
        for setting, text in pairwise(lines)
        if isinstance(setting, ast.AnnAssign)
        and isinstance(setting.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def load_settings(*, env: Mapping[str, str] | None = None, **flags: object) -> Settings:
    """The settings in force. `flags` are the command line's; None means not given.

    Raises ConfigError for a value that can't be used or a file that can't be read: it names key, value, and
    file with line, environment variable, or flag. Where several are wrong all are named.
    """
    environment = os.environ if env is None else env
    no_settings = sorted(set(flags) - set(KEYS))
    if no_settings:
        raise TypeError(f"no such settings: {', '.join(no_settings)}")
    file = paths.config_file(environment)
    text = _read(file)
    table = _parse(text, file)
    values = {key: value for key, value in table.items() if key in KEYS}
    sources: dict[str, str] = {}
    for key in KEYS:
        variable = ENVIRONMENT_PREFIX + key.upper()
        if environment.get(variable):
            values[key], sources[key] = environment[variable], f"environment variable {variable}"
        if flags.get(key) is not None:
            values[key], sources[key] = flags[key], f"flag --{key.replace('_', '-')}"
    warnings = tuple(_unknown(key, text, file) for key in table if key not in KEYS)
    try:
        return Settings(**values, warnings=warnings)
    except ValidationError as error:
        raise _bad_values(error, values, sources, text, file) from None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(
            "The settings file isn't UTF-8 text", path=file, detail=f"line {line}", remedy="Save it as UTF-8."
        ) from None
    except OSError as error:
        raise ConfigError("The settings file can't be read", path=file, detail=str(error)) from error


def _parse(text: str, file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            "The settings file isn't valid TOML", path=file, detail=str(error), remedy="Correct that line."
        ) from None


def _bad_values(
    error: ValidationError, values: Mapping[str, object], sources: Mapping[str, str], text: str, file: Path
) -> ConfigError:
    sentences = []
    for problem in error.errors(include_url=False):
        key = str(problem["loc"][0])
        place = sources.get(key) or _place(key, text, file)
        sentences.append(
            f"{key} = {values[key]!r} ({place}): {problem['msg'].removeprefix('Value error, ')}."
        )
    in_file = any(str(problem["loc"][0]) not in sources for problem in error.errors())
    return ConfigError(
        "A setting can't be used" if len(sentences) == 1 else f"{len(sentences)} settings can't be used",
        path=file if in_file else None,
        detail="\n".join(sentences),
        remedy="Correct it, or leave it out for the default." if len(sentences) == 1 else "Correct them.",
    )


def _unknown(key: str, text: str, file: Path) -> str:
    close = difflib.get_close_matches(key, KEYS, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"There is no setting {key!r} ({_place(key, text, file)}); it is ignored.{hint}"


def _place(key: str, text: str, file: Path) -> str:
    line = _line_of(text, key)
    return f"{file}, line {line}" if line else str(file)


def _line_of(text: str, key: str) -> int:
    """The line, from 1, on which valid TOML has given `key` its value; 0 if it never does.

    Some beginnings of a file are valid TOML themselves; the first that knows the key ends on that line.
    """
    lines = text.splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        try:
            if key in tomllib.loads("".join(lines[:count])):
                return count
        except tomllib.TOMLDecodeError:
            continue  # within a value of several lines
    return 0
