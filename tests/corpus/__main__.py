"""What becomes of the manifests of other projects, in numbers.

python -m tests.corpus                     # all; counts per project, and what is not expected
python -m tests.corpus kuberay/ --every    # some of them, with what each of them says
python -m tests.corpus --folder ~/others   # other manifests: nothing is expected of them
python -m tests.corpus --record            # new rows for expected.tsv, on stdout
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.corpus.table import Row, expected, folder_of, is_as_expected, summary
from tests.corpus.trial import judged


def main() -> int:
    """Judge manifests and compare; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.corpus", description=__doc__)
    parser.add_argument("only", nargs="*", help="files whose path contains one of these")
    parser.add_argument("--folder", type=Path, help="manifests to judge without a table")
    parser.add_argument("--every", action="store_true", help="print a line for every file")
    parser.add_argument("--record", action="store_true", help="print what is found as a table")
    arguments = parser.parse_args()
    folder = arguments.folder or folder_of()
    if folder is None or not folder.is_dir():
        print("no folder of manifests here; name one in UNISONO_CORPUS", file=sys.stderr)
        return 2
    rows = expected() if arguments.folder is None else {}
    found, wrong = {}, 0
    for file in sorted((*folder.rglob("*.yaml"), *folder.rglob("*.yml"))):
        name = str(file.relative_to(folder))
        if arguments.only and not any(one in name for one in arguments.only):
            continue
        outcome = found[name] = judged(file)
        row = rows.get(name)
        if arguments.record:
            kept = row or Row(name, outcome.word, outcome.says, "")
            print("\t".join((name, outcome.word, " ".join(outcome.says.split()), kept.reason)))
            continue
        is_right = outcome.word != "wrong" if row is None else is_as_expected(row, outcome)
        wrong += not is_right
        if arguments.every or not is_right:
            mark = "" if is_right else "NOT EXPECTED: "
            print(f"{mark}{name}: {outcome.word} {outcome.says}".rstrip(), flush=True)
    if not arguments.record:
        print(summary(found))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
