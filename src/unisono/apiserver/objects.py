"""Objects as clients write them and the store keeps them; any field may be anything at first.

Typed manifests are in `kinds`; here an object passes through with all its fields, known or not.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
