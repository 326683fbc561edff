"""The changelog takes the change notes in, in order, once each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.changelog import WrongNote, gather, main

ROOT = Path(__file__).resolve().parents[2]

EMPTY = "# Changelog\n\nHello.\n\n## [Unreleased]\n"
NOTES = {
    "why.fixed.md": "A reason is\nnever lost.\n",
    "pools.added.md": "Pooled quota.\n",
    "cohorts.added.md": "Cohorts.\n",
}
GATHERED = (
    "# Changelog\n\nHello.\n\n## [Unreleased]\n\n"
    "### Added\n\n- Cohorts.\n- Pooled quota.\n\n"
    "### Fixed\n\n- A reason is never lost.\n"
)


def test_notes_are_grouped_by_kind_and_sorted_by_name() -> None:
    assert gather(EMPTY, NOTES) == GATHERED


def test_gathering_twice_changes_nothing() -> None:
    assert gather(GATHERED, NOTES) == GATHERED


def test_without_notes_the_section_stays_as_it_is() -> None:
    assert gather(GATHERED, {}) == GATHERED


def test_a_note_is_added_beside_entries_of_its_area() -> None:
    before = EMPTY + "\nFirst release.\n\n### Added\n\n- **API:** Watches.\n- **Slurm:** Jobs.\n"
    written = gather(before, {"lists.added.md": "**API:** Lists.", "other.added.md": "Other."})
    assert written == EMPTY + (
        "\nFirst release.\n\n### Added\n\n"
        "- **API:** Watches.\n- **API:** Lists.\n- **Slurm:** Jobs.\n- Other.\n"
    )


def test_an_unknown_heading_is_refused() -> None:
    with pytest.raises(WrongNote, match="### Improved"):
        gather(EMPTY + "\n### Improved\n\n- All.\n", {})


def test_older_releases_stay_as_they_are() -> None:
    older = "\n## [0.0.1] - 2026-01-01\n\n### Added\n\n- Something.\n"
    assert gather(EMPTY + older, NOTES) == GATHERED + older
    assert gather(GATHERED + older, {}) == GATHERED + older


def test_long_notes_are_wrapped_under_their_bullet() -> None:
    written = gather(EMPTY, {"long.changed.md": "word " * 40})
    bullet = written.partition("### Changed\n\n")[2].splitlines()
    assert [line[:2] for line in bullet] == ["- ", "  ", "  "]
    assert all(len(line) <= 100 for line in bullet)


@pytest.mark.parametrize(
    ("notes", "problem"),
    [
        ({"pools.new.md": "x"}, "changes/pools.new.md: call it"),
        ({"Pools.added.md": "x"}, "changes/Pools.added.md: call it"),
        ({"pools.added.md": " \n"}, "changes/pools.added.md: is empty"),
    ],
)
def test_a_wrong_note_is_refused_by_name(notes: dict[str, str], problem: str) -> None:
    with pytest.raises(WrongNote, match=problem):
        gather(EMPTY, notes)


def test_a_changelog_without_the_section_is_refused() -> None:
    with pytest.raises(WrongNote, match="exactly one heading"):
        gather("# Changelog\n", NOTES)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a directory with a changelog and notes."""
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").write_text("How to write notes.\n")
    for name, text in NOTES.items():
        (tmp_path / "changes" / name).write_text(text)
    (tmp_path / "CHANGELOG.md").write_text(EMPTY)
    return tmp_path


def test_the_command_moves_the_notes_into_the_file(project: Path) -> None:
    assert main(["--root", str(project)]) == 0
    assert (project / "CHANGELOG.md").read_text() == GATHERED
    assert [path.name for path in (project / "changes").iterdir()] == ["README.md"]


def test_a_release_dates_the_section_and_deletes_the_notes(project: Path) -> None:
    assert main(["--root", str(project), "--release", "0.2.0", "--date", "2026-02-03"]) == 0
    written = (project / "CHANGELOG.md").read_text()
    assert "## [Unreleased]\n\n## [0.2.0] - 2026-02-03\n\n### Added\n" in written
    assert [path.name for path in (project / "changes").iterdir()] == ["README.md"]
    # The next round starts empty and leaves the release alone.
    assert main(["--root", str(project)]) == 0
    assert (project / "CHANGELOG.md").read_text() == written


def test_trouble_is_one_line_and_changes_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "changes" / "oops.md").write_text("x")
    assert main(["--root", str(project)]) == 2
    assert (project / "CHANGELOG.md").read_text() == EMPTY
    assert capsys.readouterr().err.startswith("changelog: changes/oops.md: call it ")


def test_the_notes_of_this_project_can_be_gathered() -> None:
    files = (path for path in (ROOT / "changes").glob("*.md") if path.name != "README.md")
    notes = {path.name: path.read_text(encoding="utf-8") for path in files}
    gather((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), notes)
