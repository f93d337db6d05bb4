"""What judging costs: calls and tokens of the judge for one case with 10 expectations and 3 runs.

The judge is a model behind a real server on the loopback; the agent is a function. A second run of the same suite shows
what the cache of judgements saves.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.engine.support.judge import judge
from tests.models.mock_server import MockModels

EXPECTATIONS = [
    "the answer is polite",
    "the answer greets the guest by name",
    "the answer says when breakfast is served",
    "the answer is short",
    "nothing is promised that the house can't keep",
    "the answer is in the language of the question",
    "no other guest is mentioned",
    "the price is given with its currency",
    "the guest is asked about allergies",
    "the answer ends with an offer to help",
]
RUNS = 3
AGENT = """
def answer(prompt, context):
    visit = context["run"] if {differ} else 1
    return {{"output": f"Good morning, Ada. Breakfast is from 7 to 10 and costs 12 EUR. Visit {{visit}}. "
                      "Do you have any allergies? I am glad to help.",
            "tool_calls": [{{"name": "look_up", "arguments": {{"what": "breakfast"}}, "result": {{"from": 7}}}}]}}
"""
NO_CACHE = "--no-judge-cache"
EXPECTED = {
    # (answers differ, one call each): calls in a first run, in a second one, in one without the cache
    (True, False): [RUNS, 0, RUNS],
    (True, True): [RUNS * len(EXPECTATIONS), 0, RUNS * len(EXPECTATIONS)],
    (False, False): [1, 0, RUNS],
}


def measure(folder: Path, *flags: str) -> tuple[int, int, int]:
    """Calls of the judge, and the tokens it read and wrote; a token is a word here."""
    with MockModels(judge(lambda _asked, _record: True)) as server:
        command = [sys.executable, "-m", "atp", "test", "case.jsonl", "-n", "agent.py:answer", "--runs", str(RUNS)]
        command += ["--assessor", "openai.judge", "--json", *flags]
        env = {**os.environ, **server.env}
        ran = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        asked = len(server.requests)
    newest = max((folder / ".atp/runs").iterdir())
    lines = [json.loads(line) for line in (newest / "journal.jsonl").read_text("utf-8").splitlines()]
    used = [one["result"].get("role_usage") or {} for one in lines if one["type"] == "trial"]
    read, written = (sum(one.get(name) or 0 for one in used) for name in ("input_tokens", "output_tokens"))
    return asked, read, written


def rows(differ: bool, each: bool) -> list[tuple[str, tuple[int, int, int]]]:
    """A first run, a second one, and one without the cache."""
    flags = ["--judge-each"] if each else []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "agent.py").write_text(AGENT.format(differ=differ))
        case = {"id": "breakfast", "input": "Hello, I am Ada. Breakfast?", "expectations": EXPECTATIONS}
        (folder / "case.jsonl").write_text(json.dumps(case))
        runs = {"first run": [], "second run": [], NO_CACHE: [NO_CACHE]}
        return [(name, measure(folder, *flags, *more)) for name, more in runs.items()]


def main() -> int:
    print(f"{len(EXPECTATIONS)} expectations, {RUNS} runs; a token is a word")
    print(f"{'':40}{'calls':>6}{'read':>9}{'written':>9}")
    wrong = 0
    for (differ, each), expected in EXPECTED.items():
        found = rows(differ, each)
        about = f"{'--judge-each' if each else 'all in one call'}, {'' if differ else 'equal answers'}".rstrip(", ")
        print(about)
        for name, (asked, read, written) in found:
            print(f"{'':20}{name:20}{asked:6}{read:9,}{written:9,}")
        wrong += [asked for _, (asked, _, _) in found] != expected
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
