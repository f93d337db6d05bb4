"""Facts that several reports state about a case or a run, each worked out in one place."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from atp.base.durations import elapsed
from atp.base.json.text import encode
from atp.base.numbers import between_text, percent_text
from atp.base.secrets import Hide
from atp.base.text import one_line
from atp.journal.listeners import RunEnd
from atp.journal.records import RunInfo
from atp.stats.flaky import flakiness
from atp.stats.self_consistency import Flips, check_flips, trial_flips
from atp.stats.stability import Stability, blames_agent, case_stability, missed_score
from atp.stats.summary import percent
from atp.suite.meter import read_meter
from atp.suite.result import NO_ASSERTIONS, CaseResult, Status, TrialResult, Usage

_MOST_WRITTEN_OUT = 1e12


def shown_trial(case: CaseResult) -> TrialResult:
    """The trial that stands for its case: the first of its status, one that the agent caused if any."""
    if len(case.trials) == 1:
        return case.trials[0]
    alike = [trial for trial in case.trials if trial.status == case.status] or case.trials
    if not alike:
        status: Status = "cancelled" if case.status == "inconclusive" else case.status
        return TrialResult(key="", agent=case.agent, case=case.case, status=status)
    return alike[0] if len(alike) == 1 else next(filter(blames_agent, alike), alike[0])


def is_failure(case: CaseResult) -> bool:
    """True if the summary counts the case as failed: the agent is to blame."""
    if case.status == "error":
        return any(blames_agent(trial) for trial in case.trials)
    return case.status in ("failed", "timeout")


def quarantine_text(case: CaseResult) -> str | None:
    """Why failures of a case are taken out of the exit code, if they are."""
    if (why := case.quarantine) is None:
        return None
    state = "not in the exit code" if case.excused else "it passed"
    return f"quarantined until {why.expires}, {state}: {why.reason} (owner: {why.owner})"


def flaky_text(case: CaseResult) -> str | None:
    """Say that the runs of a case differ, and whose fault the difference is; None if the runs agree."""
    if not case.repeated or (found := flakiness(case)) is None:
        return None
    advice = f": {_JUDGE_AGAIN}" if found.blame == "agent or judge" else ""
    return f"flaky, blame: {found.blame}{advice}"


_JUDGE_AGAIN = "atp recheck --runs 3 tells which"
"""How to tell an agent that is not stable from a judge that is not."""


def below_min_score(case: CaseResult) -> bool:
    """True if the case failed by its score: enough of its trials passed."""
    return missed_score(case) is not None


def reason(case: CaseResult) -> str:
    """Why a case did not pass, in a sentence."""
    if case.status == "inconclusive":
        return case.reason or case.status
    return shown_trial(case).error or case.reason or case.status


def milliseconds(value: float) -> int:
    """A duration as the formats write it: a whole number."""
    return round(value)


def messages_count(case: CaseResult, trial: TrialResult) -> int:
    """How many messages the agent was last given (the JSONL format counts the history, not the answer)."""
    messages = trial.transcript.messages
    if messages and len(trial.transcript.turns) < 2 and (given := given_messages(case)):
        return given
    for number in range(len(messages), 0, -1):
        if messages[number - 1].get("role") == "user":
            return number
    return 0


def given_messages(case: CaseResult) -> int:
    """The length of the message history that the case begins with; 0 if it has none."""
    given = case.input
    return len(given) if isinstance(given, list) and given and isinstance(given[0], dict) else 0


def response(output: Any) -> str:
    """The answer in words: a text as it is, any other value as JSON."""
    if isinstance(output, str):
        return output
    return "" if output is None else encode(output).decode()


def assertion_errors(trial: TrialResult) -> list[str]:
    """Why the failed checks failed."""
    return [one.message or f"{one.type} failed" for one in trial.verdicts if one.outcome == "failed"]


def warnings(trials: list[TrialResult]) -> list[str]:
    """What could not be observed, without repetitions."""
    return list({one: None for trial in trials for one in trial.warnings if one != NO_ASSERTIONS})


def no_assertions(trials: Iterable[TrialResult]) -> bool:
    """True if nothing was checked in one of the trials."""
    return any(NO_ASSERTIONS in trial.warnings for trial in trials)


def agent_usage(trial: TrialResult) -> Usage:
    """What the agent used in a trial: the same tokens and money that limits and budgets count."""
    seen = trial.transcript
    if not seen.events and seen.usage.tokens == seen.usage.total_tokens:
        return seen.usage
    meter = read_meter(seen)
    return replace(seen.usage, total_tokens=meter.tokens, cost_usd=meter.usd)


def total_usage(all_usage: Iterable[Usage]) -> Usage:
    """The sum of what was used."""
    total = Usage()
    for usage in all_usage:
        total.add(usage)
    return total


def case_usage(trials: list[TrialResult]) -> dict[str, Any]:
    """What all trials used together, as far as known."""
    total = agent_usage(trials[0]) if len(trials) == 1 else total_usage(map(agent_usage, trials))
    known: dict[str, Any] = to_builtins(total)  # leaves out what is unknown
    return known


def dollars(usd: float) -> str:
    """An amount of money. An absurdly large one, which an agent may report, has few of its digits."""
    return f"${usd:.4f}" if abs(usd) < _MOST_WRITTEN_OUT else f"${usd:.4g}"


def figure_text(name: str, value: float) -> str:
    """A figure of a case for people, by its name: a duration, an amount of money, or a number."""
    if name.endswith("_usd"):
        return dollars(value)
    if abs(value) >= _MOST_WRITTEN_OUT:
        return f"{value:.4g}ms" if name.endswith("_ms") else f"{value:.4g}"
    if name.endswith("_ms"):
        return elapsed(value)
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"


def stability_text(case: CaseResult) -> str:
    """The stability of a case in a line: `Runs: 2/3 passed (66.7%), unstable`; with variations, what was counted."""
    found = case_stability(case)
    rate = percent(found.passed, found.planned)
    variations = case.variations
    label = "Runs" if variations == 1 else "Variations" if variations == found.planned else "Trials"
    text = f"{label}: {found.passed}/{found.planned} passed ({rate:g}%)"
    if label == "Trials":
        text += f" of {trials_text(found.planned, variations, found.planned // variations)}"
    text += f", {class_text(found)}, consistency {found.consistency:.2f}"
    if case.required_rate is not None:
        text += f", {100 * case.required_rate:g}% needed"
        text += f" with {100 * case.confidence:g}% confidence" if case.confidence is not None else ""
        text += f", margin {100 * case.margin:g}%" if case.margin else ""
    return text


def judge_differs(case: CaseResult) -> bool:
    """True if the judge contradicts itself on the same conversations of a case."""
    return trial_flips(case.trials).differing > 0


def judge_flips(case: CaseResult, hide: Hide) -> list[tuple[str, str]]:
    """How often the judge contradicts itself on the same conversations, then on which checks; empty if judged once."""
    flips = trial_flips(case.trials)
    if not flips.pairs:
        return []
    unstable = [one for one in check_flips(case.trials) if one.differing]
    return [
        ("Judge", flip_text(flips)),
        *((one_line(hide(one.check or ""), 80), flip_text(one)) for one in unstable),
    ]


def flip_text(flips: Flips) -> str:
    """How often two judgings of a conversation differ."""
    if not flips.differing:
        most = percent_text(flips.interval.high)
        return f"{flips.judgings} judgings agree; in the long run, two differ at most {most} of the time"
    between = between_text(flips.interval)
    rate = percent_text(flips.rate or 0)
    return f"{flips.judgings} judgings, two differ {rate} of the time; {between} in the long run"


def long_run_text(case: CaseResult) -> str:
    """What the runs of a case say of its pass rate in the long run, in a sentence; empty if nothing was judged."""
    from atp.stats.rate_text import case_rate_text  # only cases that ran more than once need the statistics

    return case_rate_text(case) or ""


def left_out(trials: Sequence[TrialResult]) -> dict[str, str]:
    """The parts of the score that no trial of a case has data for, and why, if it has a score."""
    if len(trials) == 1:
        return trials[0].left_out if trials[0].score is not None else {}
    scored = [one for one in trials if one.score is not None]
    known = {name for one in scored for name in one.dimensions}
    return {name: why for one in scored for name, why in one.left_out.items() if name not in known}


def class_text(found: Stability) -> str:
    """`mostly stable`; of a case that a stop cut short, how many of its trials ran."""
    if found.classification is None:
        return f"only {found.runs} of {found.planned} trials ran"
    return found.classification.replace("_", " ")


def runs_per_case(info: RunInfo) -> int | None:
    """How many runs each case has, with each of its prompts; None where cases differ."""
    fewer = not info.varied and info.trials < info.cases * info.runs  # journals of earlier versions say no more
    return None if info.runs_differ or info.adaptive or fewer else info.runs


def trials_text(trials: int, variations: int, runs: int) -> str:
    """`10 variations × 5 runs`: the variations and runs of the trials; only variations, where the runs differ."""
    if trials != variations * runs:
        return f"{variations} variations, not all with as many runs"
    return f"{variations} variations × {runs} runs" if runs > 1 else f"{variations} variations"


def not_run(end: RunEnd) -> int:
    """How many cases were planned and never ended, because the run was stopped; not those that a journal lost since."""
    if end.damaged:
        return 0
    ended = end.counts.get("total_cases", end.info.cases) + end.counts.get("skipped_by_test", 0)
    return max(0, end.info.cases - int(ended))


def agent_id(info: RunInfo) -> str:
    """The name of the agent, or of all agents."""
    return ", ".join(info.agents)


def timestamp(seconds: float) -> str:
    """ISO 8601 in UTC, as the JSONL test package writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
