"""The tables of the index: one schema for both engines, and the rows that are written into it."""

from hashlib import blake2b
from typing import NamedTuple

from atp.base.json.text import whole_text

VERSION = 1
"""The version of the tables. An index of another version is not used."""
ALL_AGENTS = ""
"""The name under which the totals of a whole run stand."""
RESULT_COLUMNS = (
    *("run_no", "case_no", "status", "runs", "passed", "judged", "errors", "rate", "low", "high", "blame", "version"),
    *("duration_ms", "cost_usd", "tokens", "score"),
)
CASE_COLUMNS = ("case_no", "file", "id", "agent", "number")
TOTAL_COLUMNS = (
    *("run_no", "agent", "cases", "passed", "runs", "passed_runs", "rate", "low", "high"),
    *("cost_usd", "roles_usd", "tokens"),
)
RUN_COLUMNS = (
    *("run_no", "id", "source", "size", "changed", "state", "kind", "started_at", "ended_at", "duration_ms"),
    *("git_commit", "git_branch", "dirty", "rechecks", "reason", "inputs", "agents"),
    *("total", "finished", "passed", "failed", "errors"),
)
# `{clustered}` has a table of SQLite stored in the order of its key; PostgreSQL has no such thing.
TABLES = (
    """CREATE TABLE run (
        run_no BIGINT PRIMARY KEY, id TEXT NOT NULL,
        source TEXT NOT NULL, size BIGINT NOT NULL, changed BIGINT NOT NULL, state TEXT NOT NULL, kind TEXT NOT NULL,
        started_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION NOT NULL, duration_ms DOUBLE PRECISION NOT NULL,
        git_commit TEXT, git_branch TEXT, dirty SMALLINT, rechecks TEXT, reason TEXT,
        inputs TEXT NOT NULL, agents TEXT NOT NULL,
        total BIGINT NOT NULL, finished BIGINT NOT NULL, passed BIGINT NOT NULL, failed BIGINT NOT NULL,
        errors BIGINT NOT NULL
    ){clustered}""",
    """CREATE TABLE test_case (
        case_no BIGINT PRIMARY KEY, file TEXT NOT NULL, id TEXT NOT NULL, agent TEXT NOT NULL, number BIGINT NOT NULL
    ){clustered}""",
    """CREATE TABLE total (
        run_no BIGINT NOT NULL, agent TEXT NOT NULL,
        cases BIGINT NOT NULL, passed BIGINT NOT NULL, runs BIGINT NOT NULL, passed_runs BIGINT NOT NULL,
        rate DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION,
        cost_usd DOUBLE PRECISION, roles_usd DOUBLE PRECISION, tokens DOUBLE PRECISION,
        PRIMARY KEY (run_no, agent)
    ){clustered}""",
    """CREATE TABLE result (
        run_no BIGINT NOT NULL, case_no BIGINT NOT NULL, status TEXT NOT NULL,
        runs INTEGER NOT NULL, passed INTEGER NOT NULL, judged INTEGER NOT NULL, errors INTEGER NOT NULL,
        rate DOUBLE PRECISION, low DOUBLE PRECISION, high DOUBLE PRECISION, blame SMALLINT NOT NULL,
        version BIGINT NOT NULL, duration_ms DOUBLE PRECISION, cost_usd DOUBLE PRECISION, tokens DOUBLE PRECISION,
        score DOUBLE PRECISION, PRIMARY KEY (run_no, case_no)
    ){clustered}""",
    "CREATE INDEX test_case_by_id ON test_case (id)",
    # It has all that flaky cases and durations are made of: they are added up in its order, without a sort.
    """CREATE INDEX result_by_case ON result
        (case_no, version, run_no, judged, passed, errors, rate, blame, duration_ms)""",
)


class CaseRow(NamedTuple):
    """A case against an agent, the same in every run: a row of `test_case`."""

    case_no: int
    """Its key."""
    file: str
    """The test file, as a path from the project's root."""
    id: str
    """The case's id."""
    agent: str
    """The agent's name."""
    number: int
    """0, and more only for further cases of the same file, id and agent: suites without a file may have them."""


def key_of(*parts: str) -> int:
    """A number of 63 bits that is the same for the same texts on every machine, so that no writer has to ask for it."""
    text = "\0".join(parts).encode(errors="surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") >> 1


def storable(text: str) -> str:
    """The text without what a database can't hold: NUL, and halves of surrogate pairs."""
    return text if text.isascii() and "\0" not in text else whole_text(text).replace("\0", "\ufffd")
