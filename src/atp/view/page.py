"""The page that the view's server sends: that of the HTML report, with scripts that get its data from the server."""

from functools import cache
from importlib.resources import files

from atp.report.html.page import assets, page_around_data, page_script, policy

SCRIPTS = ("fetched.js", "live.js", "runs.js", "beside.js", "past.js", "anywhere.js", "labels.js")
"""The parts of the script that only the live page has."""


@cache
def page() -> tuple[bytes, str]:
    """The page, and its content security policy. There is no data in it."""
    style = f"{assets()[0]}\n{_asset('view.css')}"
    script = page_script([_asset(name) for name in SCRIPTS])
    allowed = policy(style, script, "'self'")
    head, tail = page_around_data(style, script, title="ATP", policy=allowed, live=True)
    return head + tail + b"</body>\n</html>\n", f"{allowed}; frame-ancestors 'none'"


@cache
def page_without_token() -> tuple[str, str]:
    """The page for an address without its token, as after a reload: its script finds the token that was kept."""
    script = _asset("again.js")
    return _asset("again.html").replace("/* script */", script), policy("", script)


def _asset(name: str) -> str:
    return files("atp.view").joinpath("assets", name).read_text(encoding="utf-8")
