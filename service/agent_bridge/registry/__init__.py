"""The hub's face: HTTP, WebSocket and who may use them. The rules lie in `channel`."""
