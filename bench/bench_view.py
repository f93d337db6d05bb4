"""What `atp view` takes for 100,000 cases: until the page can be used, a search, the server's memory; the static file.

    .venv/bin/python bench/bench_view.py

Needs the Chromium that the browser tests use. Where `tools/inspect-env.sh` has made an environment with Inspect, its
viewer shows the same 5,000 cases beside it.
"""

import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from atp.journal.records import RunInfo, Summary, Trial
from atp.journal.write import Journal
from atp.stats.summary import Summary as Counts
from atp.suite.result import CaseInfo, CaseResult, Transcript, TrialResult, Turn, Usage, Verdict

MANY = 100_000
FEW = 5_000
INTERACTIVE = 1.0
"""Seconds from the address to a page whose table and search can be used."""
SEARCH = 0.3
"""Seconds from the last letter to the rows that fit."""
MEMORY = 300
"""Megabytes of the server, with all of the run read."""
STATIC = 1_000_000
"""Bytes of the report of `FEW` cases."""
ATP = [sys.executable, "-m", "atp"]
INSPECT = Path(__file__).parents[1] / ".venv" / "envs" / "inspect" / "bin"
LOG = """
import sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import includes

count = int(sys.argv[1])
said = ("please cancel" if number % 20 == 0 else "please book it" for number in range(count))
answers = (ModelOutput.from_content("mockllm/model", one) for one in said)
data = [Sample(id=f"case-{number:06}", input=f"refund order hotel {number}?", target="book") for number in range(count)]
eval(
    Task(dataset=data, scorer=includes()), model=get_model("mockllm/model", custom_outputs=answers),
    log_dir=sys.argv[2], display="none",
)
"""
"""Writes a log of Inspect with so many samples, by a model that is none."""
WORDS = [
    "refund",
    "order",
    "hotel",
    "flight",
    "receipt",
    "invoice",
    "total",
    "limit",
    "policy",
    "trip",
    "book",
    "cancel",
    "change",
    "please",
    "thanks",
]


def cases(count: int) -> Iterator[tuple[TrialResult, CaseInfo]]:
    """Cases with a short conversation; one of twenty fails."""
    luck = random.Random(7)
    for number in range(count):
        question, answer = " ".join(luck.choices(WORDS, k=9)), " ".join(luck.choices(WORDS, k=25))
        wrong = number % 20 == 0
        why = f'expected the output to contain "{luck.choice(WORDS)}"' if wrong else None
        verdict = Verdict(type="contains", outcome="failed" if wrong else "passed", message=why or "the output fits")
        result = TrialResult(
            key=f"{luck.getrandbits(128):032x}-0-1",
            agent="desk",
            case=f"case-{number:06}",
            index=number,
            status="failed" if wrong else "passed",
            error=why,
            verdicts=[verdict],
            score=0.0 if wrong else 100.0,
            started_at=1794821400.0 + number / 100,
            duration_ms=round(luck.lognormvariate(0, 0.4) * 900, 1),
            transcript=Transcript(
                messages=[{"role": "user", "content": question}, {"role": "assistant", "content": answer}],
                turns=[Turn(turn=1, input=question, output=answer, duration_ms=800)],
                usage=Usage(input_tokens=320, output_tokens=80, cost_usd=0.0013),
            ),
        )
        yield result, CaseInfo(name=" ".join(luck.choices(WORDS, k=4)), line=number + 1, tags=[luck.choice(WORDS)])


def write_run(folder: Path, count: int) -> Path:
    """The journal of a finished run, as `atp test` writes it."""
    run = folder / ".atp" / "runs" / f"20261116-093000-{count:07}"
    journal, counts = Journal(run), Counts()
    began = 1794821400.0
    info = RunInfo(
        format=1,
        id=run.name,
        at=began,
        version="0",
        identity=["desk.jsonl"],
        input=["desk.jsonl"],
        agents=["desk"],
        cases=count,
        trials=count,
    )
    journal.write(info)
    for result, about in cases(count):
        journal.write(Trial(result=result, file="desk.jsonl", about=about))
        counts.add_case(CaseResult(agent="desk", case=result.case, status=result.status, trials=[result]))
    journal.write(Summary(at=began + 1000, complete=True, counts=counts.counts(), exit_code=1))
    journal.close()
    return run


def chromium() -> str:
    found = os.environ.get("ATP_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None:
        sys.exit("Chromium is not installed: tools/chromium.sh does it")
    return found


def memory(pid: int) -> float:
    """The most memory that a process had, in megabytes."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")) / 1000


def view(browser: Browser, folder: Path, run: Path) -> dict[str, float]:
    """Seconds and megabytes of the view of a run: opened for the first time, and again."""
    server = subprocess.Popen([*ATP, "view"], cwd=folder, stdout=subprocess.PIPE, encoding="utf-8")
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    found: dict[str, float] = {}
    try:
        for name in ("first", "again"):
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            began = time.perf_counter()
            page.goto(f"{address}#run={run.name}", wait_until="commit")
            page.locator("html[data-ready]").wait_for(state="attached")
            page.keyboard.press("/")  # a key is answered: the page shows the table, and the search has the focus
            page.locator("tr.row a.open").first.wait_for()
            page.locator("#search:focus").wait_for()
            found[f"{name}: usable"] = time.perf_counter() - began
            page.wait_for_function(
                "count => document.querySelector('table.grid')?.getAttribute('aria-rowcount') === String(count + 1)",
                arg=MANY,
                timeout=120_000,
            )
            found[f"{name}: all cases"] = time.perf_counter() - began
            if name == "again":
                found["search"] = search(page)
            page.close()
        found["memory"] = memory(server.pid)
    finally:
        server.terminate()
        server.wait()
    return found


SEARCHING = """async (word) => {
    const field = document.getElementById("search");
    const began = performance.now();
    field.value = word;
    field.dispatchEvent(new Event("input"));
    const told = () => document.querySelector(".found").textContent.includes(" of ");
    while (!told()) await new Promise(requestAnimationFrame);
    return (performance.now() - began) / 1000;
}"""


def search(page: Any) -> float:
    """Seconds from a typed word to the rows that fit, the first time, when nothing is prepared."""
    seconds: float = page.evaluate(SEARCHING, "case-0777")
    return seconds


def few(browser: Browser, folder: Path, run: Path) -> float:
    """Seconds until the first case of a run of `FEW` is shown, from the address of `atp view`."""
    server = subprocess.Popen([*ATP, "view"], cwd=folder, stdout=subprocess.PIPE, encoding="utf-8")
    assert server.stdout is not None
    try:
        page = browser.new_page()
        began = time.perf_counter()
        page.goto(f"{server.stdout.readline().strip()}#run={run.name}", wait_until="commit")
        page.get_by_text("case-000000").first.wait_for(state="attached")
        return time.perf_counter() - began
    finally:
        server.terminate()
        server.wait()


def inspect(browser: Browser, folder: Path) -> float:
    """Seconds until the first of `FEW` samples is shown, from the address of Inspect's viewer."""
    logs = folder / "logs"
    subprocess.run([INSPECT / "python", "-c", LOG, str(FEW), logs], check=True, stdout=subprocess.DEVNULL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    viewer = [INSPECT / "inspect", "view", "start", "--log-dir", logs, "--host", "127.0.0.1", "--port", port]
    server = subprocess.Popen(
        list(map(str, viewer)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    )
    assert server.stdout is not None
    try:
        next(line for line in server.stdout if "Running on" in line)
        (log,) = logs.iterdir()
        page = browser.new_page()
        began = time.perf_counter()
        page.goto(f"http://127.0.0.1:{port}/#/tasks/{log.name}", wait_until="commit")
        page.get_by_text("case-000001").first.wait_for(state="attached")
        return time.perf_counter() - began
    finally:
        server.terminate()
        server.wait()


def static(folder: Path, run: Path) -> int:
    """Bytes of the report in one file."""
    target = folder / "report.html"
    subprocess.run([*ATP, "report", run.name, "-o", target], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return target.stat().st_size


def main() -> int:
    """Measure, print, and say by the exit code whether a limit is passed."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as driver:
        folder = Path(name)
        run = write_run(folder, MANY)
        browser = driver.chromium.launch(executable_path=chromium(), args=["--headless", "--no-sandbox"])
        found = view(browser, folder, run)
        small = write_run(folder, FEW)
        size = static(folder, small)
        shown = few(browser, folder, small)
        beside = inspect(browser, folder) if INSPECT.exists() else None
        browser.close()
    limits = {"first: usable": INTERACTIVE, "again: usable": INTERACTIVE, "search": SEARCH, "memory": MEMORY}
    for what, value in found.items():
        unit = "MB" if what == "memory" else "s"
        limit = f"  (limit {limits[what]:g} {unit})" if what in limits else ""
        print(f"{MANY:,} cases, {what:<18} {value:8.2f} {unit}{limit}")
    print(f"{FEW:,} cases, the static file    {size / 1e6:8.2f} MB  (limit {STATIC / 1e6:g} MB)")
    print(f"{FEW:,} cases, the first is shown {shown:8.2f} s")
    if beside is None:
        print("Inspect's viewer: not measured, tools/inspect-env.sh makes its environment")
    else:
        print(f"{FEW:,} samples in Inspect's   {beside:8.2f} s")
    print(json.dumps({**found, "static": size}))
    return int(size > STATIC or any(found[what] > limit for what, limit in limits.items()))


if __name__ == "__main__":
    sys.exit(main())
