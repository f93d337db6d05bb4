"""Takes the pictures of the README and of docs/view.md, of the demo's first suite and of a suite like it.

    .venv/bin/python tools/screenshot.py

Needs the Chromium that the browser tests use; tools/chromium.sh installs it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
ATP = str(Path(sys.executable).with_name("atp"))


QUESTIONS = ["opening-hours", "refund-late", "refund-damaged", "change-address", "cancel-order", "gift-card", "invoice"]
QUESTIONS += ["track-parcel", "price-match", "warranty", "two-orders", "wrong-size", "lost-parcel", "newsletter"]
AGENT = """
import pathlib, random, time

def answer(prompt, context):
    luck = random.Random(prompt + pathlib.Path("version").read_text())
    time.sleep(luck.uniform(0.05, 0.1) if pathlib.Path("fast").exists() else luck.uniform(0.4, 1.6))
    good = luck.random() < float(pathlib.Path("quality").read_text())
    return f"About {prompt}: we take it back within 30 days." if good else f"About {prompt}: please ask somebody else."
"""


def report(browser: Browser, folder: Path) -> None:
    """The HTML report of the demo's first suite, run in a copy of the examples."""
    examples, target = folder / "examples", folder / "report.html"
    shutil.copytree(ROOT / "examples", examples, ignore=shutil.ignore_patterns(".atp"))
    atp(examples, "test", "files.yaml", "--runs", "5", "--quiet", "-o", str(target))
    shoot(browser, target.as_uri(), "report", height=900)


def view(browser: Browser, folder: Path) -> None:
    """The list of runs, a run that runs, and a comparison, of a shop's agent that gets better."""
    check = [{"type": "contains", "value": "30 days"}]
    tests = [{"id": one, "name": one.replace("-", " "), "input": one, "assertions": check} for one in QUESTIONS]
    agent = {"name": "shop", "type": "custom", "config": {"entry": "agent.py:answer"}}
    suite = {"test_suite": "shop", "agents": [agent], "tests": tests}
    (folder / "shop.yaml").write_text(json.dumps(suite), encoding="utf-8")
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    (folder / "fast").touch()
    for number, quality in enumerate((0.35, 0.45, 0.4, 0.6, 0.55, 0.75, 0.85)):
        (folder / "version").write_text(str(number), encoding="utf-8")
        (folder / "quality").write_text(str(quality), encoding="utf-8")
        atp(folder, "test", "shop.yaml", "--quiet", "--runs", "3")
    runs = sorted(path.name for path in (folder / ".atp" / "runs").iterdir())
    server = subprocess.Popen([ATP, "view"], cwd=folder, stdout=subprocess.PIPE, encoding="utf-8")  # noqa: S603
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    (folder / "fast").unlink()
    command = [ATP, "test", "shop.yaml", "-q", "--parallel", "3"]
    running = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603
    try:
        shoot(browser, address, "view-runs", "tr.is-running")
        newest = next(path.name for path in (folder / ".atp" / "runs").iterdir() if path.name not in runs)
        shoot(browser, f"{address}#run={newest}", "view-live", ".now li", ".why li")
        shoot(browser, f"{address}#view=compare&run={runs[0]}&with={runs[-1]}", "view-compare", "tr.row", height=900)
    finally:
        running.terminate()
        running.wait()
        server.terminate()
        server.wait()


def atp(folder: Path, *arguments: str) -> None:
    """Call `atp`, whatever its exit code: some of the tests fail."""
    subprocess.run([ATP, *arguments], cwd=folder, check=False, stdout=subprocess.DEVNULL)  # noqa: S603


def shoot(browser: Browser, address: str, name: str, *shown: str, height: int = 720) -> None:
    """Keep a picture of a page, once these elements are in it."""
    page = browser.new_page(viewport={"width": 1280, "height": height})
    page.goto(address)
    page.locator("html[data-ready]").wait_for(state="attached")
    for one in shown:
        page.locator(one).first.wait_for()
    IMAGES.mkdir(exist_ok=True)
    page.screenshot(path=IMAGES / f"{name}.png")
    page.close()


def main(chromium: str) -> None:
    """Take all pictures, or those whose names are given: `report`, `view`."""
    wanted = sys.argv[1:] or ["report", "view"]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        for take in (report, view):
            with tempfile.TemporaryDirectory() as folder:
                if take.__name__ in wanted:
                    take(browser, Path(folder))
        browser.close()


if __name__ == "__main__":
    found = os.environ.get("ATP_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None:
        sys.exit("Chromium is not installed: tools/chromium.sh does it")
    main(found)
