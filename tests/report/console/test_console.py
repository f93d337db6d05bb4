"""The console: document 5's layout, plain where there is no terminal."""

import asyncio
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until_async

from atp.report.console.console import Console, ConsoleOptions
from atp.report.console.page import PlainPage
from atp.report.formats.jsonl import JsonlReport
from atp.suite.result import NO_ASSERTIONS, CaseResult, Transcript, Usage, Verdict

DOCUMENT = """\
═══════════════════════════════════════════════════════════════
  Agent Test
═══════════════════════════════════════════════════════════════
ℹ Agent: assistants.expense
ℹ Input: ./tests/expense.jsonl (3 test cases)

───────────────────────────────────────────────────────────────
  Running Tests
───────────────────────────────────────────────────────────────

✓ [expense-turn1] First turn - ask type (1.2s)
  Messages: 1, Assertions: 1/1 passed

✓ [expense-turn2] Second turn - create expense (2.1s)
  Messages: 3, Assertions: 1/1 passed

✓ [expense-turn3] Final turn - confirm (1.8s)
  Messages: 5, Assertions: 1/1 passed

───────────────────────────────────────────────────────────────
  Summary
───────────────────────────────────────────────────────────────
  Total:   3 tests
  Passed:  3
  Failed:  0
  Time:    5.1s
"""  # noqa: RUF001  (document 5's sign)


def shown(story: Any, cases: list[CaseResult], *, end: Any = None, **look: Any) -> str:
    """What the console prints, with every case listed unless the test asks for less or more."""
    stream = io.StringIO()
    console = Console(PlainPage(stream), ConsoleOptions(**{"verbose": 0 if look.get("quiet") else 1} | look))
    story.tell([console], cases, end or story.end())
    assert list(console.problems) == []
    return stream.getvalue()


def test_the_document(story: Any, document: list[CaseResult]) -> None:
    text = shown(story, document)
    assert text.startswith(DOCUMENT)
    assert text.removeprefix(DOCUMENT).split() == [
        "\u2139",
        "Journal:",
        ".atp/runs/20241217-100000-ab12/journal.jsonl",
    ]


def test_golden(story: Any, troubles: list[CaseResult], golden: Callable[[str, str], None]) -> None:
    counts = story.counts(passed=1, failed=4, errors=2, blocked=1, cancelled=1, skipped=1)
    info = story.info(cases=12, parallel=4, connector="openai.gpt4", resumed=2, trials=12, notes=("be careful",))
    end = story.end(info, counts=counts, reason="interrupted", exit_code=130)
    golden("troubles.txt", shown(story, troubles, end=end, command="atp test -i tests/expense.jsonl"))


def test_golden_of_repeated_cases(story: Any, repeated: list[CaseResult], golden: Callable[[str, str], None]) -> None:
    counts = story.counts(passed=2, failed=1, runs=9, passed_runs=7, stable=1)
    end = story.end(story.info(trials=9, runs=3), counts=counts, exit_code=1)
    golden("repeated.txt", shown(story, repeated, end=end))


def test_golden_of_verbose(story: Any, troubles: list[CaseResult], golden: Callable[[str, str], None]) -> None:
    golden("verbose.txt", shown(story, [*troubles[:1], *troubles[-2:]], verbose=2))


def test_quiet_prints_only_the_summary(story: Any, troubles: list[CaseResult]) -> None:
    text = shown(story, troubles, quiet=True)
    assert text.startswith("─" * 63 + "\n  Summary\n")
    assert "Running Tests" not in text
    assert "  ✗ [wrong] Says the wrong thing: the output does not contain" in text


def test_many_failures_are_listed_again_but_not_all(story: Any) -> None:
    cases = [story.case(f"T{number}", story.trial(status="failed", error="no", verdicts=[])) for number in range(50)]
    text = shown(story, cases)
    summary = text.partition("  Summary\n")[2]
    assert "  ✗ [T19]: no  (tests/expense.jsonl:1)\n  … and 30 more" in summary
    assert "T20" not in summary


def test_several_agents_are_named(story: Any) -> None:
    info = story.info(agents=["one", "two"])
    text = shown(story, [story.case("c", agent="two")], end=story.end(info))
    assert "Agents: one, two\n" in text
    assert "✓ [c] – two (1.2s)\n" in text


def test_why_a_case_is_inconclusive_is_said_once(story: Any) -> None:
    case = story.case("open", story.trial(status="failed", error="wrong"), status="inconclusive", reason="9 of 10")
    text = shown(story, [case], quiet=True)
    assert (text.count("9 of 10"), "[open]: 9 of 10" in text, "wrong" in text) == (1, True, True)


def test_how_to_go_on(story: Any, document: list[CaseResult]) -> None:
    end = story.end(reason="interrupted", exit_code=130)
    assert "Go on with: atp test x.jsonl --resume  (run 20241217-100000-ab12)\n" in shown(
        story, document, end=end, command="atp test x.jsonl"
    )
    again = shown(story, document, end=end, command="atp test x.jsonl --resume-from 2024")
    assert "Go on with: atp test x.jsonl --resume-from 2024  (run" in again


def test_reports_are_named_when_they_are_written(tmp_path: Path, story: Any, document: list[CaseResult]) -> None:
    good, bad = JsonlReport(tmp_path / "good.jsonl"), JsonlReport(tmp_path / "no" / "bad.jsonl")
    stream = io.StringIO()
    console = Console(PlainPage(stream), ConsoleOptions(reports=[good, bad]))
    story.tell([good, bad, console], document, story.end())
    assert f"Report: {good.path}\n" in stream.getvalue()
    assert "bad.jsonl" not in stream.getvalue()


def test_a_stream_without_the_signs(story: Any, document: list[CaseResult]) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    story.tell([Console(PlainPage(stream), ConsoleOptions(verbose=1))], document, story.end())
    text = raw.getvalue().decode("ascii")
    assert "+ [expense-turn1] First turn - ask type (1.2s)" in text
    assert "=" * 63 in text


def test_long_failures_are_cut(story: Any) -> None:
    wrong = Verdict(type="equals", outcome="failed", message="m" * 1000, expected="e" * 1000, found=["f" * 1000])
    lines = "\n".join(str(number) for number in range(1000))
    cases = [
        story.case("a", story.trial(status="failed", error="x", verdicts=[wrong] * 30)),
        story.case("b", story.trial(status="error", blame="internal", error=lines, verdicts=[])),
    ]
    text = shown(story, cases)
    assert max(map(len, text.splitlines())) < 330
    assert "  … and 20 more\n" in text
    assert "\n  11\n  … (blame: internal)\n" in text


def test_a_reader_who_has_seen_enough_is_no_problem(story: Any) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    gone, full = Console(PlainPage(Gone()), ConsoleOptions()), Console(PlainPage(Full()), ConsoleOptions())
    story.tell([gone, full], [story.case()], story.end())
    assert list(gone.problems) == []
    assert list(full.problems) == ["the console: No space left on device"]


def test_lines_come_soon_but_together(story: Any) -> None:
    class Counting(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    async def run() -> tuple[int, str]:
        stream = Counting()
        console = Console(PlainPage(stream), ConsoleOptions(verbose=1))
        console.start(story.info())
        for number in range(1000):
            console.case(story.case(f"T{number}"))
        await until_async(lambda: "[T999]" in stream.getvalue())
        return stream.writes, stream.getvalue()

    writes, text = asyncio.run(run())
    assert writes < 10
    assert "[T999]" in text


@pytest.mark.parametrize("output", [None, "", {}])
def test_an_empty_answer(story: Any, output: Any) -> None:
    assert "✓ [c] (1.2s)" in shown(story, [story.case("c", story.trial(output))], verbose=2)


def test_a_case_without_trials(story: Any) -> None:
    assert "(cancelled, 0ms)" in shown(story, [story.case("c", story.trial(), trials=[], status="cancelled")])


def test_nothing_was_said(story: Any) -> None:
    trial = story.trial(status="timeout", error="timeout after 30s", verdicts=[], transcript=Transcript())
    assert "  Messages: 0, Assertions: not reached\n  timeout after 30s\n" in shown(story, [story.case("c", trial)])


def test_variations_are_told_apart_from_runs(story: Any) -> None:
    trials = [story.trial(variation=variation, run=run) for variation in range(2) for run in (1, 2)]
    trials[3].status, trials[3].error = "timeout", "timeout after 30s"
    text = shown(story, [story.case("c", *trials, status="timeout")], verbose=2)
    rate = "  Trials: 3/4 passed (75%) of 2 variations × 2 runs, unstable, consistency 0.75\n"
    rate += "  Rate: passed 3 of 4; between 30% and 95% in the long run\n"
    rate += "  flaky, blame: agent\n"
    assert rate + "  variation 2, run 2:\n  timeout after 30s\n" in text
    assert "  variation 1, run 1:\n    user: Help me file an expense\n" in text


def test_the_summary_tells_variations_apart_from_runs(story: Any) -> None:
    def summary(cases: int, variations: int, runs: int, trials: int) -> str:
        info = story.info(cases=cases, trials=trials, runs=runs)
        counts = story.counts(passed=cases, variations=variations, runs=trials, passed_runs=trials, stable=cases)
        return shown(story, [], end=story.end(info, counts=counts))

    repeated = summary(2, 2, 5, 10)
    assert "Trials: 10 (5 runs each)\n" in repeated
    assert "  Runs:    10, 100% passed\n" in repeated
    both = summary(2, 10, 5, 50)
    assert "Trials: 50 (variations × up to 5 runs)\n" in both
    assert "  Trials:  50 (10 variations × 5 runs), 100% passed\n  Stable:  2 of 2 cases\n" in both
    assert "Trials: 3 (up to 2 runs each)\n" in summary(2, 2, 2, 3)
    varied = summary(2, 10, 1, 10)
    assert "Trials: 10 (variations)\n" in varied
    assert "  Trials:  10 (10 variations), 100% passed\n" in varied
    assert "  Trials:  12 (10 variations, not all with as many runs), 100% passed\n" in summary(2, 10, 3, 12)
    assert "Runs:" not in both + varied


def test_a_test_that_skips_itself(story: Any) -> None:
    trial = story.trial(status="skipped", error="not on Mondays", verdicts=[], transcript=Transcript())
    counts = story.counts(passed=2, skipped=1, skipped_by_test=1)
    text = shown(story, [story.case("c", trial, name="Later")], end=story.end(counts=counts), command="atp test x")
    assert "- [c] Later (skipped)\n  not on Mondays\n\n" in text
    assert "  Skipped: 1\n  Time:" in text
    assert "Not run" not in text
    assert "Only what failed" not in text


def test_how_to_go_on_with_a_run_that_is_told_once_more(story: Any) -> None:
    given = {"name": ["x.py:run"], "run": "^a", "tags": "!slow", "ctx": "c.json", "output": ["x.html"]}
    end = story.end(story.info(options=given), counts=story.counts(passed=2, failed=1))
    words = "atp test -i ./tests/expense.jsonl -n x.py:run --run '^a' --tags '!slow' --ctx c.json --only-failed\n"
    assert f"Only what failed: {words}" in shown(story, [], end=end)


def test_failures_are_explained_at_the_end(story: Any, troubles: list[CaseResult]) -> None:
    text = shown(story, troubles, quiet=True)
    assert (
        """\
  ✗ [wrong] Says the wrong thing: the output does not contain "submitted"  (tests/expense.jsonl:1)
    contains: the output does not contain "submitted"
      found:    "What type?"
      where:    turn 1
    any_of: none of 1 holds
      contains: the output does not contain "submitted"
        found:    "What type?"
        where:    turn 1
  ✗ [slow]: timeout after 30s  (tests/expense.jsonl:1)
  ✗ [boom]: agent error: ValueError: boom  (tests/expense.jsonl:1)
  ! [gone]: connection refused (blame: environment)  (tests/expense.jsonl:1)
"""
        in text
    )
    assert "  ! [unjudged]: the judge gave no JSON (blame: judge)  (tests/expense.jsonl:1)\n" in text
    assert "  ! [blocked]: case `login` did not pass  (" in text


PARAGRAPH = (
    "The cheapest hotel near the congress centre costs 142 EUR a night, and it is a walk of 25 minutes away from it."
)


def wrong(story: Any, *verdicts: Verdict) -> CaseResult:
    trial = story.trial(status="failed", error=verdicts[0].message, verdicts=list(verdicts))
    made: CaseResult = story.case("c", trial)
    return made


def test_a_text_that_differs_is_shown_once_as_a_difference(story: Any) -> None:
    found = PARAGRAPH.replace("142", "152")
    message = f'expected "{PARAGRAPH[:99]}…" at output, found "{found[:99]}…"'
    verdict = Verdict(type="equals", outcome="failed", message=message, expected=PARAGRAPH, found=found, where="output")
    text = shown(story, [wrong(story, verdict)]).partition("  Summary\n")[0]
    assert f"  equals: output differs (- expected, + found)\n    - {PARAGRAPH}\n    + {found}\n" in text
    assert text.count("congress centre") == 2
    quiet = shown(story, [wrong(story, verdict)], quiet=True)
    assert f"    - {PARAGRAPH}\n" in quiet.replace("      - ", "    - ")


def test_what_several_checks_found_is_shown_with_the_first(story: Any) -> None:
    def check(kind: str, sought: str) -> Verdict:
        message = f'expected "{sought}", found "{PARAGRAPH[:99]}…"'
        return Verdict(type=kind, outcome="failed", message=message, expected=sought, found=PARAGRAPH, where="output")

    group = Verdict(type="any_of", outcome="failed", parts=[check("contains", "x"), check("contains", "y")])
    group.message = f"at least one of 2 should hold, but 2 do not hold: contains: {group.parts[0].message}; contains: …"
    text = shown(story, [wrong(story, check("regex", "z"), group)]).partition("  Summary\n")[0]
    assert text.count("congress centre") == 1
    assert '  regex: expected "z", found …\n    found:    "The cheapest' in text
    assert '  any_of: at least one of 2 should hold, but 2 do not hold\n    contains: expected "x", found …\n' in text
    assert text.count("      found:    the same as above\n") == 2


def test_a_secret_in_a_difference_is_masked(story: Any) -> None:
    secret = "sk-hidden-0123456789"
    found = PARAGRAPH.replace("142", secret)
    verdict = Verdict(type="equals", outcome="failed", message="no", expected=PARAGRAPH, found=found)
    text = shown(story, [wrong(story, verdict)], secrets=[secret])
    assert "costs *** EUR" in text
    assert secret not in text


def many(story: Any, passed: int, failed: int) -> list[CaseResult]:
    bad = story.trial(status="failed", error="no", verdicts=[Verdict(type="contains", outcome="failed", message="no")])
    return [
        *(story.case(f"P{number}") for number in range(passed)),
        *(story.case(f"F{number}", bad) for number in range(failed)),
    ]


def test_only_cases_that_did_not_pass_are_listed(story: Any) -> None:
    text = shown(story, many(story, 97, 3), end=story.end(story.info(cases=100)), verbose=0)
    running = text.partition("  Summary\n")[0]
    assert "Running Tests" not in running
    assert "P1" not in running
    assert "✗ [F0] (1.2s)\n  contains: no\n\n" in running
    assert "  10 of 100 cases, 0 not passed\n  20 of 100 cases, 0 not passed\n" in running
    assert "  90 of 100 cases, 0 not passed\n" in running
    assert "  100 of 100" not in running, "the summary says it"
    assert "✓ [P1] (1.2s)\n" in shown(story, many(story, 97, 3), end=story.end(story.info(cases=100)))


def test_golden_of_compact(story: Any, troubles: list[CaseResult], golden: Callable[[str, str], None]) -> None:
    counts = story.counts(passed=1, failed=4, errors=2, blocked=1, cancelled=1, skipped=1)
    end = story.end(story.info(cases=10, trials=10, parallel=4), counts=counts, exit_code=1)
    golden("compact.txt", shown(story, troubles, end=end, verbose=0, command="atp test -i tests/expense.jsonl"))


def test_few_cases_are_not_counted_up(story: Any) -> None:
    def counting(cases: int) -> str:
        return shown(story, many(story, cases, 0), end=story.end(story.info(cases=cases)), verbose=0)

    assert " cases, 0 not passed" not in counting(10)
    assert "  10 of 12 cases, 0 not passed\n" in counting(12)


def test_what_is_not_listed_is_counted(story: Any) -> None:
    """A case that passed with a warning, or that checks nothing, must not go unseen."""
    bare = story.trial(verdicts=[], warnings=[NO_ASSERTIONS])
    warned = story.trial(warnings=["the agent reported no tokens"])
    cases = [story.case("a", bare), story.case("b", warned), story.case("c")]
    text = shown(story, cases, verbose=0)
    assert "  Warned:  1 case passed with warnings; -v shows them\n" in text
    assert "  Checks:  none in 1 case that passed; -v shows which\n" in text
    assert "-v shows" not in shown(story, cases)


def test_a_message_too_long_for_a_path_is_an_input(story: Any) -> None:
    for message in ("word " * 2000, "\0"):
        assert "Found:" not in shown(story, [], end=story.end(story.info(input=[message], files=["a"])), verbose=0)


def test_what_was_found_in_a_folder_is_said(story: Any, tmp_path: Path) -> None:
    files = [f"t/{number}.yaml" for number in range(7)]
    text = shown(story, [], end=story.end(story.info(input=[str(tmp_path)], files=files)), verbose=0)
    assert "(3 test cases in 7 files)\n" in text
    assert "Found: t/0.yaml, t/1.yaml, t/2.yaml, t/3.yaml, t/4.yaml and 2 more\n" in text
    named = shown(story, [], end=story.end(story.info(input=["t/0.yaml"], files=["t/0.yaml"])), verbose=0)
    assert "Found:" not in named


@pytest.mark.parametrize(("passed", "failed", "most"), [(5000, 0, 40), (4990, 10, 120), (0, 5000, 700)])
def test_5000_cases_print_few_lines(story: Any, passed: int, failed: int, most: int) -> None:
    text = shown(story, many(story, passed, failed), end=story.end(story.info(cases=5000)), verbose=0)
    assert len(text.splitlines()) < most
    assert f"  4,500 of 5,000 cases, {min(failed, 4500) if not passed else 0:,} not passed\n" in text


@pytest.mark.parametrize("verbose", [0, 1, 2])
def test_no_control_characters_leave_for_a_log(story: Any, verbose: int) -> None:
    evil = "\x1b[2J\x07\r\x08::error::\u202e"
    trial = story.trial(
        evil,
        evil,
        status="failed",
        error=evil,
        verdicts=[
            Verdict(
                type="equals", outcome="failed", message=evil, expected=evil + PARAGRAPH, found=evil + PARAGRAPH + "x"
            )
        ],
    )
    text = shown(story, [story.case(evil, trial, name=evil)], verbose=verbose)
    assert [one for one in text if not one.isprintable() and one != "\n"] == []


def test_a_case_below_its_min_score_says_so(story: Any) -> None:
    trial = story.trial(score=60.0, dimensions={"quality": 0.6}, left_out={"cost": "no budget_usd or max_tokens"})
    case = story.case("c", trial, status="failed", min_score=80.0, reason="score 60 is below min_score 80")
    text = shown(story, [case])
    assert "  score 60 is below min_score 80\n" in text
    assert "  score: 60 (quality 0.60)\n  left out of the score: cost (no budget_usd or max_tokens)\n" in text
    assert "  Scores:  1 case below min_score, although enough trials passed\n" in text
    assert "score:" not in shown(story, [story.case("c", trial)])
    assert "left out of the score: cost" in shown(story, [story.case("c", trial)], verbose=2)


def test_several_agents_have_totals_of_their_own(story: Any) -> None:
    cases = [story.case(f"c{number}", agent="one") for number in range(3)]
    cases.append(story.case("d", story.trial(status="failed", score=20.0), agent="one"))
    cases.append(story.case("c0", story.trial(score=90.0), agent="the-other"))
    cases[-1].trials[0].transcript.usage = Usage(cost_usd=0.5)
    text = shown(story, cases, end=story.end(story.info(agents=["one", "the-other"])))
    assert (
        "  By agent:\n"
        "    A  one        3 of 4 cases passed (75%), score 20.0\n"
        "    B  the-other  1 of 1 case passed (100%), score 90.0, $0.5000\n"
        "    Case  A  B\n"
        "    c0    ✓  ✓\n"
        "    c1    ✓  –\n"
        "    c2    ✓  –\n"
        "    d     ✗  –\n"
    ) in text
    assert "By agent" not in shown(story, cases)


def test_agents_stand_in_the_order_of_the_run(story: Any) -> None:
    cases = [story.case("c", agent=agent) for agent in ("two", "one")]  # several at a time: the second was the first
    text = shown(story, cases, end=story.end(story.info(agents=["one", "two"])))
    assert text.index("A  one") < text.index("B  two")


def test_what_was_used_is_the_agents_or_the_judges(story: Any) -> None:
    trial = story.trial(role_usage=Usage(total_tokens=900, cost_usd=0.0021))
    trial.transcript.usage = Usage(input_tokens=1000, output_tokens=234, cost_usd=0.25)
    text = shown(story, [story.case("c", trial)])
    assert "  Cost:    $0.2500\n  Tokens:  1,234\n  Judging: $0.0021, 900 tokens (judge and simulator" in text


def test_a_cost_that_nobody_has_spent_is_short(story: Any) -> None:
    trial = story.trial()
    trial.transcript.usage = Usage(cost_usd=1e308)
    assert "  Cost:    $1e+308\n" in shown(story, [story.case("c", trial)])


def test_the_slowest_are_named_where_it_is_worth_it(story: Any) -> None:
    cases = [story.case(f"c{took}", story.trial(duration_ms=took)) for took in (10, 5000, 70_000, 2000, 1500)]
    assert "  Slowest: c70000 (1m10s), c5000 (5.0s), c2000 (2.0s)\n" in shown(story, cases)
    assert "Slowest" not in shown(story, cases[:3])
    cases[1].trials.append(story.trial(duration_ms=4000, run=2))
    two = story.end(story.info(agents=["one", "two"]))
    shared = "c70000 – assistants.expense (1m10s), c5000 – assistants.expense (up to 5.0s a trial), c2000 – ass"
    assert f"  Slowest: {shared}" in shown(story, cases, end=two)
    assert "Slowest" not in shown(story, [story.case(f"c{n}", story.trial(duration_ms=9)) for n in range(9)])


def test_the_flakiest_are_named(story: Any) -> None:
    def case(name: str, passed: int) -> CaseResult:
        trials = [story.trial(run=run, status="passed" if run <= passed else "failed") for run in range(1, 11)]
        made: CaseResult = story.case(name, *trials, status="passed" if passed == 10 else "failed")
        return made

    text = shown(story, [case("a", 10), case("b", 9), case("c", 5), case("d", 0), case("e", 7), case("f", 1)])
    assert "  Flaky:   c (5/10 passed), e (7/10 passed), b (9/10 passed) and 1 more\n" in text
    two = story.end(story.info(agents=["one", "two"]))
    assert "  Flaky:   c – assistants.expense (5/10 passed)\n" in shown(story, [case("c", 5)], end=two)


def test_what_to_do_next(story: Any) -> None:
    failed = story.end(counts=story.counts(passed=1, failed=1), exit_code=1)
    text = shown(story, [story.case()], end=failed, command="atp test x.yaml")
    assert "Only what failed: atp test x.yaml --only-failed\n" in text
    assert "Full report: atp report 20241217-100000-ab12 -o report.html\n" in text
    assert "Only what failed" not in shown(story, [story.case()], command="atp test x.yaml")
    outputs = "-o r.html --output r.xml --output=r.json -or.md"
    again = shown(story, [story.case()], end=failed, command=f"atp test 'x y.yaml' {outputs} --runs 2")
    assert "Only what failed: atp test 'x y.yaml' --runs 2 --only-failed\n" in again, "a part would replace the whole"


def test_a_run_of_another_project_is_named_by_its_folder(
    story: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "atp.toml").touch()
    monkeypatch.chdir(tmp_path)
    for folder, named in (
        (".atp/runs/20241217-100000-ab12", "20241217-100000-ab12"),
        ("my examples/.atp/runs/r", "'my examples/.atp/runs/r'"),
        ("/elsewhere/.atp/runs/r", "/elsewhere/.atp/runs/r"),
    ):
        failed = story.end(story.info(folder=folder), counts=story.counts(failed=1), exit_code=1)
        assert f"Full report: atp report {named} -o report.html\n" in shown(story, [story.case()], end=failed)


def test_what_a_task_hands_over_is_shown_with_conversations(story: Any) -> None:
    case = story.case(input_data={"log": "one\ntwo", "key": "sk-hidden-1"})
    lines = shown(story, [case], verbose=2, secrets=["sk-hidden-1"]).splitlines()
    (told,) = [place for place, line in enumerate(lines) if "input data: " in line]
    assert lines[told] == '    input data: {"log":"one\\ntwo","key":"***"}'
    assert lines[told - 1].startswith("    user: ")
    assert "input data" not in shown(story, [case])


def test_where_a_variation_comes_from(story: Any) -> None:
    trials = [story.trial(variation=0, origin="listed"), story.trial(variation=1, origin="generated")]
    trials[1].status, trials[1].error = "failed", "no"
    assert "  variation 2 (generated):\n" in shown(story, [story.case("c", *trials, status="failed")])


def test_a_run_of_several_files_says_which_file_a_case_is_from(story: Any) -> None:
    """Ids are unique in a file only."""
    case = story.case("a", story.trial(status="failed", duration_ms=10), status="failed", file="b/two.yaml", line=7)
    several = story.end(story.info(files=["a/one.yaml", "b/two.yaml"]))
    assert "✗ [a] (10ms, b/two.yaml:7)\n" in shown(story, [case], end=several)
    assert "✗ [a] (10ms)\n" in shown(story, [case], end=story.end(story.info(files=["b/two.yaml"])))


def test_a_stopped_run_says_how_many_of_all_trials_ran(story: Any) -> None:
    """Also those of cases that never began, which are in no rate."""
    counts = story.counts(passed=1, cancelled=1) | {
        "total_runs": 8,
        "planned_runs": 12,
        "passed_runs": 7,
        "overall_pass_rate": 58.33,
        "stable_cases": 1,
        "unstable_cases": 1,
    }
    end = story.end(story.info(cases=4, trials=24, runs=6), counts=counts, reason="interrupted")
    summary = shown(story, [], end=end, quiet=True).partition("  Total:")[2].splitlines()
    assert "  Runs:      8 of 24 planned, 7 passed" in summary
    assert "  Cancelled: 1" in summary
    assert "  Not run:   2" in summary
