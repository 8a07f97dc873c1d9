"""Milliseconds of 20 searches in the project of the current directory, inside one warm process.

A line each: the search alone, and comparing the store with its files before it.
"""

import time
from pathlib import Path

from agent_bridge import paths, projects
from agent_bridge.memory.search import Search
from agent_bridge.memory.store import Store

project = projects.find_project(Path.cwd())
assert project is not None
store = Store(project.store, state=project.state)
search = Search(paths.cache_dir() / "bench.sqlite")
search.query(store.scan(), ["port", "7"], 20)
for number in range(20):
    begun = time.monotonic()
    snapshot = store.scan()
    compared = time.monotonic()
    search.query(snapshot, ["port", str(100 + number)], 20)
    print((time.monotonic() - compared) * 1000, (compared - begun) * 1000)
