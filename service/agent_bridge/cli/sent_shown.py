"""What is said of a message that was sent: how far it came, and the answer to it."""

from __future__ import annotations

from agent_bridge.channel.model import AckState, Draft
from agent_bridge.cli.mark_displayed import mark_displayed
from agent_bridge.cli.messages_shown import first_line, moment, receipt, shown_message
from agent_bridge.cli.person import Person
from agent_bridge.cli.printing import harmless_line, put, tell
from agent_bridge.cli.registry_access import connect
from agent_bridge.cli.result import Json, Result, failure, info
from agent_bridge.client.answers import Posted
from agent_bridge.errors import AgentBridgeError


class NoAnswerError(AgentBridgeError):
    """The message is stored, and nobody answered it in time."""

    code = "no_answer"


class NotAnsweredError(AgentBridgeError):
    """The message is stored and was given up."""

    code = "message_failed"


def sent(command: str, posted: Posted, *, inferred: bool) -> Result:
    """That it is stored, and whether an answer is awaited; `inferred`: nobody said so."""
    message = posted.message
    awaits = "It awaits an answer" if message.expects_response else "It awaits no answer"
    if inferred and message.expects_response:
        awaits += "; --no-reply is for news"
    elif inferred:
        awaits += "; --expects-response asks for one"
    until = () if message.expires_at is None else (info(f"It expires {moment(message.expires_at)}."),)
    return Result(
        command,
        data=_data(posted, message.state, inferred=inferred),
        view=(
            f"{receipt(message.state).capitalize()} for {harmless_line(message.to_agent_id or 'everybody')}: "
            f"message {harmless_line(message.message_id)}",
        ),
        messages=(
            info(f"{awaits}."),
            *until,
            info(f"How far it came: `agent-bridge conversations {harmless_line(message.conversation_id)}`."),
            *((info("It was stored before; nothing was sent twice."),) if posted.deduplicated else ()),
        ),
    )


def waited_for(command: str, who: Person, draft: Draft, patience: float, *, as_json: bool) -> Result:
    """Send it, wait, and tell what came of it; the answer counts as displayed once it was put out."""
    from agent_bridge.cli.until_told import run_until_told
    from agent_bridge.cli.waiting import Wait
    from agent_bridge.config import load_settings

    steps: list[AckState] = []

    def told(state: AckState) -> None:
        steps.append(state)
        if not as_json:
            tell(f"{receipt(state).capitalize()}.")

    work = Wait(who, draft, told).carry_out(timeout_s=patience, unhealthy_s=load_settings().agent_unhealthy_s)
    try:
        waited = run_until_told(work)
    except KeyboardInterrupt:
        if steps and not as_json:
            tell("It stays sent. A later answer is in `agent-bridge inbox`; how far it came: `inbox --sent`.")
        raise
    data = {
        **_data(waited.posted, waited.state, inferred=False),
        "answer": None if waited.answer is None else waited.answer.as_wire(),
        "detail": waited.detail,
    }
    if waited.answer is not None:
        if not as_json:
            put(shown_message(waited.answer, full=True, me=who.agent_id))
        with connect(who.identity) as registry:
            _, remarks = mark_displayed(registry, (waited.answer,), who.agent_id)
        return Result(command, data=data, messages=remarks)
    where = f"agent-bridge conversations {harmless_line(waited.posted.message.conversation_id)}"
    if waited.state is AckState.ANSWERED:
        return Result(command, data=data, view=(f"Answered. {first_line(waited.detail or '')}".rstrip(),))
    if waited.state is AckState.FAILED:
        error: AgentBridgeError = NotAnsweredError(
            "The message was given up.", detail=first_line(waited.detail or ""), remedy=f"See `{where}`."
        )
    else:
        error = NoAnswerError(
            f"No answer within {patience:g} s; the message is {receipt(waited.state)}.",
            remedy=f"A later answer is in `agent-bridge inbox`; how far it came: `{where}`.",
        )
    return failure(command, error, data=data)


def _data(posted: Posted, state: AckState, *, inferred: bool) -> dict[str, Json]:
    return {
        "message": posted.message.as_wire(),
        "deduplicated": posted.deduplicated,
        "receipt": receipt(state),
        "expectsResponse": posted.message.expects_response,
        "inferred": inferred,
    }
