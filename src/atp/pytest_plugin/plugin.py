"""The pytest plugin: `pytest --atp` runs test files as pytest's own items, and tests in Python get fixtures.

pytest loads this at every start, also in projects that have nothing to do with agents. So nothing of ours is imported
here before somebody asks for it, and pytest need not look for asserts in it (PYTEST_DONT_REWRITE).
"""

import inspect
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import warnings

    from atp.engine.scripts.agent import CalledAgent
    from atp.engine.scripts.objects import Context, Judge, T
    from atp.engine.scripts.runner import ScriptRunner
    from atp.pytest_plugin.session import PytestSession
    from atp.usercode.exits import EndsProcess

ENDINGS = (".test.md", ".jsonl", ".yaml", ".yml", ".json")
"""The endings of test files."""
OURS = frozenset({"t", "ctx", "atp_agent", "atp_judge"})
"""The fixtures by which a test of agents is recognized."""
_SESSION = pytest.StashKey["PytestSession"]()
_RUNNER = pytest.StashKey["ScriptRunner"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the few flags of the plugin; all else comes from `atp.toml`."""
    group = parser.getgroup("atp", "agent tests")
    group.addoption("--atp", action="store_true", help="Collect .test.md, .jsonl and YAML suites, too.")
    group.addoption("--atp-name", action="append", metavar="AGENT", help="Agent to test, as -n of atp test.")
    group.addoption("--atp-connector", action="append", metavar="NAME", help="Model connector of the agents.")
    group.addoption("--atp-role-connector", metavar="NAME", help="Model connector of judges and simulators.")
    group.addoption("--atp-runs", metavar="N", help="Run each trial so often.")
    group.addoption(
        "--atp-update-snapshots",
        action="store_true",
        default=None,
        help="Write the golden files of snapshots that differ.",
    )
    group.addoption("--atp-replay", metavar="FOLDER", help="Play back what atp test --record has recorded there.")


def shared_session(config: pytest.Config) -> "PytestSession":
    """What all tests of the session share, made when the first test needs it."""
    found = config.stash.get(_SESSION, None)
    if found is None:
        from atp.pytest_plugin.session import PytestSession

        flags = {
            name: config.getoption(f"atp_{name}")
            for name in ("name", "connector", "role_connector", "runs", "update_snapshots", "replay")
        }
        given = {name: value for name, value in flags.items() if value is not None}
        found = config.stash[_SESSION] = PytestSession(given, is_worker=hasattr(config, "workerinput"))
    return found


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect test files if `--atp` is given."""
    if not parent.config.getoption("atp") or not file_path.name.lower().endswith(ENDINGS):
        return None
    from atp.pytest_plugin.items import SuiteFile, is_suite

    named = parent.session.isinitpath(file_path)
    return SuiteFile.from_parent(parent, path=file_path) if is_suite(file_path, named=named) else None


def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> Any:
    """Collect a function `TestX(t, ctx)`, though pytest would only look for classes of such a name."""
    if not name.startswith("Test") or not inspect.isfunction(obj) or isinstance(collector, pytest.Class):
        return None
    return pytest.Function.from_parent(collector, name=name) if _takes(obj) else None


def _takes(function: Callable[..., Any]) -> bool:
    return not OURS.isdisjoint(inspect.signature(function).parameters)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run coroutines that use our fixtures in the session's loop, unless they are marked for another plugin."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj) or OURS.isdisjoint(pyfuncitem.fixturenames):
        return None
    if any(pyfuncitem.get_closest_marker(name) for name in ("asyncio", "anyio", "trio")):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters.keys() & pyfuncitem.funcargs.keys()
    shared_session(pyfuncitem.config).wait(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(wrapper=True, trylast=True)  # inside pytest's capture, whose streams the test may close
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Protect the session from a test that uses our fixtures, and fail one whose assertions by `t` failed unraised."""
    if _RUNNER not in item.stash:
        return (yield)
    from atp.pytest_plugin.session import left_unsaid
    from atp.usercode.exits import foreign
    from atp.usercode.printed import capture_threads, restore_streams
    from atp.usercode.threads import Raised

    closed: list[str] = []
    refused: list[EndsProcess] = []
    unshown = ""
    try:
        with foreign() as code, capture_threads(code, lambda: sys.stdout):
            refused = code.refused
            try:
                yield
            finally:
                closed = restore_streams()
    except BaseException as error:
        if _is_atp_error(error) and type(error).__name__ == "Skipped":
            raise pytest.skip.Exception(str(error), _use_item_location=True) from None
        if inspect.getattr_static(type(error), "__class__", None) is vars(object)["__class__"]:
            raise
        unshown = str(Raised(error))  # pytest would ask the exception for its class, and run the user's code by that
    if unshown:
        pytest.fail(unshown, pytrace=False)
    if refused:
        pytest.fail(str(refused[0]), pytrace=False)
    if closed:
        pytest.fail(f"the test closed {', '.join(closed)} of the process that runs the tests", pytrace=False)
    if text := left_unsaid(item.stash[_RUNNER]):
        pytest.fail(text, pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report what the agent is not to blame for as an error, not a failure, and show the conversation with both."""
    report = yield
    error = call.excinfo.value if call.excinfo is not None else None
    blame = getattr(error, "blame", None) if _is_atp_error(error) else None
    if report.when == "call" and report.failed and blame not in (None, "agent"):
        report.when = "setup"  # by this, pytest and readers of its reports tell errors from failures
    if error is not None and report.failed and _RUNNER in item.stash:
        _show(item.stash[_RUNNER], error, report)
    if _RUNNER in item.stash or hasattr(item, "planned"):
        _mask(report)
    return report


def _mask(report: pytest.TestReport) -> None:
    """Mask secrets in a report. A traceback with one is shown as plain text."""
    shown = report.longrepr
    if isinstance(shown, tuple):  # where and why a test was skipped
        report.longrepr = (*shown[:2], _masked(shown[2]))
    elif shown is not None and (text := str(shown)) != (masked := _masked(text)):
        report.longrepr = masked
    report.sections = [(name, _masked(text)) for name, text in report.sections]


def _masked(text: str) -> str:
    """The text without any secret of the session. Without a session there are none."""
    secrets = sys.modules.get("atp.base.secrets")
    return text if secrets is None else str(secrets.every_secret().mask_text(text))


def _masked_source(line: str) -> str:
    """A line of a file without any secret of the session, or value of a key that is named like one."""
    written = sys.modules.get("atp.base.secret_values")
    return line if written is None else str(written.blot_out_written(_masked(line)))


@pytest.hookimpl(tryfirst=True)
def pytest_warning_recorded(warning_message: "warnings.WarningMessage") -> None:
    """Mask secrets in a warning, which pytest takes from the code under test before ATP could.

    So too in the line of the file that the warning is about, which Python would read and show as it is.
    """
    import linecache

    text = str(warning_message.message)
    if text != (masked := _masked(text)):
        warning_message.message = Warning(masked)
    line = warning_message.line or linecache.getline(warning_message.filename, warning_message.lineno)
    if line != (masked := _masked_source(line)):
        warning_message.line = masked


def _is_atp_error(error: BaseException | None) -> bool:
    """True for an error of ATP's own, decided without importing anything."""
    return type(error).__module__.partition(".")[0] == "atp"


def _show(runner: "ScriptRunner", error: BaseException, report: pytest.TestReport) -> None:
    """Add the conversation to a report, and what had failed before the test ended otherwise."""
    from atp.pytest_plugin.session import conversation, failures

    if text := conversation(runner):
        report.sections.append(("ATP conversation", text))
    if not isinstance(error, AssertionError | pytest.fail.Exception) and (text := failures(runner)):
        report.sections.append(("ATP failed before", text))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Narrow the runs of test files to the items that `-k`, `-m` and the like have left."""
    found = session.config.stash.get(_SESSION, None)
    if found is not None:
        planned = (item.planned for item in session.items if hasattr(item, "planned"))
        found.select((one.run, one.tested.name, one.case.id) for one in planned)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Finish the runs, and close agents and judges."""
    found = session.config.stash.get(_SESSION, None)
    if found is not None:
        try:
            found.close(interrupted=exitstatus == pytest.ExitCode.INTERRUPTED)
        except SystemExit as exit_:  # here, so that pytest prints its summary
            session.exitstatus = _say_exit(exit_)
        if found.missed_gates and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the gates that were not passed, and the notes of the runs: no test stands for them."""
    found = config.stash.get(_SESSION, None)
    if found is None:
        return
    for title, lines in (("ATP gates", found.missed_gates), ("ATP notes", found.notes)):
        if lines:
            terminalreporter.section(title)
        for line in lines:
            terminalreporter.line(line)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Generator[None, int | pytest.ExitCode | None, Any]:
    """Keep code of the user's from ending a session of agent tests with 0, whatever has failed.

    It may have replaced a function of Python's, which pytest calls, by one that exits.
    """
    try:
        return (yield)
    except SystemExit as exit_:
        if exit_.code not in (None, 0) or _SESSION not in config.stash:
            raise
        return _say_exit(exit_)


def _say_exit(error: SystemExit) -> pytest.ExitCode:
    sys.stderr.write(f"atp: the code under test has tried to end pytest: {type(error).__name__}: {error}\n")
    return pytest.ExitCode.INTERNAL_ERROR


@pytest.fixture
def _atp_runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "Generator[ScriptRunner]":
    """What a test in Python acts on."""
    shared = shared_session(request.config)
    item: pytest.Item = request.node
    runner = item.stash[_RUNNER] = shared.runner(item.name, item.path, tmp_path_factory.getbasetemp() / "atp")
    yield runner
    runner.close()


@pytest.fixture
def t(_atp_runner: "ScriptRunner", request: pytest.FixtureRequest) -> "T":
    """The test itself, as in a script test: `t.assert_.contains(response, "…")`."""
    from atp.engine.scripts.objects import T

    return T(_atp_runner, request.node.name)


@pytest.fixture
def ctx(_atp_runner: "ScriptRunner", request: pytest.FixtureRequest) -> "Generator[Context]":
    """The context, as in a script test: `ctx.agent("a.b").send("…")`."""
    from atp.engine.scripts.objects import Context

    made = Context(_atp_runner)
    yield made
    shared_session(request.config).call(made.end)


@pytest.fixture
def atp_agent(ctx: "Context") -> "Callable[..., CalledAgent]":
    """Begins a conversation with any agent: `atp_agent("agents/x.md").send("hi")`."""
    return ctx.agent


@pytest.fixture
def atp_judge(_atp_runner: "ScriptRunner") -> "Judge":
    """Judges what an agent answered: `atp_judge.expect(response, "it asks for the amount")`."""
    from atp.engine.scripts.objects import Judge

    return Judge(_atp_runner)
