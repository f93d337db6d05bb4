"""The local model's server, run by path in a process of its own: this file imports nothing of ATP.

Reads its settings, one line of JSON, from stdin, prints its address once the model is loaded, and serves until stdin
ends, because then the process that started it is gone.
"""

import json
import os
import sys
from typing import Any


def params(settings: dict[str, Any]) -> Any:
    """The parameters of the server: one thread, one answer at a time, and a key."""
    import xllamacpp  # type: ignore[import-untyped]

    wanted = xllamacpp.CommonParams()
    wanted.model.path = settings["model"]
    wanted.model_alias = {settings["name"]}
    wanted.api_keys = [settings["key"]]
    if hasattr(wanted, "hostnames"):
        wanted.hostnames = ["127.0.0.1"]
    else:  # before xllamacpp 2026.10
        wanted.hostname = "127.0.0.1"
    wanted.port = 0
    wanted.n_threads_http = 4
    wanted.cpuparams.n_threads = 1
    wanted.cpuparams_batch.n_threads = 1
    # Otherwise answers depend on concurrent and earlier requests: sums differ in their last bits.
    wanted.n_parallel = 1
    wanted.cache_prompt = False
    wanted.cache_ram_mib = 0
    wanted.n_ctx = 0  # the context size that the model was trained for
    wanted.warmup = False
    wanted.ui = False
    wanted.endpoint_slots = False
    wanted.verbosity = 1
    return wanted


def main() -> None:
    """Serve until stdin ends."""
    settings = json.loads(sys.stdin.readline())
    answers = os.dup(1)
    os.dup2(2, 1)  # what the library prints must not be read as the address
    import xllamacpp

    server = xllamacpp.Server(params(settings))
    os.write(answers, json.dumps({"address": server.listening_address}).encode() + b"\n")
    sys.stdin.read()
    os._exit(0)  # no client is left


if __name__ == "__main__":
    main()
