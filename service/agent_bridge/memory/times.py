"""Times as a store writes them, and as people, agents and YAML write them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from agent_bridge.memory.frontmatter import Value, uncommented


def iso(moment: datetime) -> str:
    """A time as the store writes it: UTC, milliseconds, `Z`. A naive one is taken as UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_YAML_TIME = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:[Tt]|[ \t]+)(\d\d?):(\d\d):(\d\d)(\.\d{1,9})?[ \t]*(Z|[+-]\d\d?(?::?\d\d)?)?"
)


def timestamp(value: Value | None) -> str:
    """A time of any usual spelling as ISO UTC with milliseconds; empty where it is none."""
    text = uncommented(value)
    if not text:
        return ""
    try:
        return iso(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        pass
    match = _YAML_TIME.fullmatch(text)
    if match is None:
        return ""
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    sign, hours, minutes = (
        (zone[0], *re.findall(r"\d\d?", zone[1:]), "0")[:3] if zone and zone != "Z" else "+00"
    )
    try:
        return iso(
            datetime.fromisoformat(
                f"{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute}:{second}{(fraction or '.0')[:7]:0<7}"
                f"{sign}{hours:0>2}:{minutes:0>2}"
            )
        )
    except (ValueError, OverflowError):
        return ""
