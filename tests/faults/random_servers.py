"""Servers and models that fail at random, and what must hold then: `make test` tries some, `make fuzz` many."""

import random
from collections import Counter

from tests.engine.support.project import Project
from tests.engine.support.server import Server
from tests.models.mock_server import Heard, MockModels, Says, fails, malformed
from tests.waiting import until

CASES = [f"c{number}" for number in range(8)]


def fail_at_random(project: Project, chance: random.Random) -> None:
    """Run prompts on a model of which some requests fail, and go on when it works again."""
    share, statuses = chance.random(), chance.sample([429, 500, 502, 503, 529], 3)
    is_well = False

    def answer(heard: Heard) -> str | Says:
        if is_well or chance.random() > share:
            return f"heard {heard.prompt}"
        return malformed() if chance.random() < 0.2 else fails(chance.choice(statuses), retry_after=0.0)

    project.write("agents/polite.md", "---\nconnector: openai.any\n---\nBe polite.\n")
    flags = [project.cases(*CASES), "-n", "polite", "--retries", chance.choice("012")]
    flags += ["--parallel", chance.choice("124")]
    with MockModels(answer) as models:
        ran = project.test(*flags, env=models.env)
        assert {(one["status"], one["blame"]) for one in ran.results.values()} <= {
            ("passed", None),
            ("error", "environment"),
        }
        passed = {name for name, status in ran.statuses.items() if status == "passed"}
        assert (len(ran.results), ran.code) == (len(CASES), 0 if len(passed) == len(CASES) else 3)
        is_well = True
        before = len(models.requests)
        again = project.test(*flags, "--resume", env=models.env)
        assert Counter(one.prompt for one in models.requests[before:]) == Counter(set(CASES) - passed)
        assert "nothing-to-resume" in again.err if ran.code == 0 else again.code == 0
    assert project.workspaces() == []


WAYS = ("works", "resets", "redirects", "refuses", "floods", "stalls")


def serve_at_random(project: Project, server: Server, chance: random.Random) -> None:
    """Run cases on an agent's server that fails in several ways, and go on when it works again."""
    key = f"random-{chance.getrandbits(64):x}"
    how = ",".join(["works", *chance.sample(WAYS, 3)])
    agent = {"name": "a", "type": "http", "config": {"endpoint": server.url(f"faulty?how={how}&key={key}")}}
    flags = [project.suite([agent], [{"id": name} for name in CASES]), "--timeout", "2s", "--retries", "1"]
    flags += ["--parallel", "4"]
    server.broken.add(key)
    ran = project.test(*flags)
    ended = {name: (one["status"], one["blame"]) for name, one in ran.results.items()}
    assert set(ended) == set(CASES)
    known = {("passed", None), ("timeout", None), ("error", "agent"), ("error", "environment")}
    assert set(ended.values()) <= known
    failures = {("timeout", None), ("error", "agent")} & set(ended.values())
    assert ran.code == (1 if failures else 3 if ("error", "environment") in ended.values() else 0)
    server.broken.discard(key)
    again = project.test(*flags, "--resume")
    if ("error", "environment") in ended.values():
        kept = {name for name, (status, _) in ended.items() if status == "timeout"}
        assert again.statuses == {name: "timeout" if name in kept else "passed" for name in CASES}
    else:
        assert "nothing-to-resume" in again.err
    until(lambda: server.open == 0)
    assert server.calls[f"whole?key={key}"] == 0
    assert project.workspaces() == []
