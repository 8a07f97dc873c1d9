"""Runs the real client programs against fake model servers, sealed off from the network and the user.

`script` says what the model answers, `server` and its two dialects (`anthropic`, `responses`) say it,
`sealed` runs a program with a HOME of its own, and `claude` and `codex` are what the tests use.
"""
