"""Reads a written HTML report."""

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any


class Read:
    """A report, unpacked as the page's own script does it."""

    def __init__(self, path: Path) -> None:
        self.source = path.read_text(encoding="utf-8")
        blocks = re.findall(r'<script type="application/octet-stream" id="([\w-]+)">([^<]*)</script>', self.source)
        self.blocks = {name: json.loads(zlib.decompress(base64.b64decode(data))) for name, data in blocks}
        self.run: dict[str, Any] = self.blocks["run"]
        self.rows: list[dict[str, Any]] = self.blocks["rows"]

    def detail(self, chunk: int, place: int) -> Any:
        return self.blocks[f"chunk-{chunk}"][place]

    def trial(self, row: int, number: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self.detail(*self.rows[row]["trials"][number][5:])
        return found

    def case(self, row: int) -> dict[str, Any]:
        found: dict[str, Any] = self.detail(*self.rows[row]["at"])
        return found
