"""A socket between ATP and a container engine that can be cut, while the engine and its containers go on."""

import contextlib
import socket
import threading
from pathlib import Path


class EngineProxy:
    """Passes on what is said on a UNIX socket, until `cut` is called or so many pieces were passed on."""

    def __init__(self, engine: Path, path: Path) -> None:
        self._engine = engine
        self._path = path
        self.url = f"unix://{path}"
        self.pieces_left: int | None = None
        """How many pieces of requests are passed on before the connection is cut; None: all."""
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self.restore()

    def restore(self) -> None:
        """Listen again, and pass everything on."""
        self.pieces_left = None
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self._path))
        self._listening.listen(64)
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def cut(self) -> None:
        """Close every connection, and listen no more."""
        with self._lock:
            self._path.unlink(missing_ok=True)
            for one in [self._listening, *self._open]:
                _close(one)
            self._open.clear()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                ours = listening.accept()[0]
            except OSError:
                return
            theirs = socket.socket(socket.AF_UNIX)
            theirs.connect(str(self._engine))
            with self._lock:
                self._open += [ours, theirs]
            for source, target, counted in ((ours, theirs, True), (theirs, ours, False)):
                threading.Thread(target=self._copy, args=(source, target, counted), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                if counted and self._is_over():
                    self.cut()
                    return
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def _is_over(self) -> bool:
        with self._lock:
            if self.pieces_left is None:
                return False
            self.pieces_left -= 1
            return self.pieces_left < 0


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
