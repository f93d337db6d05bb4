"""The two engines of the index, SQLite and PostgreSQL. All in which they differ is here."""

import fcntl
import os
import secrets
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atp.base.diagnostics import load_error
from atp.base.errors import Error, install_extra
from atp.history.index.schema import TABLES, VERSION

if TYPE_CHECKING:
    import psycopg

WAIT_SECONDS = 30
"""How long a writer waits for others."""
_CONNECT_SECONDS = 10
"""How long the end of a run waits for a server that does not answer."""
_APPLICATION = 0x41545048
"""Marks a file of SQLite as an index of ATP's."""
_MEMORY_KB = 64 * 1024
"""What a connection may keep in memory: with PostgreSQL's default of 4 MB, a million results are sorted on disk."""


class IndexFailure(Error):
    """The index can't be used now: a disk, a server or a file failed."""


class Database(ABC):
    """A connection to the index, for the thread that opened it. SQL has `?` for parameters."""

    @abstractmethod
    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query gives. Raises `IndexFailure`."""

    @abstractmethod
    @contextmanager
    def writing(self, key: int) -> Iterator[None]:
        """One transaction. No other writes what has this key before it ends. Raises `IndexFailure`."""
        yield

    @abstractmethod
    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement."""

    @abstractmethod
    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, known: bool = False) -> None:
        """Insert rows. `known`: some may be there already, and stay as they are."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""


class Sqlite(Database):
    """An index in a file. Readers never wait; writers wait for each other."""

    def __init__(self, path: Path, *, own: bool) -> None:
        """`own`: the file is ATP's by its place, so that one that is damaged is made again. Raises `LoadError`."""
        self.path = path
        if not path.exists():
            self._make()
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            if not own or isinstance(error, sqlite3.OperationalError):
                raise self._unusable(error) from error
            self._make(damaged=True)
            self._open()

    def _unusable(self, error: Exception) -> Exception:
        if isinstance(error, sqlite3.OperationalError):
            return IndexFailure(f"{self.path}: {error}", "check its permissions, and the space on the disk")
        hint = "if it is an index of ATP's, delete it: the next `atp history` makes it again; else name another file"
        return load_error("bad-history", f"{self.path} is no index of ATP's, or is damaged: {error}", hint)

    def _open(self) -> None:
        self._connection = connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
        try:
            (found,), (version,) = (
                connection.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
            )
            if found != _APPLICATION:
                raise sqlite3.DatabaseError("it has other tables")
            if version != VERSION:
                raise sqlite3.DatabaseError(f"another version of ATP made it (version {version} of its tables)")
            connection.execute("PRAGMA synchronous = OFF")  # what a power cut takes is read from the journals again
            connection.execute(f"PRAGMA cache_size = -{_MEMORY_KB}")
        except BaseException:
            connection.close()
            raise

    def _make(self, *, damaged: bool = False) -> None:
        """Make an empty index. It appears whole, and only one process makes it."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(f"{self.path}-lock", "ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if self.path.exists() and (not damaged or self._opens()):
                    return  # another process was faster
                for rest in ("-wal", "-shm"):  # of an index that was deleted: SQLite would take them for this one's
                    Path(f"{self.path}{rest}").unlink(missing_ok=True)
                new = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
                try:
                    self._create(new)
                    os.replace(new, self.path)
                finally:
                    new.unlink(missing_ok=True)
        except (OSError, sqlite3.Error) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise IndexFailure(f"{self.path} can't be made: {why}", "check its folder, or set `history`") from error

    def _opens(self) -> bool:
        try:
            self._open()
        except sqlite3.DatabaseError:
            return False
        self._connection.close()
        return True

    @staticmethod
    def _create(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN")
            for statement in TABLES:
                connection.execute(statement.format(clustered=" WITHOUT ROWID"))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise IndexFailure(
                f"{self.path}: {error}", "delete it if that stays: the next `atp history` makes it again"
            ) from error

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        with self._failing():
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def writing(self, key: int) -> Iterator[None]:
        """One transaction; SQLite has one writer at a time."""
        with self._failing():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement."""
        self._connection.execute(sql, parameters)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, known: bool = False) -> None:
        """Insert rows."""
        ending = " ON CONFLICT DO NOTHING" if known else ""
        values = f"VALUES ({', '.join('?' * len(columns))}){ending}"
        self._connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) {values}", rows)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Postgres(Database):
    """An index in a database of PostgreSQL, which several machines may share."""

    def __init__(self, url: str) -> None:
        """Raises `LoadError` if psycopg is not there, or the database has tables of another version."""
        try:
            import psycopg
        except ImportError as error:
            message = "an index in PostgreSQL needs psycopg"
            raise load_error("missing-extra", message, install_extra("postgres")) from error
        self._error = psycopg.Error
        try:
            limits: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, "tcp_user_timeout": 1000 * WAIT_SECONDS}
            self._connection = psycopg.connect(url, autocommit=True, **limits)
        except psycopg.ProgrammingError:  # its message may have a part of the password
            hint = "write postgresql://USER:PASSWORD@HOST/DATABASE, with %40 for an @ in the password"
            raise load_error("bad-history", "`history` is no address of a database of PostgreSQL", hint) from None
        except psycopg.Error as error:
            hint = "check `history`, and the server"
            raise IndexFailure(f"PostgreSQL can't be reached: {_one_line(error)}", hint) from None
        try:
            self._make()
        except BaseException:
            self._connection.close()
            raise

    def _make(self) -> None:
        with self._failing(), self._connection.transaction():
            self.execute(f"SET work_mem = {_MEMORY_KB}")
            self.execute(f"SET lock_timeout = {1000 * WAIT_SECONDS}")
            self.execute("SELECT pg_advisory_xact_lock(?)", (_APPLICATION,))
            if not self.query("SELECT to_regclass('atp_history')::text")[0][0]:
                self.execute("CREATE TABLE atp_history (version BIGINT NOT NULL)")
                self.execute("INSERT INTO atp_history VALUES (?)", (VERSION,))
                for statement in TABLES:
                    self.execute(statement.format(clustered=""))
            version = max((found for (found,) in self.query("SELECT version FROM atp_history")), default=0)
        if version != VERSION:
            message = f"the index in PostgreSQL has version {version} of its tables, and this ATP uses {VERSION}"
            raise load_error("newer-format", message, "update ATP, or use another database or schema")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except self._error as error:
            raise IndexFailure(
                f"PostgreSQL: {_one_line(error)}", "check the server, and what you may do there"
            ) from None

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows that a query gives."""
        with self._failing():
            return self._cursor(sql, parameters).fetchall()

    def _cursor(self, sql: str, parameters: Sequence[Any]) -> "psycopg.Cursor[tuple[Any, ...]]":
        return self._connection.execute(sql.replace("?", "%s").encode(), parameters)

    @contextmanager
    def writing(self, key: int) -> Iterator[None]:
        """One transaction, with a lock of this key."""
        with self._failing(), self._connection.transaction():
            self.execute("SELECT pg_advisory_xact_lock(?)", (key,))
            yield

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Execute a statement."""
        self._cursor(sql, parameters)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, known: bool = False) -> None:
        """Copy rows; those of which some may be known, by way of a table of this transaction."""
        into, names = table, ", ".join(columns)
        if known:
            into = f"new_{table}"
            self.execute(f"CREATE TEMP TABLE {into} ON COMMIT DROP AS SELECT {names} FROM {table} LIMIT 0")
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {into} ({names}) FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)
        if known:
            # In order, so that no two writers wait for each other.
            self.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM {into} ORDER BY 1 ON CONFLICT DO NOTHING")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
