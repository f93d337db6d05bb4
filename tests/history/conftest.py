"""What the tests of the history share: a server of PostgreSQL, and both places that an index can have."""

import itertools
from collections.abc import Iterator

import pytest
from tests.postgres import postgres

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a database of this process's own."""
    with postgres() as url:
        yield url


@pytest.fixture
def database(server: str) -> str:
    """The setting `history` of an empty index in PostgreSQL: a schema of its own."""
    import psycopg

    name = f"test_{next(_NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
    return f"{server}?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest) -> str | None:
    """The setting `history` of an empty index in either engine; None is a file in the project."""
    if request.param == "sqlite":
        return None
    url: str = request.getfixturevalue("database")
    return url
