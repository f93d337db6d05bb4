"""Opens a page in the user's browser."""

import sys
import webbrowser

import click


def open_page(address: str) -> None:
    """Open an address in the browser, or say that there is none: whoever asked can still open it."""
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        click.echo("atp: no browser could be opened", file=sys.stderr)
