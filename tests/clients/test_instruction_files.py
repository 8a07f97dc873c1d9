"""Nothing of the user's is hidden, and what can't be shown is told."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clients.rig import facts
from clients.rig.claude import Claude
from clients.rig.codex import Codex
from clients.rig.product import Product

THEIRS = "Hand-written, and to be kept."


def test_a_project_without_claude_md_gets_none(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    (git_repo / "AGENTS.md").write_text(THEIRS + "\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)
    with product.service():
        pass

    prompt = claude.prompt(git_repo)

    assert not [name for name in ("CLAUDE.md", ".claude/CLAUDE.md") if (git_repo / name).exists()]
    assert prompt.contents_of(git_repo / "AGENTS.md") is not None
    assert (prompt.count(THEIRS), prompt.count(facts.BODY)) == (1, 1)
    assert codex.prompt(git_repo).count(THEIRS) == 1


def test_with_claude_md_only_the_users_text_stays_visible_to_claude(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    (git_repo / "CLAUDE.md").write_text(THEIRS + "\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)
    with product.service():
        pass

    prompt = claude.prompt(git_repo)

    assert (prompt.count(THEIRS), prompt.count(facts.BODY)) == (1, 1)
    assert codex.prompt(git_repo).count(facts.BODY) == 1


def test_an_override_and_the_file_it_hides_both_have_the_fact(
    codex: Codex, product: Product, git_repo: Path
) -> None:
    (git_repo / "AGENTS.md").write_text(THEIRS + "\n", "utf-8")
    override = git_repo / "AGENTS.override.md"
    override.write_text("Instead.\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)
    with product.service():
        pass

    assert codex.prompt(git_repo).count(facts.BODY) == 1
    override.unlink()
    prompt = codex.prompt(git_repo)
    assert (prompt.count(facts.BODY), prompt.count(THEIRS)) == (1, 1)


def test_a_global_override_has_the_global_fact(codex: Codex, product: Product, git_repo: Path) -> None:
    home = codex.home / ".codex"
    (home / "AGENTS.md").write_text("Everywhere.\n", "utf-8")
    (home / "AGENTS.override.md").write_text("Instead.\n", "utf-8")
    product.init(git_repo)
    product.run("add", "Spelling is British everywhere.", "--scope", "global", cwd=git_repo)
    with product.service():
        pass

    (git_repo / "sub").mkdir()
    for place in (git_repo, git_repo / "sub"):
        prompt = codex.prompt(place)
        assert (prompt.count("Spelling is British"), prompt.count("Instead.")) == (1, 1)


def test_an_untrusted_project_is_told_and_nothing_is_written_for_codex(
    codex: Codex, product: Product, git_repo: Path
) -> None:
    (codex.home / ".codex/config.toml").write_text(
        f'[projects."{git_repo}"]\ntrust_level = "untrusted"\n', "utf-8"
    )
    for name in ("AGENTS.md", "CLAUDE.md"):
        (git_repo / name).write_text(THEIRS + "\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)
    with product.service() as service:
        told = str(service.project(git_repo)["notices"])

    assert (git_repo / "AGENTS.md").read_text("utf-8") == THEIRS + "\n"
    assert facts.BODY in (git_repo / "CLAUDE.md").read_text("utf-8")
    assert codex.prompt(git_repo).count(facts.BODY) == 0
    assert "untrusted" in told


def test_a_file_that_codex_reads_by_a_fallback_name_is_the_carrier(
    codex: Codex, product: Product, git_repo: Path
) -> None:
    (codex.home / ".codex/config.toml").write_text('project_doc_fallback_filenames = ["TEAM.md"]\n', "utf-8")
    (git_repo / "TEAM.md").write_text(THEIRS + "\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)
    with product.service():
        pass

    prompt = codex.prompt(git_repo)

    assert (prompt.count(THEIRS), prompt.count(facts.BODY)) == (1, 1)


def test_files_made_in_the_repository_stay_out_of_git(product: Product, git_repo: Path) -> None:
    product.init(git_repo)
    facts.save(git_repo)
    with product.service():
        pass
    assert facts.BODY in (git_repo / "AGENTS.md").read_text("utf-8")

    shown = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=git_repo, capture_output=True, text=True, check=True
    )

    assert "AGENTS.md" not in shown.stdout
    assert ".claude" not in shown.stdout


def test_a_fact_that_codex_has_no_room_for_is_named_in_status(
    claude: Claude, codex: Codex, product: Product, git_repo: Path
) -> None:
    """Under 2 KiB beside the user's own text: a hook would be the carrier, and there is none yet."""
    (codex.home / ".codex/config.toml").write_text("project_doc_max_bytes = 2500\n", "utf-8")
    (git_repo / "AGENTS.md").write_text(f"{THEIRS}\n{'Mine. ' * 200}\n", "utf-8")
    (git_repo / "CLAUDE.md").write_text("Mine too.\n", "utf-8")
    product.init(git_repo)
    facts.save(git_repo)
    with product.service() as service:
        project = service.project(git_repo)

    prompt = codex.prompt(git_repo)
    assert (prompt.count(THEIRS), prompt.count(facts.BODY)) == (1, 0)
    assert claude.prompt(git_repo).count(facts.BODY) == 1
    assert "project_doc_max_bytes" in str(project["notices"])
    [fact] = product.run("list", cwd=git_repo)["data"]["facts"]
    assert fact["id"] in str(project["left_out"])
