"""An MCP server that speaks plain JSON, without the SDK, and does what the SDK would not: its first argument says what.

Each call of its tool adds a line to the file that `MCP_CALLS` names.
"""

import json
import os
import sys
from typing import Any

TOOL: dict[str, Any] = {"name": "pay", "description": "Pays.", "inputSchema": {"type": "object"}}
TOOLS: dict[str, Any] = {
    "no schema": [TOOL, {"name": "bare"}],
    "bad schema": [TOOL | {"inputSchema": {"type": "banana"}}],
    "text schema": [TOOL | {"inputSchema": "x"}],
    "no list": "pay",
    "twice": [TOOL, TOOL],
    "long name": [TOOL | {"name": "x" * 200}],
}
ABOUT: dict[str, Any] = {"capabilities": {"tools": {}}, "serverInfo": {"name": "raw", "version": "1"}}
INITIALIZED: dict[str, Any] = {
    "error at first": {"error": {"code": -1, "message": "go away"}},
    "error and end": {"error": {"code": -1, "message": "go away"}},
    "other version": {"result": {"protocolVersion": "1999-01-01", **ABOUT}},
    "junk at first": {"result": {"protocolVersion": "2025-06-18", "capabilities": {}}},
}
CALLED: dict[str, Any] = {
    "-32000": {"error": {"code": -32000, "message": "the card was declined"}},
    "-32001": {"error": {"code": -32001, "message": "the card is not known"}},
}


def answer(mode: str, method: str, params: Any) -> Any:
    if method == "initialize":
        return INITIALIZED.get(mode, {"result": {"protocolVersion": params["protocolVersion"], **ABOUT}})
    if method == "tools/list":
        return {"result": {"tools": TOOLS.get(mode, [TOOL])}}
    if method == "tools/call":
        with open(os.environ["MCP_CALLS"], "a", encoding="utf-8") as file:
            file.write("called\n")
        return CALLED.get(mode, {"result": {"content": [{"type": "text", "text": "paid"}]}})
    if mode == "ignores":
        return None
    return {"error": {"code": -32601, "message": "no such method"}}


def main() -> None:
    mode = sys.argv[1]
    for line in sys.stdin:
        heard = json.loads(line)
        if "id" not in heard:
            continue
        said = answer(mode, heard["method"], heard.get("params"))
        if said is not None:
            sys.stdout.write(f"{json.dumps({'jsonrpc': '2.0', 'id': heard['id'], **said})}\n")
            sys.stdout.flush()
        if mode == "error and end" and heard["method"] == "initialize":
            sys.exit("no licence")


if __name__ == "__main__":
    main()
