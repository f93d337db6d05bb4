"""The local model's server, a process of its own: it is run by path, and needs nothing of ours.

It reads its settings, one line of JSON, from stdin, prints its address once the model is loaded, and serves until stdin
ends: then whoever started it is gone, however that came about.
"""

import json
import os
import sys
from typing import Any


def params(given: dict[str, Any]) -> Any:
    """How the server runs: on one thread, one answer at a time, and for those who know the key."""
    import xllamacpp  # type: ignore[import-untyped]

    wanted = xllamacpp.CommonParams()
    wanted.model.path = given["model"]
    wanted.model_alias = {given["name"]}
    wanted.api_keys = [given["key"]]
    if hasattr(wanted, "hostnames"):
        wanted.hostnames = ["127.0.0.1"]
    else:  # before xllamacpp 2026.10
        wanted.hostname = "127.0.0.1"
    wanted.port = 0
    wanted.n_threads_http = 4
    wanted.cpuparams.n_threads = 1
    wanted.cpuparams_batch.n_threads = 1
    # Else answers depend on who else asks, and on what was asked before: the sums differ in their last bits.
    wanted.n_parallel = 1
    wanted.cache_prompt = False
    wanted.cache_ram_mib = 0
    wanted.n_ctx = 0  # as much as the model was made for
    wanted.warmup = False
    wanted.ui = False
    wanted.endpoint_slots = False
    wanted.verbosity = 1
    return wanted


def main() -> None:
    """Serve until stdin ends."""
    given = json.loads(sys.stdin.readline())
    answers = os.dup(1)
    os.dup2(2, 1)  # what the library prints isn't ours to say
    import xllamacpp

    server = xllamacpp.Server(params(given))
    os.write(answers, json.dumps({"address": server.listening_address}).encode() + b"\n")
    sys.stdin.read()
    os._exit(0)  # nobody waits for an answer any more


if __name__ == "__main__":
    main()
