"""A small agent on the command line, which makes files.

It speaks ATP's protocol: a request on stdin, its events as JSON lines on stderr, a response on stdout. It has a fault,
so that there is something to find: it counts line breaks, and a last line may have none.
"""

import json
import re
import sys
from pathlib import Path


def tell(tool: str, **arguments: str) -> None:
    """Tell whoever watches that a tool was used."""
    event = {"event_type": "tool_call", "payload": {"tool": tool, "input": arguments, "status": "success"}}
    print(json.dumps(event), file=sys.stderr, flush=True)


def answer(task: dict) -> object:
    """What the agent says in the end."""
    described = task["description"]
    if note := re.search(r'"(.*)" to (\S+\.txt)', described):
        text, name = note.groups()
        Path(name).write_text(f"{text}\n")  # the working directory is the trial's own
        tell("file_write", path=name)
        return f"I wrote {name}."
    if "Count the lines" in described:
        tell("file_read", path="the log")
        return {"lines": task["input_data"]["log"].count("\n")}
    return "I make notes and count lines."


request = json.load(sys.stdin)
output = answer(request["task"])
response = {"version": "1.0", "task_id": request["task_id"], "status": "completed", "output": output}
print(json.dumps(response | {"metrics": {"total_tokens": 120, "cost_usd": 0.0003}}))
