"""Opens pages in the user's browser."""

import webbrowser
from collections.abc import Iterable, Sequence

import click

from atp.journal.listeners import Listener
from atp.report.reporter import Reporter


def open_page(address: str) -> None:
    """Open an address in the browser, or say that there is none: whoever asked can still open it."""
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        click.echo("atp: no browser could be opened", err=True)


def html_reports(listeners: Iterable[Listener]) -> Sequence[Reporter]:
    """The HTML reports among them that go into a file."""
    return [one for one in listeners if isinstance(one, Reporter) and one.path and one.format == "report.html"]


def open_reports(pages: Iterable[Reporter]) -> None:
    """Open those reports in the browser that were written."""
    for page in pages:
        if page.target is not None and not page.problems:
            open_page(page.target.absolute().as_uri())
