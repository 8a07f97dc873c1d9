"""`import`: what another tool or directory remembers, as facts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_bridge.cli.app import Verbs
from agent_bridge.cli.carry import carry_unless_served
from agent_bridge.cli.result import Json, Message, Result, counted, info, warning
from agent_bridge.cli.where import Place, ProjectOption, ScopeName, ScopeOption, global_place, writable
from agent_bridge.config import load_settings
from agent_bridge.errors import EXIT_DONE, EXIT_LEFT_UNDONE, UsageError
from agent_bridge.projection.importing.items import Kind, Outcome
from agent_bridge.projection.importing.run import Wishes, import_source
from agent_bridge.projection.importing.sources import recognise

if TYPE_CHECKING:
    from agent_bridge.projection.importing.run import Report


def register(verbs: Verbs) -> None:
    """Add the commands of this module."""
    verbs.verb("import", panel="Facts")(import_from)


def import_from(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory, or a file with --as.")],
    *,
    kind: Annotated[
        Kind | None, typer.Option("--as", help="What it is, where that can't be seen.", show_default=False)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be added.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Keep what is added out of Git.")] = False,
    fact_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="Give all of them this type.", show_default=False)
    ] = "",
    again: Annotated[
        bool, typer.Option("--again", help="Add also what was imported before and removed since.")
    ] = False,
    scope: ScopeOption = None,
    project: ProjectOption = None,
) -> Result:
    """Take over what another tool remembers.

    A memory-bridge store, Claude's memories, a basic-memory project, the rules of rulesync or ruler. The
    source is only read, and a second import adds nothing.
    """
    if fact_type and not fact_type.isprintable():
        raise UsageError("A type is one word.")
    source = recognise(path, kind)
    place = _place(scope, project, dry=dry_run)
    wishes = Wishes(private=private, type=fact_type.strip(), again=again, dry=dry_run)
    report = import_source(source, place.store, wishes, threshold=load_settings().similarity)
    counts = report.counts()
    undone = counts[Outcome.REVIEW] + counts[Outcome.REFUSED]
    return Result(
        "import",
        data=_json(report, place, dry=dry_run),
        view=("\n".join([*_lines(report, dry=dry_run), _summary(report, dry=dry_run)]),),
        messages=(
            *_advice(counts, dry=dry_run),
            *(carry_unless_served(place) if counts[Outcome.ADDED] and not dry_run else ()),
        ),
        exit_code=EXIT_LEFT_UNDONE if undone else EXIT_DONE,
    )


def _place(scope: ScopeName | None, project: Path | None, *, dry: bool) -> Place:
    """The store to import into; a dry run doesn't make the global one."""
    if dry and scope is ScopeName.global_:
        return global_place(load_settings())
    return writable(scope, project)


def _json(report: Report, place: Place, *, dry: bool) -> dict[str, Json]:
    return {
        "kind": report.kind.value,
        "path": str(report.path),
        "scope": place.scope.value,
        "dry_run": dry,
        "counts": report.counts(),
        "shared": report.shared,
        "items": [
            {
                "path": line.origin,
                "outcome": line.outcome.value,
                "id": line.fact_id or None,
                "title": line.title,
                "shared": line.is_shared,
                "why": line.why,
            }
            for line in report.lines
        ],
    }


def _lines(report: Report, *, dry: bool) -> list[str]:
    told = []
    for line in report.lines:
        about = line.fact_id if line.outcome is Outcome.ADDED else ""
        kept = "private" if line.outcome is Outcome.ADDED and not line.is_shared else ""
        rest = "; ".join(part for part in (about, kept, line.why) if part)
        outcome = "would be added" if dry and line.outcome is Outcome.ADDED else line.outcome.value
        told.append(f"{outcome}: {line.origin}" + (f" ({rest})" if rest else ""))
    return told


def _summary(report: Report, *, dry: bool) -> str:
    counts = report.counts()
    added = counts[Outcome.ADDED]
    others = [f"{number} {name}" for name, number in counts.items() if number and name != Outcome.ADDED.value]
    verb = "Would add" if dry else "Added"
    text = f"{verb} {counted(added, 'fact')} from {report.kind.value} ({report.path})"
    if added:
        text += f": {report.shared} shared, {added - report.shared} private"
    return text + (f"; {', '.join(others)}" if others else "") + "."


def _advice(counts: dict[str, int], *, dry: bool) -> tuple[Message, ...]:
    told = []
    if counts[Outcome.REVIEW]:
        resemble = counted(counts[Outcome.REVIEW], "text")
        verb = "would wait" if dry else "wait"
        told.append(info(f"{resemble} that resemble facts {verb} for `agent-bridge review`."))
    if counts[Outcome.REFUSED]:
        told.append(warning(f"{counted(counts[Outcome.REFUSED], 'file')} couldn't be used; see above."))
    return tuple(told)
