"""Texts of an instruction file as items of a checkout, for `sync --from`. Pure."""

from __future__ import annotations

from agent_bridge.harnesses import agents_md, prose
from agent_bridge.harnesses.base import InstructionFile, NativeItem, Site


def items_in(site: Site, file: InstructionFile, *, private: bool = False) -> list[NativeItem]:
    """The texts of one file; none where they may not be taken.

    A repository can bring a symlink to anything along: one that leads out of the checkout, into Git's own
    files or into the memory itself isn't followed.
    """
    if not _is_ours_to_read(site, file):
        return []
    return [
        NativeItem(piece.text, piece.title, site.checkout, file.path, private=private)
        for piece in prose.pieces_of(file.data)
    ]


def _is_ours_to_read(site: Site, file: InstructionFile) -> bool:
    if not file.readable or agents_md.why_unusable(file) or not file.real.is_relative_to(site.checkout):
        return False
    below = [part.lower() for part in file.real.relative_to(site.checkout).parts]
    store = "" if site.project is None else site.project.store.name
    return ".git" not in below and below[:1] != [store]
