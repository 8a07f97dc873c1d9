"""Who is turned away: nothing of what they send is stored, and they learn nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from integration.registry.running import Running

_MESSAGE = {"fromAgentId": "a", "kind": "chat", "content": "hello"}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def stranger(registry: Running) -> Iterator[httpx.Client]:
    """Somebody without the token."""
    with httpx.Client(base_url=f"http://127.0.0.1:{registry.port}") as client:
        yield client


def _stored(registry: Running) -> int:
    return registry.hub.store.last_seq()


def _upgrade(registry: Running, headers: dict[str, str], query: str = "") -> httpx.Response | int:
    try:
        with connect(
            f"ws://127.0.0.1:{registry.port}/ws{query}", additional_headers=headers, compression=None
        ):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def test_with_the_token_one_is_let_in(registry: Running) -> None:
    before = _stored(registry)
    assert registry.http.post("/channel/messages", json=_MESSAGE).status_code == 201
    assert _stored(registry) == before + 1
    assert _upgrade(registry, registry.headers()) == 101


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        "Basic {token}",
        "bearer{token}",
        "{token}",
        "Bearer {token}x",
        "Bearer {short}",
    ],
)
def test_without_the_token_one_is_not(
    registry: Running, stranger: httpx.Client, authorization: str | None
) -> None:
    token = registry.token.current().decode()
    headers = (
        {}
        if authorization is None
        else {"Authorization": authorization.format(token=token, short=token[:-1])}
    )
    before = _stored(registry)
    for method, path in (
        ("POST", "/channel/messages"),
        ("GET", "/agents"),
        ("POST", "/agents"),
        ("GET", "/openapi.json"),
        ("GET", "/dashboard"),
        ("POST", "/dashboard/codes"),
        ("GET", "/no-such-route"),
    ):
        answer = stranger.request(method, path, json=_MESSAGE, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
        assert token not in answer.text
    assert _upgrade(registry, headers) == 401
    assert _stored(registry) == before


def test_the_token_is_not_taken_from_the_query(registry: Running, stranger: httpx.Client) -> None:
    token = registry.token.current().decode()
    assert stranger.get("/agents", params={"token": token}).status_code == 401
    assert _upgrade(registry, {}, f"?token={token}") == 401


def test_health_says_no_more_than_ok_without_it(registry: Running, stranger: httpx.Client) -> None:
    assert stranger.get("/health").json() == {"status": "ok"}
    assert stranger.get("/health", headers={"Authorization": "Bearer wrong"}).json() == {"status": "ok"}
    assert set(registry.http.get("/health").json()) == {
        "status",
        "agents",
        "wsConnections",
        "wsDashboardClients",
        "timestamp",
    }


@pytest.mark.parametrize(
    "host",
    [
        "localhost:{port}",
        "LOCALHOST:{port}",
        "127.0.0.1:{port}",
        "[::1]:{port}",
        "localhost",
        "127.0.0.1",
    ],
)
def test_our_own_names(registry: Running, host: str) -> None:
    headers = registry.headers() | {"Host": host.format(port=registry.port)}
    assert registry.http.get("/agents", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "example.invalid",
        "example.invalid:{port}",
        "localhost.example.invalid:{port}",
        "localhost:1",
        "127.0.0.2:{port}",
        "127.0.0.1.example.invalid",
        "localhost.:{port}",
        "0.0.0.0:{port}",
        "",
        "localhost:{port}@example.invalid",
    ],
)
def test_a_name_that_only_leads_here_is_refused(registry: Running, host: str) -> None:
    """DNS rebinding: the browser believes that this is the page's own server."""
    before = _stored(registry)
    headers = registry.headers() | {"Host": host.format(port=registry.port)}
    for path in ("/channel/messages", "/health"):
        answer = registry.http.post(path, json=_MESSAGE, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "foreign_host")
    assert _stored(registry) == before


@pytest.mark.parametrize(
    ("page", "let_in"),
    [
        ({"Origin": "http://localhost:{port}"}, True),
        ({"Origin": "http://127.0.0.1:{port}"}, True),
        ({"Origin": "http://localhost:{port}", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "https://example.invalid"}, False),
        ({"Origin": "http://localhost:3000"}, False),
        ({"Origin": "http://localhost"}, False),
        ({"Origin": "https://localhost:{port}"}, False),
        ({"Origin": "http://localhost:{port}.example.invalid"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
    ],
)
def test_pages_of_other_origins_are_refused(registry: Running, page: dict[str, str], let_in: bool) -> None:
    headers = registry.headers() | {name: value.format(port=registry.port) for name, value in page.items()}
    before = _stored(registry)
    answer = registry.http.post("/channel/messages", json=_MESSAGE, headers=headers)
    assert answer.status_code == (201 if let_in else 403)
    assert let_in or answer.json()["code"] == "foreign_origin"
    assert _upgrade(registry, headers) == (101 if let_in else 403)
    assert _stored(registry) == before + let_in
    assert not [name for name in answer.headers if name.startswith("access-control")]


_WRITING = [
    ("POST", "/channel/messages", _MESSAGE),
    ("POST", "/notify-claude", {"content": "hello"}),
    ("POST", "/channel/acks", {"conversationId": "kept", "messageId": "kept", "state": "answered"}
     | {"actorId": "b", "actorType": "client"}),
    ("POST", "/channel/messages/kept/kept/retry", None),
    ("POST", "/channel/conversations/kept/suppress?agentId=b", None),
    ("DELETE", "/channel/conversations/kept/suppress?agentId=c", None),
    ("POST", "/agents", {"agentId": "intruder", "name": "x", "projectPath": "/p", "entryType": "client"}),
    ("POST", "/agents/kept/heartbeat", {}),
    ("POST", "/agents/kept/message", {"fromAgentId": "a", "type": "notification"}),
    ("POST", "/events", {"agentId": "a", "taskId": "t", "state": "working"}),
    ("POST", "/dashboard/codes", None),
    ("DELETE", "/agents/kept", None),
]  # fmt: skip
_UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"Origin": "https://example.invalid"}, 403),
        ({"Host": "example.invalid"}, 403),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
    ],
    ids=["foreign origin", "foreign host", "no token", "wrong token"],
)
def test_whoever_is_refused_stores_registers_and_tells_nothing(
    registry: Running, wrong: dict[str, str], status: int
) -> None:
    mine = f"kept-{status}-{len(wrong)}-{next(iter(wrong))}-{len(next(iter(wrong.values())))}"
    own = registry.headers(mine)
    registry.register("kept", mine)
    registry.post(mine, conversationId="kept", messageId="kept", toAgentId="b", expectsResponse=True)
    suppress = "/channel/conversations/kept/suppress?agentId=c"
    assert registry.http.post(suppress, headers=own).status_code == 200

    def everything() -> list[object]:
        paths = ("/agents", "/channel/conversations", "/channel/conversations/kept")
        lists = [registry.http.get(path, headers=own).json() for path in paths]
        hidden = registry.http.get("/channel/conversations?agentId=c", headers=own).json()
        return [_stored(registry), *lists, hidden]

    with registry.connect(mine) as socket:
        before = everything()
        for method, path, body in _WRITING:
            answer = registry.http.request(method, path, json=body, headers=own | wrong)
            assert answer.status_code == status, path
            assert set(answer.json()) == {"error", "code"}
        assert registry.http.get("/ws", headers=own | _UPGRADE | wrong).status_code == status
        assert everything() == before
        assert socket.all_until_now() == []
        # The same requests are good ones: from where they may come from they do something.
        for method, path, body in _WRITING:
            answer = registry.http.request(method, path, json=body, headers=own)
            assert answer.status_code in (200, 201), f"{path}: {answer.text}"
        assert everything() != before


def test_a_browser_that_asks_first_is_told_nothing(registry: Running, stranger: httpx.Client) -> None:
    preflight = {"Origin": "https://example.invalid", "Access-Control-Request-Method": "POST"}
    assert stranger.options("/channel/messages", headers=preflight).status_code == 403
    answer = registry.http.options("/channel/messages")
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ([("Host", "example.invalid")], 403),
        ([("Authorization", "Bearer wrong")], 400),
        ([("X-Agent-Bridge-Identity", "a"), ("X-Agent-Bridge-Identity", "b")], 400),
        ([("Origin", "http://localhost:{port}"), ("Origin", "https://example.invalid")], 400),
    ],
)
def test_headers_that_count_may_come_once(
    registry: Running, header: list[tuple[str, str]], status: int
) -> None:
    own = list(registry.headers().items())
    more = [(name, value.format(port=registry.port)) for name, value in header]
    with httpx.Client(base_url=f"http://127.0.0.1:{registry.port}") as client:
        assert client.get("/agents", headers=[*own, *more]).status_code == status


def test_too_many_headers_and_too_long_targets(registry: Running) -> None:
    headers = registry.headers()
    many = headers | {f"X-{number}": "x" for number in range(120)}
    long = headers | {"X-Long": "x" * 40_000}
    for given in (many, long):
        answer = registry.http.get("/agents", headers=given)
        assert (answer.status_code, answer.json()["code"]) == (431, "headers_too_large")
    answer = registry.http.get("/agents", params={"skill": "x" * 17_000})
    assert (answer.status_code, answer.json()["code"]) == (414, "target_too_long")


@pytest.mark.parametrize(
    ("header", "query", "status"),
    [
        ("work", None, 200),
        (None, "work", 200),
        ("work", "work", 200),
        ("work", "home", 400),
        ("a b", None, 400),
        (None, "", 400),
        (None, "x" * 65, 400),
        ("*", None, 403),
        (None, "*", 403),
    ],
)
def test_identities_that_may_be_named(
    registry: Running, header: str | None, query: str | None, status: int
) -> None:
    headers = registry.headers(header)
    answer = registry.http.get(
        "/agents", headers=headers, params={} if query is None else {"identity": query}
    )
    assert answer.status_code == status
    target = "" if query is None else f"?identity={query}"
    assert _upgrade(registry, headers, target) == (101 if status == 200 else status)


@pytest.mark.parametrize(
    "query", ["identity=a&identity=b", "limit=1&limit=2", "skill=%ff", "&".join(["a=1"] * 60)]
)
def test_queries_that_cannot_be_read(registry: Running, query: str) -> None:
    assert registry.http.get(f"/agents?{query}").status_code == 400


def test_nobody_is_let_in_while_others_could_read_the_token(registry: Running) -> None:
    headers = registry.headers()
    registry.token.path.chmod(0o644)
    try:
        answer = registry.http.post("/channel/messages", json=_MESSAGE, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (503, "token")
        assert str(registry.token.path) not in answer.text
        assert registry.http.get("/health", headers=headers).json() == {"status": "ok"}
        assert _upgrade(registry, headers) == 503
    finally:
        registry.token.path.chmod(0o600)
    assert registry.http.get("/agents", headers=headers).status_code == 200


def test_a_token_that_was_replaced_counts_from_the_next_request_on(registry: Running) -> None:
    before = registry.headers()
    registry.token.path.unlink()
    after = registry.headers()
    assert registry.http.get("/agents", headers=before).status_code == 401
    assert registry.http.get("/agents", headers=after).status_code == 200
    registry.http.headers.update(after)


_AS_ANOTHER_USER = textwrap.dedent(
    """
    import encodings.idna, http.client, json, os, sys
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
    found = []
    for path in sys.argv[2:]:
        try:
            found.append(open(path, "rb").read())
        except PermissionError:
            pass
    row = {"agentId": "intruder", "name": "x", "projectPath": "/p", "entryType": "client"}
    message = {"fromAgentId": "a", "kind": "chat", "content": "hello"}
    answers = []
    for method, path, body, headers in (
        ("POST", "/channel/messages", message, {}),
        ("POST", "/agents", row, {}),
        ("GET", "/agents", None, {}),
        ("GET", "/ws", None, json.loads(sys.stdin.read())),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
        connection.request(method, path, body and json.dumps(body), headers)
        answers.append(connection.getresponse().status)
    print(json.dumps([len(found), answers]))
    """
)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as another user")
def test_another_user_of_this_machine_is_refused(registry: Running) -> None:
    """Neither the token nor the database can be read by another user; without the token nothing is done."""
    before = _stored(registry), registry.http.get("/agents").json()
    files = [registry.token.path, *registry.database.parent.glob("*")]
    assert len(files) >= 2
    done = subprocess.run(
        [sys.executable, "-I", "-c", _AS_ANOTHER_USER, str(registry.port), *map(str, files)],
        input=json.dumps(_UPGRADE),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        cwd="/",
    )
    assert json.loads(done.stdout) == [0, [401, 401, 401, 401]]
    assert (_stored(registry), registry.http.get("/agents").json()) == before


def test_refusals_are_counted(registry: Running, stranger: httpx.Client) -> None:
    def count() -> int:
        return registry.application.describe().get("unauthorized", 0)

    before = count()
    stranger.get("/agents")
    assert count() == before + 1
