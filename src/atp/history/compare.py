"""Compares two runs, or two agents: pairs their cases, and says what got better and worse, and how sure that is."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import expm1, fsum
from typing import NamedTuple

from atp.base.diagnostics import load_error
from atp.base.near import near_miss
from atp.base.numbers import counted
from atp.history.figures import CaseFigures, RunFigures
from atp.stats.compare import (
    ALPHA,
    Counts,
    classify_cases,
    classify_overall,
    difference_interval,
    few_cases_interval,
    holm,
    is_non_inferior,
    log_ratios,
    observed,
    overall_interval,
    overall_p_value,
    shift,
)
from atp.stats.comparison import (
    CaseClass,
    CaseComparison,
    ColumnComparison,
    Comparison,
    FigureComparison,
    Limits,
    OverallComparison,
    Said,
    Side,
    SideName,
    Tally,
)
from atp.stats.intervals import Interval, percentile

_DIGITS = 6
"""Decimals of percentage points: enough that no difference is rounded to none."""
_DIGESTS = {"case_digest": "the case", "judge_digest": "its judge", "simulator_digest": "the simulated user"}


class _Pair(NamedTuple):
    """A case in A and in B; None on a side that does not have the case."""

    a: CaseFigures | None
    b: CaseFigures | None


def compare_runs(
    a: RunFigures,
    b: RunFigures,
    names: tuple[str, str],
    agents: tuple[str, str] | None = None,
    *,
    margin: float | None = None,
    answers: bool = False,
) -> Comparison:
    """Compare B with A; `names` is what the user called them, `agents` the agent of each if not all are compared.

    `margin` is a share: rates that differ by less are the same. `answers`: keep answers, where the runs have them.
    Raises `LoadError` for an agent that a run does not have.
    """
    notes: list[str] = []
    for name, run in zip(names, (a, b), strict=True):
        if run.stopped is not None:
            notes.append(f"{name} was not finished: {run.stopped}")
    if agents is not None:
        for run, agent, name in zip((a, b), agents, names, strict=True):
            _check_agent(run, agent, name)
    elif len(a.agents) == len(b.agents) == 1 and a.agents != b.agents:
        agents = a.agents[0], b.agents[0]
        notes.append(f"each run has one agent, so {agents[0]} is compared with {agents[1]}")
    pairs = list(_pairs(a.cases, b.cases, agents, notes))
    compared = [pair for pair in pairs if _left_out(pair) is None]
    cases = _compare_cases(pairs, compared, margin, answers=answers)
    notes += _unknown_digests(compared)
    if any(one.kind == "inconclusive" and one.is_compared for one in cases) and any(map(_is_sequential, compared)):
        notes.append(
            "--runs auto stops a case because of its results, so little can be said of single cases; "
            "to compare case by case, give both runs the same number of runs, for example --runs 20"
        )
    return Comparison(
        overall=_overall(compared, margin),
        regressed=sum(case.kind == "regressed" for case in cases),
        improved=sum(case.kind == "improved" for case in cases),
        cases=cases,
        a=_side(a, names[0], agents[0] if agents else None, [pair.a for pair in compared]),
        b=_side(b, names[1], agents[1] if agents else None, [pair.b for pair in compared]),
        margin=None if margin is None else round(100 * margin, _DIGITS),
        figures=list(_figures(compared, a, b, notes)),
        notes=notes,
    )


def compare_with_first(run: RunFigures, agents: Sequence[str]) -> list[ColumnComparison]:
    """Compare each further agent of a run with the first, corrected for how many comparisons there are (Holm)."""
    found: list[ColumnComparison] = []
    for agent in agents[1:]:
        pairs = [pair for pair in _pairs(run.cases, run.cases, (agents[0], agent), []) if _why_not(pair) is None]
        classes = Counter(kind for kind, _ in classify_cases([_both_counts(pair) for pair in pairs]))
        found.append(
            ColumnComparison(
                agent=agent,
                overall=_overall(pairs, None),
                regressed=classes["regressed"],
                improved=classes["improved"],
            )
        )
    known = [one.overall for one in found if one.overall.p_value is not None]
    for overall, p_value in zip(known, holm([one.p_value or 0.0 for one in known]), strict=True):
        overall.p_value = p_value
        if overall.kind in ("regressed", "improved") and p_value > ALPHA:
            overall.kind = "inconclusive"
    return found


def _check_agent(run: RunFigures, agent: str, name: str) -> None:
    if agent in run.agents:
        return
    columns = [one for one in run.agents if one.startswith(f"{agent} [")]
    if columns:
        hint = f"name one of its columns: {_quoted(columns)}"
    elif meant := near_miss(agent, run.agents):
        hint = f"did you mean `{meant}`?"
    else:
        hint = f"it has {_quoted(run.agents) or 'none'}"
    raise load_error("no-agent", f"{name} has no agent `{agent}`", hint)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"`{one}`" for one in names)


def _side(run: RunFigures, name: str, agent: str | None, cases: Sequence[CaseFigures | None]) -> Side:
    rates = [case.rate for case in cases if case is not None and case.rate is not None]
    return Side(
        name=name,
        run=run.run,
        at=run.at,
        commit=run.commit,
        dirty=run.dirty,
        agent=agent,
        pass_rate=_percent(fsum(rates) / len(rates)) if rates else None,
    )


_Key = tuple[str, str, str, int]
"""File, id and agent of a case, and its number where several have the same."""


def _pairs(
    a: Iterable[CaseFigures], b: Iterable[CaseFigures], agents: tuple[str, str] | None, notes: list[str]
) -> Iterable[_Pair]:
    """Pair the cases by file, id and agent; what is left by id and agent, where that names one case on each side."""
    left, right = _by_key(a, agents and agents[0]), _by_key(b, agents and agents[1])
    found = {key: left.pop(key) for key in right if key in left}
    alone = _by_name(left), _by_name(key for key in right if key not in found)
    moved = [(one, alone[0][name]) for name, one in alone[1].items() if one is not None and alone[0].get(name)]
    for key, earlier in moved:
        assert earlier is not None
        found[key] = left.pop(earlier)
    if moved:
        notes.append(f"{counted(len(moved), 'case')} in another file than before")
    yield from (_Pair(found.get(key), case) for key, case in right.items())
    yield from (_Pair(case, None) for case in left.values())


def _by_key(cases: Iterable[CaseFigures], agent: str | None) -> dict[_Key, CaseFigures]:
    """The cases, or those of one agent, whose name is then no part of the key: the other side has another."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = {}
    for case in cases:
        if agent is None or case.agent == agent:
            key = (case.file, case.id, "" if agent else case.agent)
            found[(*key, seen[key])] = case
            seen[key] += 1
    return found


def _by_name(keys: Iterable[_Key]) -> dict[tuple[str, str], _Key | None]:
    """The keys by id and agent; None where several cases have the same."""
    found: dict[tuple[str, str], _Key | None] = {}
    for key in keys:
        found[key[1:3]] = None if key[1:3] in found else key
    return found


def _why_not(pair: _Pair) -> tuple[CaseClass, str] | None:
    """Why a pair is not compared; None if it is."""
    if pair.a is None:
        return "only in B", "A has no such case"
    if pair.b is None:
        return "only in A", "B has no such case"
    silent = [name for name, case in (("A", pair.a), ("B", pair.b)) if case.rate is None]
    if silent:
        return "inconclusive", f"no run of it was judged in {' and '.join(silent)}"
    changed = [
        words
        for name, words in _DIGESTS.items()
        if getattr(pair.a, name) != getattr(pair.b, name) and not (name == "case_digest" and _is_unknown(pair))
    ]
    golden, before = pair.b.golden_digests, pair.a.golden_digests
    if any(before.get(variation, found) != found for variation, found in golden.items()):
        changed.append("its golden files")
    return ("changed", f"{' and '.join(changed)} changed") if changed else None


def _left_out(pair: _Pair) -> tuple[CaseClass, str] | None:
    """Why a comparison of runs leaves a pair out: in quarantine, a case must not decide an exit code."""
    if pair.a is not None and pair.b is not None and pair.b.quarantined:
        return "quarantined", "it is in quarantine"
    return _why_not(pair)


def _is_unknown(pair: _Pair) -> bool:
    """True if a journal of an early version does not say what the case was."""
    return any(case.case_digest is None for case in _both(pair))


def _unknown_digests(compared: Sequence[_Pair]) -> list[str]:
    unknown = sum(map(_is_unknown, compared))
    return [f"{counted(unknown, 'case')} may have changed: an early version of ATP did not record that"] * bool(unknown)


def _both(pair: _Pair) -> tuple[CaseFigures, CaseFigures]:
    assert pair.a is not None
    assert pair.b is not None
    return pair.a, pair.b


def _is_sequential(pair: _Pair) -> bool:
    return any(case.sequential for case in _both(pair))


def _both_counts(pair: _Pair) -> tuple[Counts, Counts]:
    a, b = _both(pair)
    return Counts(a.passed, a.judged, a.sequential), Counts(b.passed, b.judged, b.sequential)


def _difference(pair: _Pair) -> float:
    a, b = _both(pair)
    assert a.rate is not None
    assert b.rate is not None
    return b.rate - a.rate


def _compare_cases(
    pairs: Sequence[_Pair], compared: Sequence[_Pair], margin: float | None, *, answers: bool
) -> list[CaseComparison]:
    classes = iter(classify_cases([_both_counts(pair) for pair in compared], margin))
    found = []
    for pair in pairs:
        case = pair.b or pair.a
        assert case is not None
        record = CaseComparison(
            id=case.id,
            agent=case.agent,
            kind="inconclusive",
            observed=None,
            difference=None,
            p_value=None,
            file=case.file,
            name=case.name,
            a=None if pair.a is None else _tally(pair.a),
            b=None if pair.b is None else _tally(pair.b),
        )
        if (why := _left_out(pair)) is not None:
            record.kind, record.why = why
        else:
            difference = _difference(pair)
            record.kind, record.p_value = next(classes)
            record.observed, record.difference = observed(difference), _percent(difference)
            record.interval = _limits(difference_interval(*_both_counts(pair)))
        if answers:
            record.answers = _answers(pair, record)
        found.append(record)
    return found


def _tally(case: CaseFigures) -> Tally:
    rate = None if case.rate is None else _percent(case.rate)
    return Tally(passed=case.passed, judged=case.judged, errors=case.errors + case.missing, pass_rate=rate)


def _answers(pair: _Pair, record: CaseComparison) -> dict[SideName, Said]:
    """An answer of each side: where the rates differ, one that passed beside one that did not."""
    first: dict[SideName, str] = {"A": "passed", "B": "passed"}
    if record.observed == "worse":
        first["B"] = "failed"
    elif record.observed == "better":
        first["A"] = "failed"
    found: dict[SideName, Said] = {}
    sides: tuple[tuple[SideName, CaseFigures | None], ...] = (("A", pair.a), ("B", pair.b))
    for side, case in sides:
        kept = case.answers if case is not None else {}
        for kind in (first[side], "failed", "passed"):
            if kind in kept:
                answer = kept[kind]
                found[side] = Said(outputs=answer.outputs, passed=kind == "passed", error=answer.error)
                break
    return found


def _overall(compared: Sequence[_Pair], margin: float | None) -> OverallComparison:
    if not compared:
        inferior = None if margin is None else False
        return OverallComparison(
            kind="inconclusive", observed=None, difference=None, interval=None, p_value=None, non_inferior=inferior
        )
    differences = [_difference(pair) for pair in compared]
    counts = list(map(_both_counts, compared))
    p_value = overall_p_value(counts, differences)
    interval = overall_interval(differences, [min(a.judged, b.judged) for a, b in counts]) or few_cases_interval(counts)
    mean = fsum(differences) / len(differences)
    return OverallComparison(
        kind=classify_overall(differences, p_value, interval, margin),
        observed=observed(mean),
        difference=_percent(mean),
        interval=_limits(interval),
        p_value=p_value,
        cases=len(compared),
        different=sum(observed(one) != "equal" for one in differences),
        non_inferior=None if margin is None else is_non_inferior(interval, margin),
    )


def _figures(compared: Sequence[_Pair], a: RunFigures, b: RunFigures, notes: list[str]) -> Iterable[FigureComparison]:
    """The figures that cases have on both sides. Durations only where both runs had the same conditions."""
    names = dict.fromkeys(name for pair in compared for one in _both(pair) for name in one.figures)
    for name in names:
        both = [_both(pair) for pair in compared]
        medians = [
            (one.figures[name].median, other.figures[name].median) for one, other in both if _have(one, other, name)
        ]
        if not medians:
            continue
        if name.endswith("_ms") and (why := _other_conditions(a, b)):
            notes.append(f"durations are not compared: {why}")
            continue
        ratios = log_ratios(medians)
        found = shift([two - one for one, two in medians] if ratios is None else ratios)
        assert found is not None
        yield FigureComparison(
            name=name,
            cases=len(medians),
            a=percentile([one for one, _ in medians], 0.5) or 0.0,
            b=percentile([two for _, two in medians], 0.5) or 0.0,
            scale="difference" if ratios is None else "percent",
            shift=_shifted(found.estimate, ratios),
            interval=None
            if found.interval is None
            else (_shifted(found.interval.low, ratios), _shifted(found.interval.high, ratios)),
            p_value=found.p_value,
        )


def _have(one: CaseFigures, other: CaseFigures, name: str) -> bool:
    return name in one.figures and name in other.figures


def _other_conditions(a: RunFigures, b: RunFigures) -> str | None:
    if a.parallel != b.parallel:
        return f"A ran {counted(a.parallel, 'trial')} at a time, B {b.parallel}"
    if a.host is None or a.host != b.host:
        return "the runs were on different machines"
    return None


def _shifted(value: float, ratios: object) -> float:
    return round(value if ratios is None else 100 * expm1(value), _DIGITS)


def _percent(share: float) -> float:
    return round(100 * share, _DIGITS)


def _limits(interval: Interval) -> Limits:
    return _percent(interval.low), _percent(interval.high)
