"""The source directory of rulesync: `.rulesync/rules/**/*.md`, in older set-ups `.rulesync/*.md`.

The format as its documentation has it (rulesync 16): frontmatter `root`, `localRoot`, `targets`,
`description`, `globs`, and a section per tool. For whom and for which files a rule is meant is part of what
it says, so it is written below its text. `localRoot: true` and `*.local.md` mark rules of one person: they
come in private.
What rulesync fetched (`rules/.curated/`) counts unless a rule of the project has the same name.
"""

from __future__ import annotations

from collections.abc import Iterator

from agent_bridge.memory.fact import FactProblem
from agent_bridge.memory.frontmatter import one_line
from agent_bridge.projection.importing.items import Found, Item, Left
from agent_bridge.projection.importing.pages import (
    Page,
    first_heading,
    is_markdown,
    read_page,
    sections_of,
    title_of_name,
    words_of,
)
from agent_bridge.projection.importing.tree import Tree

CURATED = ".curated"
_RULES = "rules/"
_FETCHED = f"{_RULES}{CURATED}/"
_EVERYTHING = frozenset({"*", "**", "**/*"})


def read(tree: Tree) -> Iterator[Found]:
    """Everything in the directory."""
    for name in tree.names:
        if not is_markdown(name) or ("/" in name and not name.startswith(_RULES)):
            yield Left(name, "it is no rule")
        elif name.startswith(_FETCHED) and _RULES + name.removeprefix(_FETCHED) in tree.names:
            yield Left(name, "a rule of the same name replaces it")
        elif "/" not in name and name.casefold() == "readme.md":
            yield Left(name, "it is no rule")
        else:
            yield from _rule(tree, name)


def _rule(tree: Tree, name: str) -> Iterator[Found]:
    try:
        page = read_page(tree.text(name))
    except FactProblem as problem:
        yield Left(name, problem.reason, refused=True)
        return
    if not page.body:
        yield Left(name, "the rule is empty")
        return
    title = first_heading(page.body) or title_of_name(name)
    is_private = one_line(page.keys.get("localRoot")) == "true" or name.endswith(".local.md")
    for heading, text in sections_of(page.body):
        yield Item(
            f"{name}#{heading}" if heading else name,
            text + _reach(page),
            title=f"{title}: {heading}" if heading else title,
            description="" if heading else one_line(page.keys.get("description")),
            type="feedback",
            tags=("rule",),
            private=is_private,
        )


def _reach(page: Page) -> str:
    globs = [glob for glob in words_of(page.keys.get("globs")) if glob not in _EVERYTHING]
    targets = [target for target in words_of(page.keys.get("targets")) if target not in _EVERYTHING]
    told = [f"Applies to files: {', '.join(f'`{glob}`' for glob in globs)}"] if globs else []
    told += [f"Written for: {', '.join(targets)}"] if targets else []
    return "\n\n" + "\n".join(told) if told else ""
