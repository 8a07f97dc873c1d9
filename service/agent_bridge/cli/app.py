"""The typer application, built from the topic modules, and the one place where its outcome is printed."""

from __future__ import annotations

import importlib
import inspect
import itertools
import os
import sys
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from agent_bridge import __version__
from agent_bridge.cli.crash import wants_json
from agent_bridge.cli.printing import show
from agent_bridge.cli.result import Result, failure
from agent_bridge.errors import AgentBridgeError, UsageError

_PROGRAMS = ("agent-bridge", "oab", "memory-bridge")
_INTERRUPTED = 130
_TOPICS = {
    "project_verbs": ("init", "plan", "eject"),
    "sync_verbs": ("sync",),
    "review_verbs": ("review",),
    "write_verbs": ("add", "edit"),
    "forget_verbs": ("rm", "forget"),
    "read_verbs": ("search", "list", "show"),
    "sharing_verbs": ("share", "unshare"),
    "explain_verbs": ("explain", "history"),
    "harness_verbs": ("harnesses",),
    "import_verbs": ("import",),
    "status_verb": ("status",),
    "opencode_verbs": ("opencode",),
    "mcp_verbs": ("mcp",),
    "agents_verbs": ("agents",),
    "send_verbs": ("send", "reply"),
    "inbox_verbs": ("inbox", "conversations"),
    "tail_verb": ("tail",),
    "prune_verb": ("prune",),
    "registry_verbs": ("registry",),
    "service_verbs": ("service", "up", "down", "logs"),
}
"""The topic modules with their commands, in the order of the help."""

# click's ClickException, by way of its child: newer releases of typer carry click inside, unnamed.
_PARSER_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")]


class Verbs:
    """A group of commands: functions from words to a `Result`, which get `--json` by being registered."""

    def __init__(self, name: str = "", about: str = "") -> None:
        rich_or_plain: Any = "rich" if sys.stdout.isatty() else None
        self.name = name
        self.about = about
        self.app = typer.Typer(
            name=name or None,
            help=about,
            pretty_exceptions_enable=False,
            rich_markup_mode=rich_or_plain,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def verb(self, name: str, *, panel: str | None = None, hidden: bool = False) -> Callable[[Verb], Verb]:
        """Register the decorated function as the command `name`; its docstring is the help."""

        def register(function: Verb) -> Verb:
            title = f"{self.name} {name}".strip()
            # Given in full: the parser would cut the first sentence at 45 characters.
            first = " ".join((function.__doc__ or "").partition("\n\n")[0].split())
            declare = self.app.command(name, short_help=first, rich_help_panel=panel, hidden=hidden)
            declare(_with_json(title, function))
            return function

        return register

    def bare(self, function: Verb) -> Verb:
        """Register the function as what the group does by itself; it sees in its context what follows."""
        self.app.callback(invoke_without_command=True)(_with_json(self.name, function))
        return function

    def add(self, group: Verbs, *, panel: str | None = None) -> None:
        """Make `group` available below its name."""
        self.app.add_typer(group.app, short_help=group.about, rich_help_panel=panel)


Verb = Callable[..., Result]


def run(words: Sequence[str]) -> int:
    """Parse `words`, run the command, print its result and return the exit code."""
    program = Path(sys.argv[0]).name
    words = _json_behind(words)
    command = typer.main.get_command(_application(words).app)
    try:
        outcome = command.main(
            args=list(words),
            prog_name=program if program in _PROGRAMS else _PROGRAMS[0],
            standalone_mode=False,
        )
    except typer.Abort:
        return _INTERRUPTED
    except _PARSER_ERROR as error:
        show(failure(_named(error, words), _usage_error(error)), as_json=wants_json(words))
        return UsageError.exit_code
    if not isinstance(outcome, tuple):  # help or completion: printed by the parser
        return outcome if isinstance(outcome, int) else 0
    result, as_json = outcome
    show(result, as_json=as_json)
    return int(result.exit_code)


def _json_behind(words: Sequence[str]) -> list[str]:
    """The words with a `--json` that stands before the command, or right behind it, at the end."""
    leading = list(itertools.takewhile(lambda word: word.startswith("-"), words))
    rest = list(words[len(leading) :])
    if rest[1:2] == ["--json"]:  # behind the name of a group it would be the group's alone
        leading.append(rest.pop(1))
    if not rest or "--json" not in leading:
        return list(words)
    end = rest.index("--") if "--" in rest else len(rest)
    return [word for word in leading if word != "--json"] + [*rest[:end], "--json", *rest[end:]]


def _application(words: Sequence[str]) -> Verbs:
    verbs = Verbs(about="One memory for every coding agent.")
    verbs.app.callback(invoke_without_command=True)(_without_command)
    for name in _topics(words):
        importlib.import_module(f"agent_bridge.cli.{name}").register(verbs)
    return verbs


def _topics(words: Sequence[str]) -> Sequence[str]:
    """The modules to import: that of the command, or all for help, completion and a command nobody knows."""
    # While the shell completes, the line so far is in a variable: COMP_WORDS (bash), typer's (zsh, fish).
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    command = next((word for word in words or line.split()[1:] if not word.startswith("-")), None)
    return [topic for topic, commands in _TOPICS.items() if command in commands] or list(_TOPICS)


def _without_command(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
    as_json: JsonOption = False,
) -> tuple[Result, bool] | None:
    if context.invoked_subcommand is not None:
        return None
    if version:
        return Result("", data={"version": __version__}, view=(f"agent-bridge {__version__}",)), as_json
    missing = UsageError("A command is missing.", detail=context.get_usage(), remedy=_help_hint(context))
    return failure("", missing), as_json


def _with_json(title: str, function: Verb) -> Callable[..., tuple[Result, bool]]:
    """`function` as typer takes it: with the option `--json`, and with our errors made a result.

    A function that has a parameter `as_json` itself is told.
    """
    wants_to_know = "as_json" in inspect.signature(function).parameters

    def command(*, as_json: bool, **words: object) -> tuple[Result, bool]:
        if wants_to_know:
            words["as_json"] = as_json
        try:
            # One function may serve several verbs: the envelope names the one that was typed.
            return function(**words)._replace(command=title), as_json
        except AgentBridgeError as error:
            return failure(title, error), as_json

    hints = typing.get_type_hints(function, include_extras=True)
    hints.pop("return", None)
    parameters = [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "as_json"
    ]
    parameters.append(
        inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=JsonOption)
    )
    vars(command).update(
        __name__=function.__name__, __doc__=function.__doc__, __signature__=inspect.Signature(parameters)
    )
    command.__doc__ = function.__doc__
    command.__annotations__ = {**hints, "as_json": JsonOption}
    return command


def _usage_error(error: Exception) -> UsageError:
    """The parser's complaint as ours, with the usage line."""
    message = str(getattr(error, "format_message", error.__str__)()).replace("Value error, ", "")
    context: typer.Context | None = getattr(error, "ctx", None)
    if context is None:
        return UsageError(message)
    return UsageError(message, detail=context.get_usage(), remedy=_dash_hint(error) + _help_hint(context))


def _dash_hint(error: Exception) -> str:
    """How to say a text that begins with a dash, where one was taken for an option."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or getattr(error, "possibilities", None) or context is None:
        return ""
    takes_text = any(one.name == "text" for one in context.command.params if not one.opts[0].startswith("-"))
    return "A text that begins with a dash stands behind `--`. " if takes_text else ""


def _help_hint(context: typer.Context) -> str:
    return f"See `{context.command_path} --help`."


def _named(error: Exception, words: Sequence[str]) -> str:
    context = getattr(error, "ctx", None)
    if context is None:
        return next((word for word in words if not word.startswith("-")), "")
    return " ".join(str(context.command_path).split()[1:])
