"""An HTTP agent, for a container."""

# ruff: noqa: T201
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Server(BaseHTTPRequestHandler):
    ready_at = 0.0
    answered = 0

    def do_GET(self) -> None:
        self._answer(200 if time.monotonic() >= self.ready_at else 503, {"asked": self.path})

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        request = json.loads(self.rfile.read(length))
        prompt = request.get("prompt") or request.get("task", {}).get("description")
        if prompt == "die":
            print("I die", file=sys.stderr, flush=True)
            os._exit(5)
        if self.path == "/v1/chat/completions":
            message = {"role": "assistant", "content": f"chat: {request['messages'][-1]['content']}"}
            self._answer(200, {"choices": [{"message": message}], "usage": {"prompt_tokens": 3}})
        elif self.path == "/own":
            self._answer(200, {"answer": {"text": f"own: {prompt}"}})
        else:
            _Server.answered += 1
            said = {"said": prompt, "answered": self.answered}
            self._answer(200, {"version": "1.0", "task_id": request["task_id"], "status": "completed", "output": said})

    def _answer(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        print(self.requestline, code, file=sys.stderr, flush=True)


def serve(port: int, ready_after: float) -> None:
    """Serve for ever; until it is ready, it doesn't say that it is well."""
    _Server.ready_at = time.monotonic() + ready_after
    ThreadingHTTPServer((os.environ.get("LISTEN", "127.0.0.1"), port), _Server).serve_forever()
