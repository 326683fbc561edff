"""Every difference that a test is skipped for has its paragraph."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "api-differences.md"


def test_every_difference_is_documented() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(HERE.glob("test_*.py")))
    named = set(re.findall(r'differs\("([a-z-]+)"\)', text)) | {"wrong-types"}
    page = PAGE.read_text(encoding="utf-8")
    missing = [name for name in sorted(named) if f"(`{name}`)" not in page]
    assert not missing, f"{PAGE.name} does not explain {', '.join(missing)}"
