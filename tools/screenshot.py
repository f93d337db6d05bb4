"""Takes the picture of the HTML report that the README shows, of the demo's first suite: docs/images/report.png.

    .venv/bin/python tools/screenshot.py

Needs the Chromium that the browser tests use; tools/chromium.sh installs it.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
ATP = Path(sys.executable).with_name("atp")


def take(chromium: str, picture: Path) -> None:
    """Run the suite in a copy of the examples, and keep a picture of its report."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        examples, report = Path(folder) / "examples", Path(folder) / "report.html"
        shutil.copytree(ROOT / "examples", examples, ignore=shutil.ignore_patterns(".atp"))
        command = [ATP, "test", "files.yaml", "--runs", "5", "--quiet", "-o", report]
        subprocess.run(list(map(str, command)), cwd=examples, check=False, stdout=subprocess.DEVNULL)  # noqa: S603
        browser = driver.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(report.as_uri())
        page.locator("html[data-ready]").wait_for(state="attached")
        picture.parent.mkdir(exist_ok=True)
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    found = os.environ.get("ATP_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if found is None:
        sys.exit("Chromium is not installed: tools/chromium.sh does it")
    take(found, PICTURE)
