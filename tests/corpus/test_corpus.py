"""The table of manifests: every row comes true, and nearly all manifests work."""

from __future__ import annotations

import pytest

from tests.corpus.table import RIGHT, expected, folder_of, is_as_expected, summary
from tests.corpus.trial import OUTCOMES, judged

# Of all manifests, in percent; the rest has to warn.
_LEAST_RIGHT = 92


def test_every_row_has_an_outcome_and_a_reason() -> None:
    rows = expected()
    assert rows
    for row in rows.values():
        assert set(row.outcome.split("|")) <= {*OUTCOMES}, row
        assert row.reason, row


@pytest.mark.slow
def test_manifests_of_other_projects_do_what_the_table_says() -> None:
    folder = folder_of()
    if folder is None:
        pytest.skip("the folder of manifests is not here; name one in UNISONO_CORPUS")
    rows = expected()
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*.yaml"))
    assert files == sorted(rows), "the table has a row for every file, and no other"
    found = {name: judged(folder / name) for name in files}
    print(summary(found))
    wrong = [
        f"{name}: {one.word} {one.says}"
        for name, one in found.items()
        if not is_as_expected(rows[name], one)
    ]
    assert not wrong, "\n".join(wrong)
    right = sum(one.word in RIGHT for one in found.values())
    assert 100 * right >= _LEAST_RIGHT * len(found), summary(found)
