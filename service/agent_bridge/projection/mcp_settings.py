"""The settings by which clients start our MCP server: which of them can be made here, and which go again.

A server entry of our name that a person wrote is respected, and a file that can't be edited is left as it
is: both are told. What is in a project's checkouts is in its own ledger; what serves all of the user's
projects is in the user's, and goes when the last project with MCP goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_bridge import files, paths
from agent_bridge.errors import AgentBridgeError, RefusedError
from agent_bridge.files import FileImage
from agent_bridge.harnesses import mcp_command
from agent_bridge.harnesses.base import Harness, KeyEdit, Notice, Site, by_path
from agent_bridge.harnesses.config_edit import ABSENT
from agent_bridge.projection import apply, undo
from agent_bridge.projection.ledger import Entry, KeyRecord, Ledger
from agent_bridge.projection.on_record import Form, edits_on_record
from agent_bridge.projects import STORE_NAME, Project, load_projects

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wiring:
    """What is to be set: `own` in the project's checkouts, `user` elsewhere; and what to tell.

    `closed` are files that can't be edited now, `respected` entries that are their user's word: file and key.
    Nothing of ours is taken out of them one by one either.
    """

    own: tuple[KeyEdit, ...] = ()
    user: tuple[KeyEdit, ...] = ()
    notices: tuple[Notice, ...] = ()
    closed: frozenset[Path] = frozenset()
    respected: frozenset[tuple[Path, Key]] = frozenset()


def wiring(project: Project, harnesses: Iterable[Harness], sites: Sequence[Site]) -> Wiring:
    """What the given harnesses need, as far as it can be set; nothing where the project wants no MCP."""
    if not project.mcp:
        return Wiring()
    command = mcp_command.installed()
    asked = (edit for one in harnesses for site in sites for edit in one.mcp_edits(site, command))
    own_ledger, users_ledger = Ledger(project.state), Ledger(paths.user_state())
    own: list[KeyEdit] = []
    user: list[KeyEdit] = []
    notices: list[Notice] = []
    closed: set[Path] = set()
    respected: set[tuple[Path, Key]] = set()
    for path, group in by_path(asked).items():
        checkout = next((site.checkout for site in sites if path.is_relative_to(site.checkout)), None)
        ledger = users_ledger if checkout is None else own_ledger
        try:
            image = files.read_image(path, within=checkout)
            _check_place(image, checkout)
            edits, theirs = _settled(image, group, ledger.get(path))
            told = [_respected(image, server, form) for server, form in theirs.items()]
        except AgentBridgeError as error:
            closed.add(path)
            text = f"{path} isn't changed, so its client gets no tools of ours by it: {_reason(error)}."
            notices.append(Notice("warning", "mcp-settings-closed", text, path))
            continue
        (user if checkout is None else own).extend(edits)
        respected |= {(path, server) for server in theirs}
        notices += told
    return Wiring(tuple(own), tuple(user), tuple(notices), frozenset(closed), frozenset(respected))


def tell_missing_program(wired: Wiring) -> tuple[Notice, ...]:
    """That clients won't find the program that the project's files name, by the PATH of this process."""
    if not wired.own or mcp_command.is_on_path():
        return ()
    text = (
        f"{mcp_command.NAME} isn't on your PATH, so clients can't start it by the project's files. Link "
        f"{mcp_command.beside()} into a directory that is."
    )
    return (Notice("warning", "mcp-program-missing", text),)


def withdraw_stale(project: Project, own: Ledger, user: Ledger, wired: Wiring) -> bool:
    """Take back what of ours isn't wanted as it is; True when something was. Both locks are held.

    Raises AgentBridgeError.
    """
    leaving = [(own, edit) for edit in _stale_own(own, wired)]
    leaving += [(user, edit) for edit in _stale_of_user(project, user, wired)]
    return _withdraw(leaving)


def stale(project: Project, own: Ledger, user: Ledger, wired: Wiring) -> list[KeyEdit]:
    """What `withdraw_stale` would take back."""
    return [*_stale_own(own, wired), *_stale_of_user(project, user, wired)]


def withdraw_users(user: Ledger, project: Project) -> list[undo.Undone]:
    """Take the user's entries back when no project but the leaving one has MCP. The user's lock is held."""
    return undo.withdraw(user, leaving(user, project))


def leaving(user: Ledger, project: Project) -> Sequence[KeyEdit]:
    """The user's entries that go with this project: none while another has MCP."""
    return () if _others(project) else _recorded(user)


def withdraw_approvals(project: Project, own: Ledger, wired: Wiring) -> list[Notice]:
    """Take back approvals of ours whose server isn't ours any more; what to tell. The project's lock is held.

    A repository's file may have got another program under our name since: nobody has approved that.
    """
    if not project.mcp:
        return []
    leaving = [edit for edit in _stale_own(own, wired) if edit.element]
    try:
        _withdraw([(own, edit) for edit in leaving])
    except AgentBridgeError as error:
        return [Notice("warning", error.code, error.sentence())]
    return [
        Notice(
            "warning",
            "mcp-approval-withdrawn",
            f"{path} approves the server {mcp_command.SERVER} no more.",
            path,
        )
        for path in dict.fromkeys(edit.path for edit in leaving)
    ]


def _settled(
    image: FileImage, edits: Sequence[KeyEdit], entry: Entry | None
) -> tuple[list[KeyEdit], dict[Key, Form]]:
    """The edits of one file that can be made, and the entries that are their user's. Raises RefusedError."""
    records = {record.key: record for record in (entry.keys if entry else ()) if not record.element}
    servers: dict[Key, list[KeyEdit]] = {}
    for edit in edits:
        if server := _server(edit):
            servers.setdefault(server, []).append(edit)
    theirs = {
        server: ours[0].format
        for server, ours in servers.items()
        if _is_theirs(image.data, server, ours, records)
    }
    kept = [edit for edit in edits if _server(edit) not in theirs]
    data = image.data
    for edit in kept:
        data = apply.edited(data, edit)
    created = not image.existed or (entry is not None and entry.created)
    return [replace(edit, local=edit.local and (created or edit.element)) for edit in kept], theirs


def _is_theirs(data: bytes, server: Key, ours: Sequence[KeyEdit], records: Mapping[Key, KeyRecord]) -> bool:
    """Whether a person wrote the entry at the key `server`, or has changed what we wrote there."""
    if apply.get_key(ours[0].format, data, server) is ABSENT:
        return False
    begun = any(edit.key in records for edit in ours)
    for edit in ours:
        current = apply.get_key(edit.format, data, edit.key)
        if begun and current is ABSENT:
            continue  # a former value of ours was taken out just now
        record = records.get(edit.key)
        as_recorded = record is not None and apply.is_value(current, record.ours)
        if not (as_recorded or apply.is_value(current, json.dumps(edit.value))):
            return True
    return False


def _server(edit: KeyEdit) -> Key:
    """The key of the server's entry that an edit is part of, () for edits of something else."""
    if edit.element or mcp_command.SERVER not in edit.key:
        return ()
    return edit.key[: edit.key.index(mcp_command.SERVER) + 1]


def _respected(image: FileImage, server: Key, form: Form) -> Notice:
    path = image.path
    text = (
        f"{path} has an entry {'.'.join(server)} that isn't as we write it; it is respected and left alone."
    )
    found = apply.get_key(form, image.data, (*server, "command"))
    command = found[0] if isinstance(found, list) and found else found
    if not mcp_command.is_ours(command):
        text += f" It doesn't start {mcp_command.NAME}: rename or remove it to get our tools there."
    return Notice("warning", "mcp-entry-respected", text, path)


def _check_place(image: FileImage, checkout: Path | None) -> None:
    """RefusedError for a name in a repository that leads into Git's own directory or into the memory."""
    if checkout is None:
        return
    below = image.real.relative_to(Path(checkout).resolve()).parts
    if ".git" in map(str.lower, below) or below[0] == STORE_NAME:
        raise RefusedError("It leads into Git's own directory or into the memory", path=image.real)


def _reason(error: AgentBridgeError) -> str:
    return error.sentence().rstrip(".")


def _stale_own(own: Ledger, wired: Wiring) -> list[KeyEdit]:
    return _unwanted(_recorded(own), wired.own, wired)


def _stale_of_user(project: Project, user: Ledger, wired: Wiring) -> list[KeyEdit]:
    """Of the files that this project's entries are in; of all where no project wants any."""
    files_of_ours = {edit.path for edit in wired.user}
    leaving = not project.mcp and not _others(project)
    known = [edit for edit in _recorded(user) if leaving or edit.path in files_of_ours]
    return _unwanted(known, wired.user, wired)


def _unwanted(known: Iterable[KeyEdit], wanted: Sequence[KeyEdit], wired: Wiring) -> list[KeyEdit]:
    return [
        edit
        for edit in known
        if edit.path not in wired.closed
        and (edit.path, _server(edit)) not in wired.respected
        and not _is_among(edit, wanted)
    ]


def _is_among(edit: KeyEdit, wanted: Iterable[KeyEdit]) -> bool:
    return any((edit.path, edit.key, edit.value) == (one.path, one.key, one.value) for one in wanted)


def _withdraw(leaving: Iterable[tuple[Ledger, KeyEdit]]) -> bool:
    done = False
    for ledger, edit in leaving:
        done = True
        undo.undo_keys(ledger, edit.path, [edit])
    return done


def _others(project: Project) -> bool:
    return any(one.mcp for one in load_projects() if one.id != project.id)


def _recorded(ledger: Ledger) -> list[KeyEdit]:
    """The entries and approvals of ours on record."""
    return edits_on_record(ledger, _is_mcp)


def _is_mcp(record: KeyRecord) -> bool:
    if record.element:
        return json.loads(record.ours) in (mcp_command.SERVER, mcp_command.TOOLS)
    return mcp_command.SERVER in record.key
