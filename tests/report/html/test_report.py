"""The HTML report's file: what is in it, that nothing secret is, that it appears whole, in flat memory.

What a person sees of it is looked at in `tests/browser`.
"""

import base64
import gc
import hashlib
import html
import json
import pathlib
import random
import re
import shlex
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.report.support.page import Read

from atp.journal.made_files import FOLDER, MadeFiles
from atp.report.html.detail import MOST_ITEMS, longest_text, trial_object
from atp.report.html.page import SCRIPTS, assets
from atp.report.html.report import HtmlReport
from atp.report.reporter import REPORTERS
from atp.report.rerun import case_command
from atp.suite.result import Artifact, CaseResult, Event, MadeFile, Transcript, Verdict


def written(path: Path, story: Any, cases: list[CaseResult], **end: Any) -> Read:
    report = HtmlReport(path)
    story.tell([report], cases, story.end(**end))
    assert list(report.problems) == []
    return Read(path)


def test_it_is_registered() -> None:
    assert REPORTERS.find("report.html") is HtmlReport
    assert REPORTERS.for_extension(".html") is HtmlReport
    assert REPORTERS.for_extension(".HTM") is HtmlReport


@pytest.mark.parametrize("name", ["troubles", "repeated"])
def test_golden(
    tmp_path: Path, story: Any, golden: Callable[[str, str], None], name: str, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "report.html"
    report = HtmlReport(path)
    report.start(story.info())
    report.skipped("tests/expense.jsonl", story.skipped())
    for case in request.getfixturevalue(name):
        report.case(case)
    report.end(story.end())
    read = Read(path)
    lines = [json.dumps({"run": read.run}, ensure_ascii=False)]
    lines += [json.dumps(row, ensure_ascii=False) for row in [*read.rows, *read.blocks["skipped"]]]
    lines += [json.dumps(item, ensure_ascii=False) for item in read.blocks["chunk-0"]]
    golden(f"{name}.html.jsonl", "\n".join(lines) + "\n")


def test_everything_of_a_trial_is_there(tmp_path: Path, story: Any, troubles: list[CaseResult]) -> None:
    read = written(tmp_path / "report.html", story, troubles)
    seen = read.trial(7)["transcript"]
    assert [call["name"] for call in seen["tool_calls"]] == ["search", "save"]
    assert seen["tool_calls"][1]["error"] == "denied"
    assert seen["artifacts"][0]["text"] == "content"
    assert seen["logs"] == ["loading"]
    assert read.trial(3)["retries"] == ["connection reset", "connection refused"]
    assert read.rows[2]["blame"] == "agent"
    assert read.rows[3]["blame"] == "environment"
    assert read.case(7)["expected"] == {"keywords": []}


def test_what_a_task_hands_to_the_agent_is_there(tmp_path: Path, story: Any) -> None:
    cases = [story.case("data", input_data={"rows": [1, 2]}), story.case("none")]
    read = written(tmp_path / "report.html", story, cases)
    assert read.case(0)["input_data"] == {"rows": [1, 2]}
    assert "input_data" not in read.case(1)


def test_the_policy_names_the_style_and_the_script(tmp_path: Path, story: Any) -> None:
    source = written(tmp_path / "report.html", story, [story.case()]).source
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', source)
    assert found
    policy = html.unescape(found[1])
    assert policy.startswith("default-src 'none'; ")
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", source, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{rule} 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'" in policy


def test_the_page_names_no_other_place_and_never_makes_markup_of_text() -> None:
    style, script = assets()
    for text in (style, script):
        assert re.findall(r"(?:https?:)?//[\w.]+\.\w+", re.sub(r"http://www\.w3\.org/2000/svg", "", text)) == []
    markup = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser"
    assert re.findall(markup, script) == []
    assert "</script" not in script
    assert "</style" not in style


def test_every_asset_is_used() -> None:
    import atp.report.html

    folder = Path(atp.report.html.__file__).parent / "assets"
    assert {one.name for one in folder.iterdir()} == {*SCRIPTS, "page.html", "report.css"}


def _luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_colours_can_be_read() -> None:
    style, _ = assets()
    colours = {
        name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);", style)
    }
    inks = ["ink", "ink-2", "ink-3", "accent", "passed", "failed", "error", "timeout", "blocked", "cancelled"]
    for theme in (0, 1):
        for ground in ("ground", "sheet", "well"):
            for ink in inks:
                pair = sorted((_luminance(colours[ink][theme]), _luminance(colours[ground][theme])), reverse=True)
                assert (pair[0] + 0.05) / (pair[1] + 0.05) >= 4.5, (ink, ground, theme)


def test_what_is_said_without_a_script(tmp_path: Path, story: Any, troubles: list[CaseResult]) -> None:
    evil = story.case("<b>evil</b>", story.trial(status="failed", error="</li><script>alert(1)</script>"))
    counts = story.counts(passed=1, failed=9)
    source = written(tmp_path / "report.html", story, [evil, *troubles], counts=counts).source
    assert "<h1>9 of 10 cases failed</h1>" in source
    assert "<bdi>&lt;b&gt;evil&lt;/b&gt;</bdi>" in source
    assert "<bdi>connection refused</bdi>" in source
    assert "<script>alert" not in source


@pytest.mark.parametrize(
    ("counts", "more", "kind", "words"),
    [
        ({"passed": 1}, {}, "passed", "The case passed"),
        ({"passed": 1200}, {}, "passed", "All 1,200 cases passed"),
        ({"passed": 2, "failed": 1}, {}, "failed", "1 of 3 cases failed"),
        ({"failed": 1}, {}, "failed", "1 of 1 case failed"),
        ({"passed": 2, "failed": 1, "errors": 1}, {}, "failed", "1 of 4 cases failed, 1 could not be completed"),
        ({"passed": 2, "errors": 1, "blocked": 1}, {}, "incomplete", "2 of 4 cases could not be completed"),
        ({"skipped": 4}, {}, "empty", "Nothing ran"),
        ({"passed": 3}, {"reason": "the budget is used up"}, "incomplete", "The run was stopped"),
    ],
)
def test_verdicts(
    tmp_path: Path, story: Any, counts: dict[str, int], more: dict[str, Any], kind: str, words: str
) -> None:
    info = story.info(cases=sum(counts.values()) - counts.get("skipped", 0))
    read = written(tmp_path / "report.html", story, [], info=info, counts=story.counts(**counts), **more)
    assert read.run["verdict"] == {"kind": kind, "words": words}
    assert f"<title>{words} – ./tests/expense.jsonl</title>" in read.source


def test_rows_stand_in_the_order_of_the_files(tmp_path: Path, story: Any) -> None:
    cases = [
        story.case(f"{index}-{agent}", story.trial(f"{index} {agent}"), index=index, agent=agent)
        for index in range(30)
        for agent in ("one", "two")
    ]
    shuffled = random.Random(1).sample(cases, len(cases))
    read = written(tmp_path / "report.html", story, shuffled, info=story.info(agents=["one", "two"]))
    assert [row["id"] for row in read.rows] == [case.case for case in cases]
    for place, row in enumerate(read.rows):
        assert read.trial(place)["transcript"]["turns"][0]["output"] == row["id"].replace("-", " ")


def test_secrets(tmp_path: Path, story: Any) -> None:
    secret = 's3cr3t-é"\\\n-key'
    text = f"the key is {secret}."
    verdict = Verdict(type="contains", outcome="failed", message=text, expected={text: text}, found=[text])
    trial = story.trial(text, text, status="failed", error=text, verdicts=[verdict], warnings=[text], retries=[text])
    trial.transcript.artifacts = [Artifact(name=text, text=text, data={text: text})]
    trial.transcript.events = [Event(type="reasoning", payload={text: [text]})]
    trial.files = [MadeFile(name=text, size=1)]
    case = story.case(text, trial, name=text + ".", file=text, tags=[text], input=text, expected=text, agent=text)
    path = tmp_path / "report.html"
    info = story.info(folder=text, input=[text], agents=[text], connector=text, notes=[text])
    report = HtmlReport(path, [secret, "failed", "contains"])
    story.tell([report], [case], story.end(info, reason=text))
    read = Read(path)
    everything = json.dumps(read.blocks, ensure_ascii=False) + read.source
    assert "s3cr3t" not in everything
    assert read.rows[0]["id"] == "the key is ***."
    assert read.rows[0]["status"] == "failed"  # our own words stay, whoever has them for a secret
    assert read.trial(0)["verdicts"][0]["type"] == "contains"


def test_long_texts_are_cut_and_say_so(story: Any) -> None:
    trial = story.trial("y" * 500)
    trial.transcript.messages = [{"role": "user", "content": "x" * 5000}, {"role": "assistant", "content": "short"}]
    trial.transcript.events = [Event(type="progress", payload={"message": "z" * 5000})] * (MOST_ITEMS + 3)
    made = trial_object(trial, CaseResult(agent="a", case="c"), lambda value: value, 1000, Path())
    first, second = made["transcript"]["messages"]
    assert first == {"role": "user", "content": "x" * 1000 + "… (4,000 more characters are in the journal)"}
    assert second["content"] == "short"
    assert made["transcript"]["events"][0]["payload"].startswith('{"message":"zzz')
    assert len(made["transcript"]["events"]) == MOST_ITEMS
    assert made["more"] == {"events": 3}


def made_in(run: Path, **contents: bytes) -> list[MadeFile]:
    """The files of a trial, kept in the folder of its run."""
    for name, content in contents.items():
        (run.parent / name).write_bytes(content)
    files, warnings = MadeFiles(run / FOLDER).keep({name: run.parent / name for name in contents})
    assert warnings == []
    return files


def shown_files(run: Path, story: Any, files: list[MadeFile], longest: int = 1000) -> dict[str, dict[str, Any]]:
    trial = story.trial(files=files)
    made = trial_object(trial, CaseResult(agent="a", case="c"), lambda value: value, longest, run)
    return {one["name"]: one for one in made["files"]}


def test_files_that_the_agent_made_are_shown_with_their_content(tmp_path: Path, story: Any) -> None:
    run = tmp_path / "run"
    run.mkdir()
    gif = b"GIF89a" + b"\0" * 10
    files = made_in(run, text="<b>täglich</b>".encode(), gif=gif, zeros=b"a\0b", latin="ä".encode("latin-1"))
    shown = shown_files(run, story, files)
    assert shown["text"]["text"] == "<b>täglich</b>"
    assert shown["gif"]["picture"] == f"data:image/gif;base64,{base64.b64encode(gif).decode()}"
    assert all(shown[name]["binary"] and "text" not in shown[name] for name in ("zeros", "latin"))
    assert [one["size"] for one in shown.values()] == [len(gif), 1, 15, 3]
    assert all(len(one["sha256"]) == 64 for one in shown.values())


def test_contents_of_a_trials_files_share_one_limit(tmp_path: Path, story: Any) -> None:
    run = tmp_path / "run"
    run.mkdir()
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 1000
    shown = shown_files(run, story, made_in(run, a=b"x" * 900, b=png, c=b"y" * 400, d=b"z"))
    assert shown["a"]["text"] == "x" * 900
    assert shown["c"]["text"] == "y" * 100 + "… (300 more characters are in the run's folder)"
    assert {"text", "picture"}.isdisjoint({*shown["b"], *shown["d"]})


@pytest.mark.parametrize("damage", ["missing", "changed", "a link", "a folder", "no digest", "not kept"])
def test_only_the_content_that_was_kept_is_shown(tmp_path: Path, story: Any, damage: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (made,) = made_in(run, text=b"made")
    kept = run / FOLDER / (made.sha256 or "")
    match damage:
        case "changed":
            kept.write_bytes(b"changed")
        case "no digest":
            made.sha256 = f"../{FOLDER}/{made.sha256}"
        case "not kept":
            made.kept = False
        case _:
            kept.unlink()
    if damage == "a link":
        kept.symlink_to(tmp_path / "text")
    if damage == "a folder":
        kept.mkdir()
    assert {"text", "picture", "binary"}.isdisjoint(shown_files(run, story, [made])["text"])


def test_a_report_that_grows_long_shortens_what_passed_first() -> None:
    sizes = (0, 15_000_000, 30_000_000, 45_000_000)
    assert [longest_text(size, passed=False) for size in sizes] == [1_000_000, 100_000, 10_000, 500]
    assert [longest_text(size, passed=True) for size in sizes] == [1_000_000, 10_000, 1_000, 200]


def test_the_file_stays_small_enough_to_send(tmp_path: Path, story: Any) -> None:
    """Answers that can't be compressed, 100 MB of them."""
    path = tmp_path / "report.html"
    report = HtmlReport(path)
    report.start(story.info())
    luck = random.Random(4)
    for number in range(1000):
        report.case(story.case(f"T{number}", story.trial(luck.randbytes(50_000).hex()), index=number))
    report.end(story.end())
    assert path.stat().st_size < 50_000_000
    read = Read(path)
    assert len(read.trial(0)["transcript"]["turns"][0]["output"]) == 100_000
    assert "in the journal" in read.trial(999)["transcript"]["turns"][0]["output"]


@pytest.mark.parametrize(
    ("case", "info", "words"),
    [
        ({}, {}, "atp test tests/expense.jsonl --run '^c$'"),
        ({"case": "a.b (1)"}, {}, r"atp test tests/expense.jsonl --run '^a\.b \(1\)$'"),
        ({"case": "a\x1b\u202e"}, {}, r"atp test tests/expense.jsonl --run '^a\u001b\u202e$'"),
        ({"file": None}, {"input": ["it's me"]}, "atp test -i 'it'\"'\"'s me'"),
        ({"file": None, "input": "b"}, {"input": ["a", "b"]}, "atp test -i b"),
        ({"file": "my tests.yaml", "agent": "b"}, {}, "atp test 'my tests.yaml' --run '^c$' -n b"),
        ({}, {"options": {"name": ["x.py:run"]}}, "atp test tests/expense.jsonl --run '^c$' -n x.py:run"),
        (
            {"agent": "ocean.warm"},
            {"options": {"name": ["x.py:run", "agents/ocean/warm.md"]}},
            "atp test tests/expense.jsonl --run '^c$' -n agents/ocean/warm.md",
        ),
        (
            {"agent": "ocean.warm [model=a, gpt]"},
            {"options": {"name": ["x.py:run", "agents/ocean/warm.md"], "connector": ["gpt", "mini"]}},
            "atp test tests/expense.jsonl --run '^c$' -n 'agents/ocean/warm.md [model=a, gpt]' -c gpt -c mini",
        ),
        (
            {"file": "/p/scripts/test_x.py"},
            {"input": ["scripts:test_x"], "options": {"name": ["b"]}},
            "atp test -i scripts:test_x --run '^c$' -n b",
        ),
        (
            {},
            {
                "options": {
                    "connector": "gpt",
                    "user": "ada",
                    "ctx": "my ctx.json",
                    "simulator": "sim",
                    "judge_cache": False,
                    "judge_each": True,
                    "timeout": 90.0,
                    "runs": 3,
                    "output": ["x.html"],
                    "parallel": 4,
                }
            },
            (
                "atp test tests/expense.jsonl --run '^c$' -c gpt -u ada --ctx 'my ctx.json' --simulator sim"
                " --judge-each --no-judge-cache --runs 3 --timeout 90"
            ),
        ),
    ],
)
def test_the_command_that_runs_it_again(story: Any, case: dict[str, Any], info: dict[str, Any], words: str) -> None:
    made = story.case("c")
    for name, value in case.items():
        setattr(made, name, value)
    assert case_command(made, story.info(**info), lambda value: value) == words
    pattern = re.search(r"--run '(\S.*?)\$'", words)
    assert pattern is None or re.search(f"{pattern[1]}$", made.case)


def test_the_command_of_a_real_run_runs_it_again(
    tmp_path: Path, atp: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    (tmp_path / "bot.py").write_text("def answer(prompt, context): return [prompt, context['user'], context['locale']]")
    (tmp_path / "atp.toml").write_text("runs = 2")
    (tmp_path / "ctx.json").write_text('{"locale": "de-de"}')
    cases = [{"id": name, "input": "x", "expected": ["x", "ada", "fr-fr"]} for name in ("a.b", "a-b")]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    flags = ["-n", "bot.py:answer", "-u", "ada", "--ctx", "ctx.json", "--parallel", "2"]
    first = atp("test", "cases.jsonl", *flags, "-o", "report.html", cwd=tmp_path)
    assert first.returncode == 1, first.stderr
    atp("report", "last", "-o", "later.html", cwd=tmp_path)
    words = "atp test cases.jsonl --run '^a\\.b$' -n bot.py:answer -u ada --ctx ctx.json"
    assert [Read(tmp_path / name).case(0)["command"] for name in ("report.html", "later.html")] == [words, words]
    again = atp(*shlex.split(words)[1:], "--json", cwd=tmp_path)
    assert again.returncode == 1, again.stderr
    (result,) = [one for one in map(json.loads, again.stdout.splitlines()) if one["type"] == "result"]
    assert (result["id"], result["output"], result["runs"]) == ("a.b", ["x", "ada", "de-de"], 2)


def test_a_command_that_could_steer_a_terminal_is_not_offered(tmp_path: Path, story: Any) -> None:
    read = written(tmp_path / "report.html", story, [story.case(file="a\x1b[201~\nrm -rf.jsonl")])
    assert "command" not in read.case(0)


def test_it_appears_whole_at_the_end(tmp_path: Path, story: Any) -> None:
    path = tmp_path / "report.html"
    path.write_text("earlier")
    report = HtmlReport(path)
    report.start(story.info())
    report.case(story.case())
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]
    report.end(story.end())
    assert path.read_text().endswith("</html>\n")
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_on_the_way_leaves_the_earlier_report(
    tmp_path: Path, story: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("earlier")
    report = HtmlReport(path)
    report.start(story.info())

    def full(item: bytes) -> tuple[int, int]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report._details, "add", full)
    report.case(story.case())
    report.case(story.case())
    report.end(story.end())
    assert list(report.problems) == [f"{path}: No space left on device"]
    assert path.read_text() == "earlier"


def test_a_folder_that_is_not_there(tmp_path: Path, story: Any) -> None:
    report = HtmlReport(tmp_path / "gone" / "report.html")
    story.tell([report], [story.case()], story.end())
    assert report.problems
    assert "No such file" in report.problems[0]


def test_on_stdout(story: Any, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    story.tell([HtmlReport(None)], [story.case()], story.end())
    assert capsysbinary.readouterr().out.startswith(b"<!doctype html>")


@pytest.mark.no_cover  # which doubles what it takes, and other tests cover the same
def test_memory_stays_flat(tmp_path: Path, story: Any) -> None:
    """20,000 cases may cost the numbers that say where each row is, one chunk that isn't full, and nothing more."""
    path = tmp_path / "report.html"
    report = HtmlReport(path)
    report.start(story.info())
    luck = random.Random(5)
    trials = [story.trial(luck.randbytes(250).hex()) for _ in range(50)]

    def hear(first: int, last: int) -> None:
        for index in range(first, last):
            report.case(story.case(f"T{index}", trials[index % 50], index=index))

    hear(0, 1000)
    gc.collect()
    tracemalloc.start()
    hear(1000, 3000)
    gc.collect()
    # Without what `pathlib` interns: Python's own table may grow just now.
    found = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(False, pathlib.__file__)])
    kept = sum(one.size for one in found.statistics("filename"))
    tracemalloc.stop()
    assert kept < 2000 * 64 + 600_000
    hear(3000, 20000)
    tracemalloc.start()
    report.end(story.end())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000
    read = Read(path)
    assert [row["id"] for row in read.rows] == [f"T{index}" for index in range(20000)]
    assert read.trial(19_999)["transcript"]["turns"][0]["output"] == trials[49].transcript.output


def test_nothing_is_lost_between_chunks(tmp_path: Path, story: Any) -> None:
    luck = random.Random(6)
    outputs = [luck.randbytes(luck.randrange(1, 40_000)).hex() for _ in range(60)]
    cases = [story.case(f"T{place}", story.trial(output), index=place) for place, output in enumerate(outputs)]
    read = written(tmp_path / "report.html", story, cases)
    assert sum(name.startswith("chunk-") for name in read.blocks) > 3
    assert [read.trial(place)["transcript"]["turns"][0]["output"] for place in range(60)] == outputs


def test_answers_of_any_shape_stay(tmp_path: Path, story: Any) -> None:
    outputs: list[Any] = ["", [], {}, 0, False, "é\u2028", 2**70]
    cases = [story.case(f"T{place}", story.trial(output), index=place) for place, output in enumerate(outputs)]
    read = written(tmp_path / "report.html", story, cases)
    assert [read.trial(place)["transcript"]["turns"][0]["output"] for place in range(len(outputs))] == outputs
    empty = story.case("none", story.trial(transcript=Transcript(), verdicts=[]))
    assert "transcript" in written(tmp_path / "report.html", story, [empty]).trial(0)
