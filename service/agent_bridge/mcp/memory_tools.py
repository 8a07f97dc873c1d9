"""The tools for the memory: remember, recall, list_memory, update_memory, forget.

What blocks runs in threads. What an agent did wrong is raised as AgentBridgeError; `memory_answers` says the
rest.
"""

from __future__ import annotations

import asyncio
import re

from agent_bridge.errors import DuplicateError, NotFoundError, RefusedError, UsageError
from agent_bridge.mcp import memory_answers as answers
from agent_bridge.mcp import memory_lookup as lookup
from agent_bridge.mcp import memory_places as places
from agent_bridge.mcp.call import Call
from agent_bridge.mcp.memory_parameters import Forget, ListMemory, Recall, Remember, UpdateMemory
from agent_bridge.mcp.memory_text import Shown
from agent_bridge.mcp.ports import StorePlace
from agent_bridge.mcp.tool import Answer, Hints, Tool
from agent_bridge.memory.draft import Draft
from agent_bridge.memory.fact import Fact
from agent_bridge.memory.presentable import presentable

_SESSION_ID = re.compile(r"[A-Za-z0-9._:-]{1,100}")
_ADDED_BY = "mcp"
"""The source of facts from a client that we don't know."""


async def remember(call: Call, wanted: Remember) -> Answer:
    """Add a fact; one with the very same text is only named."""
    session = call.session
    place = await _writable(call, wanted.scope)
    draft = Draft(
        text=wanted.text,
        tags=tuple(wanted.tags),
        type=wanted.type,
        source=_ADDED_BY if session.profile == "unknown" else session.profile,
        private=wanted.private,
        title=wanted.title,
        pinned=wanted.pinned,
        origin=_session_id(call),
    )
    try:
        added = await asyncio.wrap_future(session.memory.add(place, draft))
    except DuplicateError as error:
        return await asyncio.to_thread(_already_known, call, place, error.fact_id)
    shown = Shown(presentable(added.fact), place.scope, added.is_private)
    return answers.remembered(shown, added.similar)


async def recall(call: Call, wanted: Recall) -> Answer:
    """Facts that hold the words of a query, or one by its id."""
    session = call.session
    if wanted.id is not None:
        fact = await asyncio.to_thread(
            lookup.one,
            session.memory,
            session.start,
            wanted.id,
            None if wanted.scope == "both" else wanted.scope,
        )
        return answers.whole(fact, wanted.offset)
    if not wanted.query.strip():
        raise UsageError(
            "There is nothing to look for.",
            remedy="Give `query` a few words, or `id` the id of one fact; list_memory lists all.",
        )
    seen = await asyncio.to_thread(places.readable, session.memory, session.start, wanted.scope)
    found = await asyncio.to_thread(lookup.search, session.memory, seen.places, wanted.query, wanted.limit)
    return answers.recalled(found, wanted.query, _notes(call, seen))


async def list_memory(call: Call, wanted: ListMemory) -> Answer:
    """A line for each fact, page by page."""
    session = call.session
    after = lookup.read_cursor(wanted.cursor)
    seen = await asyncio.to_thread(places.readable, session.memory, session.start, wanted.scope)
    page = await asyncio.to_thread(
        lookup.page, session.memory, seen.places, tag=wanted.tag, kind=wanted.type, after=after
    )
    return answers.listed(page, wanted.limit, _notes(call, seen))


async def update_memory(call: Call, wanted: UpdateMemory) -> Answer:
    """Another text, title or other tags for a fact."""
    if wanted.text is None and wanted.title is None and wanted.tags is None:
        raise UsageError("There is nothing to change.", remedy="Give `text`, `title` or `tags`.")
    session = call.session
    place, fact = await _found(call, wanted.id, wanted.scope)

    def change() -> Fact:
        return place.store.edit(fact.path, wanted.text, title=wanted.title, tags=wanted.tags)

    changed = await asyncio.to_thread(session.memory.serialized, place, change)
    return answers.updated(await asyncio.to_thread(lookup.shown, session.memory, place, changed))


async def forget(call: Call, wanted: Forget) -> Answer:
    """Take a fact out of the memory and of every file that shows it."""
    session = call.session
    try:
        place, fact = await _found(call, wanted.id, wanted.scope)
        shown = await asyncio.to_thread(lookup.shown, session.memory, place, fact)
        removed = await asyncio.to_thread(session.memory.remove, place, fact.path)
    except NotFoundError:
        if call.is_replay:
            return answers.forgotten_before(wanted.id)
        raise
    return answers.forgotten(shown, removed.notes)


async def _writable(call: Call, scope: places.WriteScope) -> StorePlace:
    session = call.session
    try:
        return await asyncio.to_thread(places.writable, session.memory, session.start, scope)
    except places.NoProjectError as error:
        raise places.told(session, error) from None


async def _found(call: Call, key: str, scope: places.WriteScope | None) -> tuple[StorePlace, Fact]:
    """A fact that may be changed, and its store."""
    session = call.session
    place, fact, missing = await asyncio.to_thread(places.holding, session.memory, session.start, key, scope)
    if missing is not None:
        raise places.told(session, places.NoProjectError(missing, session.start))
    return place, fact


def _already_known(call: Call, place: StorePlace, fact_id: str) -> Answer:
    memory = call.session.memory
    try:
        fact = memory.serialized(place, lambda: place.store.find(fact_id))
    except NotFoundError as error:
        raise RefusedError(
            f"The same text was there as {fact_id}, and somebody has just removed it.",
            remedy="Call remember again.",
        ) from error
    shown = lookup.shown(memory, place, fact)
    return answers.remembered(shown, []) if call.is_replay else answers.already_known(shown)


def _session_id(call: Call) -> str:
    given = call.session.hello.environment.get("CLAUDE_CODE_SESSION_ID", "")
    return given if call.session.profile == "claude-code" and _SESSION_ID.fullmatch(given) else ""


def _notes(call: Call, seen: places.Readable) -> list[str]:
    hint = places.hint_once(call.session, seen.missing)
    return [note for note in (hint, seen.trouble) if note]


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="remember",
        title="Remember a fact",
        description=(
            "Save one fact for later sessions, of you and of every other coding agent on this project: "
            "what the user asked to remember or corrected you on, decisions and their reasons, how to "
            "build, test and deploy, what is surprising here. Not what the code or Git already says, "
            "and no passwords or keys. One fact a call, complete in itself. A fact that is there "
            "already isn't added twice; change it with update_memory."
        ),
        parameters=Remember,
        output_schema=answers.REMEMBERED,
        hints=Hints(idempotent=True),
        run=remember,
    ),
    Tool(
        name="recall",
        title="Recall facts",
        description=(
            "Find what is remembered about this project and the user, by a few words; all of them must "
            "occur (parts of words count), and if none does, facts with some of them are given. With "
            "`id` one fact is shown whole. Look here before you ask the user or guess about "
            "conventions, decisions and set-up."
        ),
        parameters=Recall,
        output_schema=answers.RECALLED,
        hints=Hints(read_only=True, idempotent=True),
        run=recall,
    ),
    Tool(
        name="list_memory",
        title="List the memory",
        description=(
            "List what is remembered, a line a fact, page by page, perhaps only one tag or type. To "
            "read a fact use recall with its id."
        ),
        parameters=ListMemory,
        output_schema=answers.LISTED,
        hints=Hints(read_only=True, idempotent=True),
        run=list_memory,
    ),
    Tool(
        name="update_memory",
        title="Change a fact",
        description=(
            "Correct a fact that is wrong, out of date or badly put: give its id and the whole new "
            "text, a new title, or all its tags. What you leave out stays as it is."
        ),
        parameters=UpdateMemory,
        output_schema=answers.UPDATED,
        hints=Hints(idempotent=True),
        run=update_memory,
    ),
    Tool(
        name="forget",
        title="Forget a fact",
        description=(
            "Remove a fact from the memory and from every file that shows it, when it isn't true any "
            "more or the user asks for it. A copy is kept for the user."
        ),
        parameters=Forget,
        output_schema=answers.FORGOTTEN,
        hints=Hints(idempotent=True),
        run=forget,
    ),
)
