"""The channel's rules: messages, acks, conversations, inboxes, sweeps. No HTTP here.

`model` has the values, `writes` what can be asked of the store and what comes of it, `storage` keeps them in
SQLite or PostgreSQL; the other modules are rules without disk or clock.
"""
