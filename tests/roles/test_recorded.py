"""Answers that an earlier version recorded are replayed if prompts and keys have not changed, else refused by name."""

from pathlib import Path

import pytest
from tests.roles.support.doubles import Scripted, run, talk

from atp.models.cassettes.cassette import Cassette
from atp.models.cassettes.recorded import ReplayedModel
from atp.models.model import CassetteMiss, ModelRequest
from atp.roles.ask import GeneratorClient
from atp.roles.generate.variator import VariationRequest, vary
from atp.roles.judge.assessor import Assessor
from atp.roles.judge.validator import Validation, Validator
from atp.roles.record import make_record
from atp.roles.simulator import Simulator, SimulatorTurn

RECORDED = Path(__file__).with_name("recorded")
BEFORE_MARKS = Path(__file__).with_name("recorded_before_marks")
"""Recorded when prompts did not ask for a mark yet."""
RECORD = make_record(talk(("warm the ocean", "I warmed it by 2 degrees.")))
TURN = SimulatorTurn(persona="a fish", goal="warm water", options={"connector": "x"})


def never(name: str) -> Scripted:
    """A client of this name that must not be asked."""
    return Scripted(AssertionError("the answer is recorded"), name=name)


def test_recorded_answers_of_every_role_are_replayed() -> None:
    async def replay() -> None:
        tape = Cassette(RECORDED, "replay")
        try:
            model = ReplayedModel("openai.m", "m", {"temperature": 0}, tape)
            answer = await model.ask(ModelRequest(messages=[{"role": "user", "content": "hello"}]))
            assert answer.text == "Good morning"

            assessor = Assessor(never("judge"), cassette=tape)
            found = await assessor.assess(RECORD, ["the ocean is warmer"], intent="Warming works")
            assert [(one.met, one.evidence) for one in found.judgements] == [(True, ["I warmed it"])]

            validation = Validation(output="warm", input="warm it", metadata={"criteria": "is warm"})
            validated = await Validator(never("mine"), cassette=tape).validate(validation)
            assert validated.judgement.met

            assert (await Simulator(never("user"), cassette=tape).next(TURN)).input == "Is it warm?"

            wanted = VariationRequest(chains=[["warm the ocean"]], count=2, name="Warming", intent="Warming works")
            varied = await vary(wanted, GeneratorClient(never("maker"), 60, tape))
            assert [(one.chain, one.by) for one in varied[1:]] == [(["Raise its temperature"], "maker")]
        finally:
            tape.close()

    run(replay())


def test_answers_to_another_prompt_are_refused_by_name() -> None:
    async def replay() -> None:
        tape = Cassette(BEFORE_MARKS, "replay")
        try:
            assessor = Assessor(never("judge"), cassette=tape)
            found = await assessor.assess(RECORD, ["the ocean is warmer"], intent="Warming works")
            assert found.judgements[0].met is None
            assert "`words` differs: recorded '8d71dfb534c0'" in found.judgements[0].reason
            with pytest.raises(CassetteMiss, match="`words` differs"):
                await Simulator(never("user"), cassette=tape).next(TURN)
        finally:
            tape.close()

    run(replay())
