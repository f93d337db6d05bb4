"""The model that the examples of the docs talk to: a server on the loopback whose answers follow a few plain rules.

`openai.…` and `anthropic.…` connectors reach it, so that a page can be carried out as a reader with a key would do it.
"""

import json
import re
from typing import Any

from tests.engine.support.judge import judge, marked
from tests.models.mock_server import Heard, calls

USER = ["Hello, I have an expense", "A hotel, 310 euros", "Yes please"]
"""What the user says whom it plays."""
WORDINGS = [
    "could somebody please {}",
    "I would be so glad if you went and did this for me: {}",
    "{} – and be quick about it, will you",
    "the harbour master asks you to {} before noon",
    "is it too much to ask of you to {}",
    "we talked about it yesterday, so now {}",
    "my grandmother, who is from Norway, wants you to {}",
    "without further ado, {}",
]


def stand_in(heard: Heard) -> Any:
    """What the model answers."""
    for words, answer in _ROLES.items():
        if words in heard.system or words in heard.prompt:
            return answer(heard)
    return _agent(heard)


def _judged(heard: Heard) -> Any:
    """A friendly judge, who only can't find a rhyme in anything."""
    scores = "by the following criterion" in heard.prompt
    return judge(lambda asked, _: 0.9 if scores else "rhyme" not in asked)(heard)


def _user(heard: Heard) -> Any:
    turn = int(re.findall(r"This is turn (\d+)", heard.prompt)[0])
    said = USER[turn - 1] if turn <= len(USER) else ""
    return marked(heard, {"reasoning": "one step at a time", "input": said, "goal_achieved": not said})


def _variations(heard: Heard) -> Any:
    asked = json.loads(heard.prompt)
    first = asked["chains"][0]["prompts"]
    taken = len(asked["taken"])
    made = [[one.format(prompt) for prompt in first] for one in WORDINGS[taken : taken + asked["count"]]]
    return {"chains": [{"of": 1, "prompts": chain} for chain in made]}


def _cases(heard: Heard) -> Any:
    asked = json.loads(heard.prompt)
    numbers = range(len(asked.get("existing", [])), asked["count"] + len(asked.get("existing", [])))
    return {
        "cases": [
            {
                "id": f"{asked.get('focus', 'case')}-{number + 1}",
                "input": f"I paid {number * 1000} euros",
                "assertions": [{"type": "contains", "value": "euros"}],
            }
            for number in numbers
        ]
    }


def _agent(heard: Heard) -> Any:
    """An agent: it uses its first tool when it is asked for high water, and says what the tool said."""
    if heard.messages[-1]["role"] == "tool":
        return f"The table says: {heard.tool_results[-1]}"
    if heard.tools and "high water" in heard.prompt:
        return calls((heard.tools[0], {"place": "Whitby"}))
    return f"You said: {heard.prompt}"


_ROLES = {
    "Judge what it did": _judged,
    "You play a human user": _user,
    "You write variations of test prompts": _variations,
    "test cases for an agent": _cases,
}
