"""The floor: what a message costs at the least. uvicorn, one SQLite row a request, one WebSocket; no product.

A POST's body is read as JSON, gets an id, is inserted as a row (WAL, synchronous=FULL), committed, pushed to
every connected WebSocket and answered with 201. Prints its port when it listens. Argument: the database file.
"""

import json
import socket
import sqlite3
import sys
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA journal_mode = WAL")
database.execute("PRAGMA synchronous = FULL")
database.execute("CREATE TABLE messages (seq INTEGER PRIMARY KEY, body TEXT NOT NULL)")
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
receivers: list[Send] = []


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """One request or one WebSocket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        receivers.append(send)
        while (await receive())["type"] != "websocket.disconnect":
            pass
        receivers.remove(send)
    elif scope["type"] == "http":
        body = b""
        while True:
            part = await receive()
            body += part.get("body", b"")
            if not part.get("more_body"):
                break
        message = {**json.loads(body), "messageId": str(uuid.uuid4())}
        text = json.dumps(message)
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO messages (body) VALUES (?)", (text,))
        database.execute("COMMIT")
        for push in list(receivers):
            await push({"type": "websocket.send", "text": text})
        answer = text.encode()
        length = str(len(answer)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": answer})


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(
    uvicorn.Config(
        application, loop="uvloop", http="httptools", lifespan="off", access_log=False, log_level="warning"
    )
).run(sockets=[listener])
