"""How texts that were found in harnesses look in the command line's answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent_bridge.cli.result import Json, counted
from agent_bridge.memory.secrets import find_secrets, masked
from agent_bridge.memory.visible import shortened
from agent_bridge.projection.reverse import origin_of
from agent_bridge.projection.sorting import Finding, Outcome
from agent_bridge.projects import Project

_LINE = 100


def findings_text(project: Project, findings: Sequence[Finding], *, applied: bool) -> str:
    """A line a text, with the reason below a conflict, and a last line that counts them."""
    lines = []
    for one in findings:
        head = [one.outcome.value]
        if one.outcome is Outcome.CONFLICT:
            head += [one.fact_id or "-", f"{one.score:.2f}"]
        elif one.fact_id:
            head.append(one.fact_id)
        origin = origin_of(one.item.source_file, project.root)
        lines.append(f"{' '.join(head)}  {origin}: {shortened(masked(one.item.text), _LINE)}")
        if one.why:
            lines.append(f"    {one.why}")
    counts = findings_counts(findings)
    told = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if not findings:
        return "Nothing was found there."
    done = f"{counted(counts['new'], 'fact')} added" if applied else "nothing was written; --apply does it"
    return "\n".join([*lines, f"{counted(len(findings), 'text')}: {told} ({done})."])


def findings_counts(findings: Iterable[Finding]) -> dict[str, int]:
    """How many there are of each outcome."""
    counts = dict.fromkeys((outcome.value for outcome in Outcome), 0)
    for one in findings:
        counts[one.outcome.value] += 1
    return counts


def findings_json(project: Project, findings: Iterable[Finding]) -> list[Json]:
    """The stable fields of each finding; of a credential only its kind is told."""
    return [
        {
            "outcome": one.outcome.value,
            "scope": "global" if one.item.directory is None else "project",
            "text": masked(one.item.text),
            "title": masked(one.item.title),
            "harness": one.item.harness,
            "origin": origin_of(one.item.source_file, project.root),
            "file": str(one.item.source_file),
            "created_at": one.item.created_at,
            "private": one.item.private or bool(find_secrets(one.item.text)),
            "fact": one.fact_id or None,
            "score": round(one.score, 4),
            "why": one.why,
        }
        for one in findings
    ]
