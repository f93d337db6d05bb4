"""All that a plugin imports. Nothing of ATP imports this module.

A plugin adds one of four things, each as one class. A package names the class in an entry point of the group; a script
registers it with the decorator.

- a kind of check: an `Assertion` with a method `check`, in the group `atp.checks`, by `@plugins.check`;
- a kind of agent: an `Adapter` with a `type`, a `Config` and a method `turn`, in `atp.agents`, by `@plugins.agent`;
- a type of model: a `Model` with a `type` and a method `ask`, in `atp.models`, by `@plugins.model`;
- a reporter: a `Reporter` with a `format` and methods of a `Listener`, in `atp.reporters`, by `@plugins.reporter`.

Names are loaded when they are asked for, so a check loads nothing that only agents or models need.
"""

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atp.agents.adapter import (
        Adapter,
        AdapterContext,
        AgentError,
        AgentTimeout,
        Finding,
        Reply,
        TurnRequest,
    )
    from atp.base.errors import ConfigurationError, Error
    from atp.base.registry import PluginError
    from atp.checks.evidence import Evidence, Subject, Workspace
    from atp.checks.verdicts import failed, passed, unjudged
    from atp.journal.listeners import Listener, RunEnd
    from atp.journal.records import RunInfo
    from atp.models.connections import ModelContext
    from atp.models.connectors.connector import Connector
    from atp.models.connectors.registry import MODELS
    from atp.models.model import Model, ModelAnswer, ModelError, ModelRequest, Tool, ToolUse
    from atp.report.reporter import REPORTERS, Reporter
    from atp.suite.agent import AGENTS, Agent, AgentConfig
    from atp.suite.assertion import ASSERTIONS, Assertion, Decider, Need
    from atp.suite.capabilities import Capabilities
    from atp.suite.record import Amount, Count, Fraction, Json, JsonObject, Names, Record, Regex, Seconds, Text, Whole
    from atp.suite.result import Artifact, CaseResult, Event, ToolCall, Transcript, TrialResult, Usage, Verdict

    check = ASSERTIONS.register
    agent = AGENTS.register
    model = MODELS.register
    reporter = REPORTERS.register

_PLACES = {
    "ConfigurationError": "atp.base.errors:ConfigurationError",
    "Error": "atp.base.errors:Error",
    "PluginError": "atp.base.registry:PluginError",
    "Amount": "atp.suite.record:Amount",
    "Count": "atp.suite.record:Count",
    "Fraction": "atp.suite.record:Fraction",
    "Json": "atp.suite.record:Json",
    "JsonObject": "atp.suite.record:JsonObject",
    "Names": "atp.suite.record:Names",
    "Record": "atp.suite.record:Record",
    "Regex": "atp.suite.record:Regex",
    "Seconds": "atp.suite.record:Seconds",
    "Text": "atp.suite.record:Text",
    "Whole": "atp.suite.record:Whole",
    "Assertion": "atp.suite.assertion:Assertion",
    "Decider": "atp.suite.assertion:Decider",
    "Need": "atp.suite.assertion:Need",
    "Evidence": "atp.checks.evidence:Evidence",
    "Subject": "atp.checks.evidence:Subject",
    "Workspace": "atp.checks.evidence:Workspace",
    "failed": "atp.checks.verdicts:failed",
    "passed": "atp.checks.verdicts:passed",
    "unjudged": "atp.checks.verdicts:unjudged",
    "Artifact": "atp.suite.result:Artifact",
    "CaseResult": "atp.suite.result:CaseResult",
    "Event": "atp.suite.result:Event",
    "ToolCall": "atp.suite.result:ToolCall",
    "Transcript": "atp.suite.result:Transcript",
    "TrialResult": "atp.suite.result:TrialResult",
    "Usage": "atp.suite.result:Usage",
    "Verdict": "atp.suite.result:Verdict",
    "Agent": "atp.suite.agent:Agent",
    "AgentConfig": "atp.suite.agent:AgentConfig",
    "Adapter": "atp.agents.adapter:Adapter",
    "AdapterContext": "atp.agents.adapter:AdapterContext",
    "AgentError": "atp.agents.adapter:AgentError",
    "AgentTimeout": "atp.agents.adapter:AgentTimeout",
    "Capabilities": "atp.suite.capabilities:Capabilities",
    "Finding": "atp.agents.adapter:Finding",
    "Reply": "atp.agents.adapter:Reply",
    "TurnRequest": "atp.agents.adapter:TurnRequest",
    "Model": "atp.models.model:Model",
    "ModelAnswer": "atp.models.model:ModelAnswer",
    "ModelError": "atp.models.model:ModelError",
    "ModelRequest": "atp.models.model:ModelRequest",
    "Tool": "atp.models.model:Tool",
    "ToolUse": "atp.models.model:ToolUse",
    "ModelContext": "atp.models.connections:ModelContext",
    "Connector": "atp.models.connectors.connector:Connector",
    "RunInfo": "atp.journal.records:RunInfo",
    "Listener": "atp.journal.listeners:Listener",
    "RunEnd": "atp.journal.listeners:RunEnd",
    "Reporter": "atp.report.reporter:Reporter",
    "check": "atp.suite.assertion:ASSERTIONS.register",
    "agent": "atp.suite.agent:AGENTS.register",
    "model": "atp.models.connectors.registry:MODELS.register",
    "reporter": "atp.report.reporter:REPORTERS.register",
}
__all__ = [
    "Adapter",
    "AdapterContext",
    "Agent",
    "AgentConfig",
    "AgentError",
    "AgentTimeout",
    "Amount",
    "Artifact",
    "Assertion",
    "Capabilities",
    "CaseResult",
    "ConfigurationError",
    "Connector",
    "Count",
    "Decider",
    "Error",
    "Event",
    "Evidence",
    "Finding",
    "Fraction",
    "Json",
    "JsonObject",
    "Listener",
    "Model",
    "ModelAnswer",
    "ModelContext",
    "ModelError",
    "ModelRequest",
    "Names",
    "Need",
    "PluginError",
    "Record",
    "Regex",
    "Reply",
    "Reporter",
    "RunEnd",
    "RunInfo",
    "Seconds",
    "Subject",
    "Text",
    "Tool",
    "ToolCall",
    "ToolUse",
    "Transcript",
    "TrialResult",
    "TurnRequest",
    "Usage",
    "Verdict",
    "Whole",
    "Workspace",
    "agent",
    "check",
    "failed",
    "model",
    "passed",
    "reporter",
    "unjudged",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'atp.plugins' has no attribute {name!r}")
    return resolve_name(_PLACES[name])
