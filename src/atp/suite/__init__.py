"""The vocabulary: what a test file can say. It knows nothing of files, networks or models."""

from atp.base.diagnostics import Place
from atp.suite.agent import AGENTS, Agent, AgentConfig
from atp.suite.assertion import ASSERTIONS, Assertion
from atp.suite.case import Case, Checkpoint, Limits, Simulator, Task, Weights
from atp.suite.message import Message
from atp.suite.options import Options
from atp.suite.record import Record
from atp.suite.suite import Defaults, Suite

__all__ = [
    "AGENTS",
    "ASSERTIONS",
    "Agent",
    "AgentConfig",
    "Assertion",
    "Case",
    "Checkpoint",
    "Defaults",
    "Limits",
    "Message",
    "Options",
    "Place",
    "Record",
    "Simulator",
    "Suite",
    "Task",
    "Weights",
]
