"""`atp calibrate` and `atp labels`: from a run to a calibration that reports and gates use."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.support.project import Project, Ran
from tests.report.support.page import Read

AGENT = """
    def run(prompt):
        return f"answer {prompt}, which is " + ("good enough" if int(prompt) % 4 else "not good at all")

    def other(prompt):
        return run(prompt)
"""
JUDGE = """
    import random

    WRONG = {"good": 0.05, "bad": 0.2}

    def judge(asked):
        \"\"\"Wrong at known rates, and always in the same way about the same answer.\"\"\"
        answer = next(piece["text"] for piece in asked["record"] if piece["judged"])
        good = "good enough" in answer
        chance = WRONG["good" if good else "bad"]
        met = good != (random.Random(answer).random() < chance)
        shown = {"reason": "so", "evidence": [answer]}
        if "criteria" in asked:
            return {"verdicts": [{"number": 1, "score": float(met), **shown}]}
        return {"verdicts": [{"number": one["number"], "met": met, **shown} for one in asked["expectations"]]}

    def fickle(asked):
        \"\"\"Another verdict at every second asking.\"\"\"
        fickle.asked = getattr(fickle, "asked", 0) + 1
        answer = next(piece["text"] for piece in asked["record"] if piece["judged"])
        return {"verdicts": [{"number": 1, "score": fickle.asked % 2, "reason": "so", "evidence": [answer]}]}
"""
CRITERION = "The answer can be sent"
HOW = ("-n", "agent.py:run", "--assessor", "scripts:judges.judge")


def cases(project: Project, count: int = 120, **check: Any) -> str:
    judged = {"type": "llm_eval", "criteria": CRITERION, **check}
    return project.cases(*({"id": f"c{n}", "input": str(n), "assert": [judged]} for n in range(count)))


@pytest.fixture
def judged(project: Project) -> Project:
    """A project with a run of 120 answers, 90 of which are good."""
    project.write("atp.toml", "")
    project.write("agent.py", AGENT)
    project.write("scripts/judges.py", JUDGE)
    assert project.test(cases(project), *HOW).code == 1
    return project


def calibrate(project: Project, *arguments: str, **more: Any) -> Ran:
    ran = project.atp("calibrate", *arguments, **more)
    assert "Traceback" not in ran.err, ran.err
    return ran


def sample_of(project: Project) -> Path:
    return project.runs()[0] / "sample.jsonl"


def label(path: Path, most: int = 1000, **changes: Any) -> list[dict[str, Any]]:
    """Fill in a sample as people would who are always right."""
    head, *items = map(json.loads, path.read_text("utf-8").splitlines())
    for item in items[:most]:
        item["label"] = "passed" if "good enough" in item["answer"] else "failed"
    lines = [{**head, **changes}, *items]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return items


def measured(project: Project, *arguments: str) -> dict[str, Any]:
    ran = calibrate(project, "measure", *arguments, "--json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    return found


def test_a_run_is_sampled_labelled_measured_and_reported_with_the_corrected_rate(judged: Project) -> None:
    drawn = calibrate(judged, "sample", "-n", "80")
    assert (drawn.code, drawn.err) == (0, "")
    assert "sample.jsonl (80 checks of 120)" in drawn.out
    items = label(sample_of(judged))
    assert sum(item["weight"] for item in items) == pytest.approx(120)
    assert "scored" not in sample_of(judged).read_text("utf-8"), "whoever labels must not see what the judge said"
    told = calibrate(judged, "measure")
    assert told.code == 0
    assert f"  {CRITERION}" in told.out
    assert "80 labels of 80 cases: both pass" in told.out
    assert "corrected" in told.out
    assert "calibrations/cases.json" in told.out
    saved = json.loads((judged.folder / "calibrations/cases.json").read_text("utf-8"))
    assert saved["run"] == judged.runs()[0].name
    (judge,) = saved["judges"]
    (criterion,) = judge["criteria"]
    assert (judge["judge"]["name"], criterion["text"]) == ("scripts:judges.judge", CRITERION)
    tpr, tnr = criterion["accuracy"]["tpr"], criterion["accuracy"]["tnr"]
    assert tpr["low"] <= 0.95 <= tpr["high"]
    assert tnr["low"] <= 0.8 <= tnr["high"]
    for name in ("r.json", "r.md", "r.html"):
        assert judged.atp("report", "-o", name).code == 0
    (record,) = json.loads((judged.folder / "r.json").read_text("utf-8"))["judges"]
    low, high = record["corrected"]["interval"]
    assert low <= 75 <= high
    assert record["corrected"]["rate"] == pytest.approx(75, abs=5)
    assert record["calibration"]["name"] == "cases"
    assert record["warnings"] == []
    shown = judged.atp("report").out
    assert f"{CRITERION}: " in shown
    assert "passed, corrected" in shown
    assert "passed, corrected" in (judged.folder / "r.md").read_text("utf-8")
    (on_page,) = Read(judged.folder / "r.html").run["judges"]
    assert on_page["rows"][0]["corrected"] == pytest.approx(record["corrected"]["rate"] / 100, abs=0.001)


def test_the_same_seed_draws_the_same_sample_and_another_draws_another(judged: Project) -> None:
    for name, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        assert calibrate(judged, "sample", "-n", "20", "--seed", seed, "-o", f"{name}.jsonl").code == 0
    a, b, c = ((judged.folder / f"{name}.jsonl").read_text("utf-8") for name in "abc")
    assert a == b != c


def test_labels_given_beside_the_run_count_and_people_may_disagree(judged: Project) -> None:
    assert calibrate(judged, "sample", "-n", "60").code == 0
    _, *items = map(json.loads, sample_of(judged).read_text("utf-8").splitlines())
    lines = []
    for number, item in enumerate(items):
        truth = ["failed", "passed"]["good enough" in item["answer"]]
        other = ["failed", "passed"]["good enough" not in item["answer"]]
        about = {"trial": item["trial"], "check": item["check"], "at": 1}
        lines.append({**about, "by": "ada", "verdict": truth})
        lines += [{**about, "by": "ben", "verdict": other if number == 0 else truth}] if number < 5 else []
    judged.write("labels.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert judged.atp("labels", "import", "last", "labels.jsonl").out == "65 labels added\n"
    assert judged.atp("labels", "import", "last", "labels.jsonl").out == "0 labels added, 65 labels there already\n"
    found = measured(judged)
    assert found["people"] == ["ada", "ben"]
    assert found["judges"][0]["whole"]["accuracy"]["labels"] == 59
    assert found["at_random"]
    notes = " ".join(found["notes"])
    assert "several people labelled 5 checks, and agree on 4" in notes
    assert "1 check on which as many say passed as failed is left out" in notes
    exported = judged.atp("labels", "export").out.splitlines()
    assert len(exported) == 65
    assert json.loads(exported[0])["criterion"] == CRITERION


def test_picked_labels_give_agreement_and_no_correction(judged: Project) -> None:
    trials = judged.trials()[:10]
    lines = [{"trial": one["key"], "check": [0], "verdict": "passed", "by": "ada", "at": 1} for one in trials]
    judged.write("labels.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    assert judged.atp("labels", "import", "last", "labels.jsonl").code == 0
    found = measured(judged)
    accuracy = found["judges"][0]["whole"]["accuracy"]
    assert (accuracy["labels"], accuracy.get("tpr"), found["at_random"]) == (10, None, False)
    assert "not drawn at random" in found["notes"][0]
    assert found["rates"][0]["corrected"] is None
    assert "were not drawn at random, so nothing follows for others" in judged.atp("report").out


def test_a_part_of_a_sample_without_labels_is_not_a_random_sample(judged: Project) -> None:
    assert calibrate(judged, "sample", "-n", "40").code == 0
    items = label(sample_of(judged))
    head = sample_of(judged).read_text("utf-8").splitlines()[0]
    some = [{**item, "label": item["label"] if item["stratum"] == "1" else None} for item in items]
    sample_of(judged).write_text("\n".join([head, *map(json.dumps, some)]) + "\n", "utf-8")
    found = measured(judged)
    assert not found["at_random"]
    assert "a whole part of the sample has no labels" in found["notes"][0]


def test_unlabelled_checks_are_taken_to_be_like_the_labelled_ones(judged: Project) -> None:
    assert calibrate(judged, "sample", "-n", "80").code == 0
    label(sample_of(judged), most=60)
    found = measured(judged)
    assert found["at_random"]
    assert "20 of 80 checks of the sample have no label" in found["notes"][0]


def test_a_judge_asked_again_has_a_flip_rate(judged: Project) -> None:
    judged.test(cases(judged, 30), "-n", "agent.py:run", "--assessor", "scripts:judges.fickle")
    run = judged.runs()[-1].name
    assert judged.atp("recheck", run, "--runs", "3", "-o", "out.jsonl").code in (0, 1)
    assert calibrate(judged, "sample", run, "-n", "30").code == 0
    label(judged.folder / ".atp/runs" / run / "sample.jsonl")
    found = measured(judged, run)
    flips = found["judges"][0]["whole"]["flips"]
    assert (flips["judgings"], flips["pairs"]) == (90, 90)
    assert flips["differing"] == 60
    assert "90 judgings, two differ 67% of the time" in calibrate(judged, "measure", run).out


def test_a_gate_says_that_its_judge_was_never_calibrated_and_a_flag_makes_that_an_error(judged: Project) -> None:
    gates = ("--gate", "pass_rate >= 0.5", "--gate", "duration_ms mean <= 60000")
    ran = judged.atp("test", "cases.jsonl", *HOW, *gates, "-q")
    lines = ran.out.splitlines()
    assert any("pass_rate >= 0.5" in one and "never calibrated" in one for one in lines)
    assert not any("duration_ms" in one and "calibrated" in one for one in lines), "no judge decides on a duration"
    refused = judged.atp("test", "cases.jsonl", *HOW, "--require-calibration")
    assert (refused.code, len(judged.runs())) == (2, 2), "nothing runs"
    assert "error[uncalibrated-judge]" in refused.err
    assert "cases.jsonl:1:1" in refused.err
    assert calibrate(judged, "sample", "last~1", "-n", "120").code == 0
    label(sample_of(judged))
    assert calibrate(judged, "measure", "last~1").code == 0
    judged.write("atp.toml", "require_calibration = true\n")
    again = judged.atp("test", "cases.jsonl", *HOW, "--gate", "pass_rate >= 0.5", "-q")
    assert again.code == 1, again.err
    assert "never calibrated" not in again.out


@pytest.mark.parametrize("change", ["criterion", "votes", "judge", "threshold"])
def test_a_calibration_holds_for_the_judge_and_the_criterion_that_were_labelled(judged: Project, change: str) -> None:
    assert calibrate(judged, "sample", "-n", "80").code == 0
    label(sample_of(judged))
    assert calibrate(judged, "measure").code == 0
    keys: dict[str, dict[str, Any]] = {
        "criterion": {"criteria": "It is polite"},
        "votes": {"votes": 3},
        "threshold": {"threshold": 0.3},
    }
    if change == "judge":
        judged.write("scripts/judges.py", JUDGE + "\n    # changed\n")
    judged.test(cases(judged, 20, **keys.get(change, {})), *HOW, "-o", "r.json")
    (record,) = json.loads((judged.folder / "r.json").read_text("utf-8"))["judges"]
    assert record["corrected"] is None
    says = {
        "criterion": "never calibrated by this criterion",
        "threshold": "never calibrated by this criterion",
        "votes": "never calibrated with 3 votes, only with 1",
        "judge": "never calibrated as it is now",
    }
    assert says[change] in record["warnings"][0]


def test_a_warning_says_that_another_agent_was_labelled(judged: Project) -> None:
    assert calibrate(judged, "sample", "-n", "100").code == 0
    label(sample_of(judged))
    assert calibrate(judged, "measure").code == 0
    judged.test("cases.jsonl", "-n", "agent.py:other", *HOW[2:], "-o", "r.json")
    (record,) = json.loads((judged.folder / "r.json").read_text("utf-8"))["judges"]
    assert record["corrected"] is not None
    assert record["warnings"] == ["measured on answers of `agent.py:run`, not of `agent.py:other`"]
    judged.write("agent.py", AGENT + "\n    # changed\n")
    judged.test("cases.jsonl", *HOW, "-o", "r.json")
    (record,) = json.loads((judged.folder / "r.json").read_text("utf-8"))["judges"]
    assert record["warnings"] == ["`agent.py:run` has changed since the answers were labelled"]


def test_several_criteria_are_measured_together_and_each(judged: Project) -> None:
    polite = {"type": "llm_eval", "criteria": "It is polite"}
    sent = {"type": "llm_eval", "criteria": CRITERION}
    named = [{"id": f"c{n}", "input": str(n), "assert": [sent, polite]} for n in range(60)]
    judged.test(judged.cases(*named), *HOW)
    assert calibrate(judged, "sample", "-n", "90").code == 0
    path = judged.runs()[-1] / "sample.jsonl"
    label(path)
    found = measured(judged)
    (judge,) = found["judges"]
    assert judge["whole"]["accuracy"]["labels"] == 90
    assert sum(one["accuracy"]["labels"] for one in judge["criteria"]) == 90
    assert [one["criterion"] for one in found["rates"]] == [None, CRITERION, "It is polite"]
    assert calibrate(judged, "sample", "-n", "20", "--criterion", "POLITE", "-o", "polite.jsonl").code == 0
    head, *items = map(json.loads, (judged.folder / "polite.jsonl").read_text("utf-8").splitlines())
    assert (head["criterion"], {item["criterion"] for item in items}) == ("POLITE", {"It is polite"})
    assert sum(item["weight"] for item in items) == pytest.approx(60)


def test_votes_that_differ_are_counted(project: Project) -> None:
    project.write("atp.toml", "")
    project.write("agent.py", AGENT)
    project.write("scripts/judges.py", JUDGE)
    name = cases(project, 10, votes=3)
    project.test(name, "-n", "agent.py:run", "--assessor", "scripts:judges.fickle", "-o", "r.json")
    (record,) = json.loads((project.folder / "r.json").read_text("utf-8"))["judges"]
    assert (record["votes"], record["votes_differ"]) == (3, 10)
    assert "votes differ on 10 of 10" in project.atp("report").out


def mistaken(project: Project, what: str) -> tuple[str, ...]:
    """Do something wrong, and return the command that finds it."""
    path = sample_of(project)
    if what == "exact":
        project.test(project.cases({"id": "a", "input": "1", "expected": "b"}), "-n", "agent.py:run")
        return ("sample",)
    assert calibrate(project, "sample", "-n", "20").code == 0
    items = label(path)
    lines = path.read_text("utf-8").splitlines()
    if what == "unlabelled":
        assert calibrate(project, "sample", "-n", "20", "--force").code == 0
    elif what == "label":
        lines[2] = lines[2].replace('"label": "', '"label": "good-')
    elif what == "key":
        lines[2] = lines[2].replace('"label"', '"lable"')
    elif what == "head":
        lines = lines[1:]
    elif what == "newer":
        lines[0] = lines[0].replace('"format": 1', '"format": 9')
    elif what == "twice":
        lines.append(lines[1])
    elif what == "unknown":
        lines[2] = lines[2].replace(items[1]["trial"], "nothing")
    if what not in ("unlabelled", "again"):
        path.write_text("\n".join(lines) + "\n", "utf-8")
    if what == "damaged":
        project.write("calibrations/x.json", '{"type": "atp calibration", "format": 1}')
        return ("list",)
    return ("sample", "-n", "5") if what == "again" else ("measure", "--name", "." if what == "name" else "x")


@pytest.mark.parametrize(
    ("what", "code", "says"),
    [
        ("exact", "nothing-to-label", "no judge decided anything"),
        ("unlabelled", "no-labels", "nothing is labelled in"),
        ("again", "sample-exists", "--force"),
        ("label", "bad-sample", "sample.jsonl:3:1"),
        ("key", "bad-sample", "unknown field `lable`"),
        ("head", "bad-sample", "not the first line of a sample"),
        ("newer", "newer-format", "a sample of format 9"),
        ("twice", "bad-sample", "the same check as on line 2"),
        ("unknown", "label-unknown", "no trial `nothing`"),
        ("name", "calibration-name", "`.` can't be the name"),
        ("damaged", "bad-calibration", "missing required field"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_nothing_is_saved(
    judged: Project, what: str, code: str, says: str
) -> None:
    refused = calibrate(judged, *mistaken(judged, what))
    assert (refused.code, refused.out) == (2, "")
    assert f"error[{code}]" in refused.err
    assert says in refused.err
    assert not (judged.folder / "calibrations/cases.json").exists()


def test_a_calibration_of_another_run_is_not_replaced_unasked(judged: Project) -> None:
    assert calibrate(judged, "sample", "-n", "40").code == 0
    label(sample_of(judged))
    assert calibrate(judged, "measure").code == 0
    assert calibrate(judged, "measure").code == 0, "of the same run it may be: more was labelled"
    judged.test("cases.jsonl", *HOW)
    assert calibrate(judged, "sample", "-n", "40").code == 0
    label(judged.runs()[-1] / "sample.jsonl")
    refused = calibrate(judged, "measure")
    assert (refused.code, "error[calibration-exists]" in refused.err) == (2, True)
    assert calibrate(judged, "measure", "--force").code == 0
    assert judged.runs()[-1].name in calibrate(judged, "list").out


def test_a_run_of_an_earlier_version_says_what_to_do(judged: Project) -> None:
    path = judged.runs()[0] / "journal.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for line in lines:
        for verdict in line.get("result", {}).get("verdicts", []):
            verdict.pop("judge")
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines), "utf-8")
    refused = calibrate(judged, "sample")
    assert (refused.code, "does not say who judged" in refused.err) == (2, True)
    assert f"atp recheck {judged.runs()[0].name}" in refused.err


def test_an_unknown_command_names_those_there_are(judged: Project) -> None:
    refused = calibrate(judged, "last")
    assert (refused.code, "atp calibrate measure RUN" in refused.err) == (2, True)


def test_another_judge_is_measured_by_the_labels_of_the_same_answers(judged: Project) -> None:
    """The labels are of answers: who judges them again is measured without labelling again."""
    assert calibrate(judged, "sample", "-n", "90").code == 0
    label(sample_of(judged))
    judged.write(
        "scripts/strict.py",
        """
        def judge(asked):
            answer = next(piece["text"] for piece in asked["record"] if piece["judged"])
            met = "good enough" in answer and not answer.split()[1].startswith("1")
            return {"verdicts": [{"number": 1, "score": float(met), "reason": "so", "evidence": [answer]}]}
        """,
    )
    assert judged.atp("recheck", "last", "--assessor", "scripts:strict.judge", "-o", "out.jsonl").code == 1
    found = measured(judged, "last", str(sample_of(judged)), "--name", "strict")
    (judge,) = found["judges"]
    accuracy = judge["whole"]["accuracy"]
    assert (judge["judge"]["name"], found["at_random"]) == ("scripts:strict.judge", True)
    assert accuracy["tnr"]["value"] == 1
    truth = sum(not str(n).startswith("1") for n in range(120) if n % 4) / sum(n % 4 > 0 for n in range(120))
    assert accuracy["tpr"]["low"] <= truth <= accuracy["tpr"]["high"]


def test_expectations_and_checks_in_groups_are_sampled_with_what_was_asked(judged: Project) -> None:
    relevant = {"type": "llm_eval", "criteria": "relevance"}
    group = {"type": "any_of", "assertions": [{"type": "equals", "value": "x"}, relevant]}
    case = {"id": "all", "input": "1", "expectations": ["The answer helps"], "assert": [group]}
    judged.test(judged.cases(case, {**case, "id": "more", "input": "2"}), *HOW)
    assert calibrate(judged, "sample", "-o", "all.jsonl").code == 0
    _, *items = map(json.loads, (judged.folder / "all.jsonl").read_text("utf-8").splitlines())
    asked = {(item["case"], tuple(item["check"])): item["criterion"] for item in items}
    assert {place for _, place in asked} == {(0, 1), (1,)}
    assert asked["all", (1,)] == "The answer helps"
    assert asked["all", (0, 1)].startswith("Relevance: it addresses what was asked")
    assert items[0]["conversation"][0].startswith("user: ")


def test_the_judge_of_a_test_in_python_is_missed_when_the_test_has_run(judged: Project) -> None:
    judged.write(
        "validators.py",
        """
        def sent(messages):
            return {"passed": True, "reason": "fine"}
        """,
    )
    judged.write(
        "scripts/tests/desk_test.py",
        """
        def TestSent(t, ctx):
            response = ctx.agent("agent.py:run").send("1")
            t.assert_.agent(response, "validators.py:sent", {"criteria": "can be sent"})
        """,
    )
    ran = judged.atp("test", "-i", "scripts:tests.desk_test", "--require-calibration", "-q")
    assert ran.code == 3, ran.err
    assert "no labels show validators.py:sent by `can be sent` to be better than chance" in ran.err
    assert judged.atp("test", "-i", "scripts:tests.desk_test", "-q").code == 0


def test_labels_that_cannot_be_exported_are_an_error(judged: Project) -> None:
    refused = judged.atp("labels", "export", "-o", "no/such/folder.jsonl")
    assert (refused.code, "error[unwritable-labels]: no/such/folder.jsonl" in refused.err) == (2, True)
