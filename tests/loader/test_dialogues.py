"""Simulated dialogues: simulator, checkpoints and their order, in both dialects that write them out."""

import pytest
from tests.loader.shop import Expect, suite_with

SAYS = "assertion: {type: contains, value: x}"


def test_a_dialogue_needs_a_simulator(expect: Expect) -> None:
    text = suite_with(f"«no-simulator»checkpoints: [{{id: a, {SAYS}}}]")
    loaded = expect(text)
    assert loaded.suite is not None
    assert len(loaded.suite.cases[0].checkpoints) == 1
    expect(text.replace("«no-simulator»", ""), simulator=True)


@pytest.mark.parametrize("simulator", ["{}", "{options: {metadata: {goal: g}}}"])
def test_a_simulator_needs_an_agent(expect: Expect, simulator: str) -> None:
    text = suite_with(f"«no-simulator»simulator: {simulator}\ncheckpoints: [{{id: a, {SAYS}}}]")
    expect(text)
    expect(text.replace("«no-simulator»", ""), simulator=True)


@pytest.mark.parametrize("use", ["agents:workers.sim", "scripts:a.b", "'scripts:'", "''"])
def test_a_simulator_is_named_without_a_prefix(expect: Expect, use: str) -> None:
    expect(suite_with(f"simulator: {{use: «reference»{use}}}\ncheckpoints: [{{id: a, {SAYS}}}]"))


def test_a_script_that_simulates_is_named_with_a_dot(expect: Expect) -> None:
    def used(use: str) -> str:
        return suite_with(f"simulator: {{use: {use}}}\ncheckpoints: [{{id: a, {SAYS}}}]")

    (refused,) = expect(used("«reference»scripts:buyer.speak")).diagnostics
    assert "`scripts.buyer.speak`" in refused.message
    expect(used("scripts.buyer.speak"))


def test_a_dialogue_needs_checkpoints(expect: Expect) -> None:
    expect(suite_with("«no-checkpoints»simulator: {use: s}"))
    expect(suite_with("simulator: {use: s}\n«no-checkpoints»checkpoints: []"))


@pytest.mark.parametrize(
    "checkpoint",
    [
        f"«missing-key»{{{SAYS}}}",
        "«missing-key»{id: b}",
        f"{{id: «empty»'', {SAYS}}}",
        "{id: b, assertion: {type: «unknown-assertion»contain, value: x}}",
        f"{{id: b, {SAYS}, after: «wrong-type»a}}",
        f"{{id: b, {SAYS}, required: «wrong-type»maybe}}",
        f"{{id: «duplicate-checkpoint»a, {SAYS}}}",
        f"{{id: b, {SAYS}, after: [a, «unknown-checkpoint»c]}}",
        f"{{id: b, {SAYS}, after: «checkpoint-cycle»[b]}}",
        "«wrong-type»b",
    ],
)
def test_checkpoints_are_checked(expect: Expect, checkpoint: str) -> None:
    expect(suite_with(f"simulator: {{use: s}}\ncheckpoints:\n  - {{id: a, {SAYS}}}\n  - {checkpoint}"))


def test_an_unknown_checkpoint_gets_a_suggestion(expect: Expect) -> None:
    loaded = expect(
        suite_with(
            "simulator: {use: s}\ncheckpoints:\n"
            f"  - {{id: ask_type, {SAYS}}}\n  - {{id: b, {SAYS}, after: [«unknown-checkpoint»ask_tpye]}}"
        )
    )
    assert loaded.diagnostics[0].hint == "did you mean `ask_type`?"


def test_a_longer_circle_is_told_with_its_way(expect: Expect) -> None:
    loaded = expect(
        suite_with(
            "simulator: {use: s}\ncheckpoints:\n"
            f"  - {{id: a, {SAYS}, after: «checkpoint-cycle»[c]}}\n"
            f"  - {{id: b, {SAYS}, after: [a]}}\n  - {{id: c, {SAYS}, after: [b]}}"
        )
    )
    assert loaded.diagnostics[0].message == "the checkpoint waits for itself: a → c → b → a"


def test_after_may_name_a_later_checkpoint(expect: Expect) -> None:
    expect(
        suite_with(
            "simulator: {use: s}\ncheckpoints:\n"
            f"  - {{id: a, {SAYS}, after: [b], required: false}}\n  - {{id: b, {SAYS}}}"
        )
    )


def test_turn_one_may_be_given(expect: Expect) -> None:
    loaded = expect(suite_with(f"input: Hello\nsimulator: {{use: s}}\ncheckpoints: [{{id: a, {SAYS}}}]"))
    assert loaded.suite is not None
    assert loaded.suite.cases[0].mode == "dialogue"


def test_max_turns_without_a_dialogue_warns(expect: Expect) -> None:
    expect(suite_with("input: Hello\n«warning:max-turns-unused»max_turns: 3"))


@pytest.mark.parametrize(("code", "value"), [("out-of-range", "0"), ("wrong-type", "many")])
def test_max_turns_is_a_count(expect: Expect, code: str, value: str) -> None:
    expect(suite_with(f"simulator: {{use: s}}\ncheckpoints: [{{id: a, {SAYS}}}]\nmax_turns: «{code}»{value}"))


def test_the_same_rules_hold_in_jsonl(expect: Expect) -> None:
    says = '"assertion": {"type": "contains", "value": "x"}'
    simulated = '"simulator": {"use": "s"}'
    expect(
        f'{{"id": "a", «no-simulator»"checkpoints": [{{"id": "a", {says}}}]}}\n'
        f'{{"id": "b", "simulator": {{"use": «reference»"agents:s"}}, "checkpoints": [{{"id": "a", {says}}}]}}\n'
        f'{{"id": "c", «no-checkpoints»"simulator": {{"use": "s"}}}}\n'
        f'{{"id": "d", {simulated}, "checkpoints": [{{"id": "a", {says}, "after": [«unknown-checkpoint»"b"]}}]}}\n'
        f'{{"id": "e", {simulated}, "checkpoints": [{{"id": "a", {says}, "after": «checkpoint-cycle»["a"]}}]}}\n'
    )


def test_each_circle_is_told_once(expect: Expect) -> None:
    loaded = expect(
        suite_with(
            "simulator: {use: s}\ncheckpoints:\n"
            f"  - {{id: a, {SAYS}, after: «checkpoint-cycle»[b]}}\n  - {{id: b, {SAYS}, after: [a]}}\n"
            f"  - {{id: c, {SAYS}, after: «checkpoint-cycle»[d]}}\n  - {{id: d, {SAYS}, after: [c, a]}}\n"
            f"  - {{id: e, {SAYS}, after: [c]}}"
        )
    )
    assert [one.message.partition(": ")[2] for one in loaded.diagnostics] == ["a → b → a", "c → d → c"]
