"""Agents that are CrewAI crews and flows; run only where CrewAI is installed, with a model of the mock server."""

# mypy: ignore-errors
# ruff: noqa: T201
import os
from typing import ClassVar

from crewai import LLM, Agent, Crew, Flow, Task
from crewai.flow.flow import listen, start
from crewai.project import CrewBase, agent, crew, task
from crewai.tools import tool
from pydantic import BaseModel


@tool("weather")
def weather(city: str) -> str:
    """The weather of a city."""
    if city == "Atlantis":
        raise ValueError("no such city")
    print(f"looking up {city}")
    return f"clear in {city}"


llm = LLM(model="openai/mock-1", base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
forecaster = Agent(role="Forecaster", goal="Tell the weather", backstory="An old hand.", tools=[weather], llm=llm)


def make_crew(description: str = "Answer: {prompt}", **more: object) -> Crew:
    todo = Task(name="answering", description=description, expected_output="A sentence", agent=forecaster, **more)
    return Crew(agents=[forecaster], tasks=[todo])


weather_crew = make_crew()
styled = make_crew("In the style {style}, for {place}: {prompt}")


def two_tasks() -> Crew:
    first = Task(name="looking", description="Look: {prompt}", expected_output="A sentence", agent=forecaster)
    second = Task(name="telling", description="Tell: {prompt}", expected_output="A sentence", agent=forecaster)
    return Crew(agents=[forecaster], tasks=[first, second])


def asks_a_person() -> Crew:
    return make_crew(human_input=True)


def reporting() -> Crew:
    return make_crew(output_file="{workspace}/reports/report.md")


class Verdict(BaseModel):
    sky: str


def structured() -> Crew:
    return make_crew(output_json=Verdict)


@CrewBase
class Based:
    """A crew in the form that `crewai create` makes."""

    agents_config: ClassVar[dict] = {}
    tasks_config: ClassVar[dict] = {}

    @agent
    def teller(self) -> Agent:
        return Agent(role="Teller", goal="Tell", backstory="Old.", llm=llm)

    @task
    def telling(self) -> Task:
        return Task(description="Tell: {prompt}", expected_output="A sentence", agent=self.teller())

    @crew
    def crew(self) -> Crew:
        return Crew(agents=self.agents, tasks=self.tasks)


class Asked(BaseModel):
    question: str = ""
    rounds: int = 0


class Shouting(Flow[Asked]):
    """A flow with a state of its own shape."""

    @start()
    def shout(self) -> str:
        self.state.rounds += 1
        return self.state.question.upper()

    @listen(shout)
    def tell(self, said: str) -> dict:
        return {"said": said, "rounds": self.state.rounds}


class Failing(Flow):
    """A flow whose state takes all."""

    @start()
    def fail(self) -> None:
        raise LookupError(f"no {self.state['prompt']} here")


def chosen(options: dict) -> object:
    """Makes what a case asks for."""
    found = globals()[options.pop("which")]
    if found is Verdict:
        return Verdict(sky="clear")
    return found if isinstance(found, Crew) else found()
