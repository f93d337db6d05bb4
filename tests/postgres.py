"""A server of PostgreSQL for tests and benchmarks: of its own, on a free port of the loopback, gone afterwards."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.parts import missing
from tests.waiting import WAIT_LIMIT, until

TRIES = 5
"""Another program may take the port that was free."""


def _program(name: str) -> str:
    """Debian has the server's programs outside of the path, in a folder for each version."""
    found = shutil.which(name) or next(
        iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)), None
    )
    return str(found) if found is not None else missing(f"{name} is not installed: tools/postgresql.sh does it")


def _user() -> pwd.struct_passwd | None:
    """Whom the server runs as; None is this process's own user. The server refuses to run as root."""
    if os.geteuid() != 0:
        return None
    known = {one.pw_name: one for one in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


@contextmanager
def postgres() -> Iterator[str]:
    """The address of an empty database, with a password in it."""
    initdb, program = _program("initdb"), _program("postgres")
    user = _user()
    folder = Path(tempfile.mkdtemp(prefix="atp-postgres-"))
    usual: dict[str, Any] = {"cwd": folder}
    if user is not None:
        usual |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        os.chown(folder, user.pw_uid, user.pw_gid)
    password = f"pw-{secrets.token_hex(8)}"
    try:
        (folder / "password").write_text(password, "ascii")
        (folder / "password").chmod(0o644)  # nobody else gets into the folder
        options = ["-U", "atp", "-A", "scram-sha-256", "--pwfile=password", "--no-sync", "-E", "UTF8", "--locale=C"]
        subprocess.run([initdb, "-D", "data", *options], check=True, stdout=subprocess.DEVNULL, **usual)
        for _ in range(TRIES):
            port = _free_port()
            settings = ["fsync=off", "listen_addresses=127.0.0.1", "max_connections=40"]
            options = [word for one in settings for word in ("-c", one)]
            with (folder / "log").open("wb") as log:
                server = subprocess.Popen(
                    [program, "-D", "data", "-p", str(port), "-k", str(folder), *options],
                    **{**usual, "stdout": log, "stderr": log},
                )
            try:
                if _is_ready(server, folder / "data" / "postmaster.pid"):
                    yield f"postgresql://atp:{password}@127.0.0.1:{port}/postgres"
                    return
            finally:
                server.send_signal(signal.SIGINT)  # a shutdown that does not wait for clients
                server.wait(WAIT_LIMIT)
        raise RuntimeError(f"the server does not start: {(folder / 'log').read_text('utf-8')}")
    finally:
        shutil.rmtree(folder)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _is_ready(server: "subprocess.Popen[bytes]", about: Path) -> bool:
    """Wait until the server takes clients, or has ended."""
    until(lambda: server.poll() is not None or (about.exists() and "ready" in about.read_text("ascii").split()))
    return server.poll() is None
