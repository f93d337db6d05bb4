"""Reads cases from YAML tests and JSONL records, which have the same keys and the same rules."""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

from atp.base.diagnostics import Diagnostics, Place
from atp.base.near import near_miss
from atp.loader.error_messages import unknown_key
from atp.loader.source import LoadContext
from atp.loader.validate import DataPath, Locator, RenamedKeys, validate
from atp.suite.case import Case, Checkpoint
from atp.suite.gates import Gate, gate_mistake, no_rate
from atp.suite.suite import Defaults

COMMON_KEYS = frozenset(
    {"tags", "skip", "runs", "timeout", "user", "team", "locale", "metadata", "options", "constraints", "scoring"}
    | {"min_score", "pass_rate", "confidence", "margin", "workspace", "before_hook", "after_hook"}
)
"""The keys of a case in every dialect."""
_SHARED_KEYS = COMMON_KEYS | {
    *("id", "name", "description", "task", "input", "messages", "assertions", "assert", "expectations", "expected"),
    *("simulator", "checkpoints", "max_turns"),
}
YAML_KEYS = _SHARED_KEYS | {"agents"}
"""The keys of a YAML test."""
JSONL_KEYS = _SHARED_KEYS | {"before", "after"}
"""The keys of a JSONL record; `before` and `after` are Yao's names of the hooks."""
NEVER_NULL = frozenset(
    {"id", "task", "input", "messages", "expected", "assertions", "assert", "expectations", "checkpoints"}
)
"""Keys of a case in which a null is not the same as no key: an empty list of checks is more likely a slip."""
GATE_KEYS = ("pass_rate", "confidence", "margin")
"""The keys of a case, of a suite's defaults and of a frontmatter that make a gate."""
_NO_SIMULATOR_HINT = "add `{}`, or give --simulator: an agent's id, or scripts.file.function, which needs no key"
_OTHER_SPELLING = {"assert": {"assertions"}, "assertions": {"assert"}, "input": {"messages"}, "messages": {"input"}}


@dataclass(slots=True)
class CaseReader:
    """Validates the cases of one file, one after the other."""

    notes: Diagnostics
    context: LoadContext
    keys: frozenset[str]
    needs_name: bool = False
    defaults: Defaults = field(default_factory=Defaults)
    agent_names: frozenset[str] | None = None
    _limits: dict[str, Any] = field(init=False)
    _fills: dict[str, Any] = field(init=False)
    _ids: dict[str, int] = field(init=False, default_factory=dict)
    """The line of the first case with an id, by the id."""

    def __post_init__(self) -> None:
        given = self.defaults.given()
        self._limits = self.defaults.limits()
        same = ("scoring", "min_score", "pass_rate", "confidence", "margin")
        fills = {**{name: name for name in same}, "runs_per_test": "runs"}
        self._fills = {fills[name]: value for name, value in given.items() if name in fills}

    def read(self, raw: Any, index: int, locate: Locator, base: DataPath = ()) -> Case | None:
        """Validate `raw`, which stands at `base` in its file, as a case. None if nothing of it can be used."""
        if not isinstance(raw, dict):
            self.notes.error(
                "wrong-type", "a case must be a mapping", locate.value(base), "write it with keys and values"
            )
            return None
        written: dict[str, str] = {}
        if None in raw.values():
            raw = {key: value for key, value in raw.items() if value is not None or not self._may_be_null(key)}
        unknown = self._check_keys(raw, locate, base, written)
        if written:
            locate = RenamedKeys(locate, base, written)
        raw_case = {**raw, "index": index, "place": locate.value(base)}
        if "name" not in raw and isinstance(raw.get("id"), str):
            raw_case["name"] = raw["id"]
        case = validate(Case, raw_case, self.notes, locate, base, spare={"id": f"case-{index}"})
        if case is None:
            return None
        self._apply_defaults(case, locate, base)
        _check_content(case, raw, self, unknown, locate, base)
        return case

    def _may_be_null(self, key: str) -> bool:
        """Whether a null means that the key is not given."""
        return key in self.keys - NEVER_NULL and not (key == "name" and self.needs_name)

    def _check_keys(self, raw: dict[str, Any], locate: Locator, base: DataPath, written: dict[str, str]) -> bool:
        """Note unknown keys; True if there are any. Misspelled keys are renamed in `raw`, and entered in `written`."""
        unknown = set() if raw.keys() <= self.keys else raw.keys() - self.keys
        for key in unknown:
            mistake = unknown_key(key, self.keys)
            self.notes.error(mistake.code, mistake.message, locate.key((*base, key)), mistake.hint)
            value = raw.pop(key)
            if (
                mistake.meant
                and mistake.meant not in raw
                and not raw.keys() & _OTHER_SPELLING.get(mistake.meant, set())
            ):
                written[mistake.meant] = key
                raw[mistake.meant] = value  # read on as it was meant, to find what else is wrong
        if self.needs_name and "name" not in raw:
            self.notes.error("missing-key", "`name` is missing", locate.key((*base, "name")), "add `name`")
        elif self.needs_name and raw["name"] == "":
            self.notes.error("empty", "`name` is empty", locate.value((*base, "name")), "say what the test is about")
        if "input" in raw and "messages" in raw:
            at = locate.key((*base, "input"))
            self.notes.warn("input-ignored", "`messages` overrides `input`", at, "remove one of them")
            del raw["input"]
        return bool(unknown)

    def _apply_defaults(self, case: Case, locate: Locator, base: DataPath) -> None:
        """Fill in what the case leaves open from the suite's defaults, and check that the id is unique."""
        if case.timeout is not None:
            if "timeout_seconds" in case.limits.given():
                at = locate.key((*base, "timeout"))
                self.notes.error(
                    "given-twice", "`timeout` and `constraints.timeout_seconds` mean the same", at, "give one"
                )
            case.limits.timeout_seconds = case.timeout
            case.timeout = None
        case.limits.fill(self._limits)
        for name, value in self._fills.items():
            if getattr(case, name) is None:
                setattr(case, name, value)
        if not case.name:
            case.name = case.id
        if case.task is not None:
            case.chains = [[case.task.description]]
        known = len(self._ids)
        first = self._ids.setdefault(case.id, case.place.line)
        if len(self._ids) == known:
            at = locate.value((*base, "id"))
            hint = f"give it another: the case on line {first} has it, too"
            self.notes.error("duplicate-id", f"the id `{case.id}` is already taken", at, hint)


def _check_content(
    case: Case, raw: dict[str, Any], reader: CaseReader, unknown: bool, locate: Locator, base: DataPath
) -> None:
    """Check the rules between keys. With an `unknown` key no prompt is missed, because that key may be meant for it."""
    notes = reader.notes
    says = [key for key in ("task", "input", "messages") if key in raw]
    dialogue = "simulator" in raw or "checkpoints" in raw
    if not says and not dialogue and not unknown:
        at = locate.value(base)
        notes.error("nothing-said", "the case says nothing to the agent", at, "add `input`, `messages` or `task`")
    if "task" in raw and len(says) > 1:
        at = locate.key((*base, says[1]))
        notes.error("two-inputs", f"`task` and `{says[1]}` both say something to the agent", at, "give one of them")
    if dialogue:
        _check_dialogue(case, raw, reader, locate, base)
    elif "max_turns" in raw:
        at = locate.key((*base, "max_turns"))
        notes.warn("max-turns-unused", "`max_turns` has no meaning without a simulator", at, "remove it")
    if case.messages and case.messages[-1].role == "assistant":
        at = locate.value((*base, "messages" if "messages" in raw else "input"))
        notes.warn("nothing-to-answer", "the last message is the assistant's own", at, "end with the user's message")
    check_gate(case, raw, reader.context, notes, lambda key: locate.key((*base, key)))
    for key in says:
        _check_said(key, raw[key], notes, locate, (*base, key))
    for number, name in enumerate(case.agents or ()):
        if reader.agent_names is not None and name not in reader.agent_names:
            at = locate.value((*base, "agents", number))
            notes.error("unknown-agent-name", f"the suite has no agent `{name}`", at, _meant(name, reader.agent_names))


def check_gate(
    given: Case | Defaults,
    keys: Container[str],
    context: LoadContext,
    notes: Diagnostics,
    place: Callable[[str], Place],
) -> None:
    """Check the gate of a case or of a suite's defaults, if one of its own `keys` is a part of the gate."""
    own = [key for key in GATE_KEYS if key in keys]
    if not own:
        return
    mistake = gate_mistake(Gate(given.pass_rate, given.confidence, given.margin or 0.0))
    if isinstance(given, Case) and given.pass_rate is None and not context.pass_rate and own != ["pass_rate"]:
        mistake = no_rate(own[-1])
    if mistake is not None:
        at = place(mistake.key if mistake.key in own else own[0])
        notes.error(mistake.code, mistake.message, at, mistake.hint)


def check_default_gate(
    defaults: Defaults, cases: Iterable[Case], context: LoadContext, notes: Diagnostics, place: Callable[[str], Place]
) -> None:
    """Check the gate that a file gives for all of its cases: some case must have a pass rate."""
    given = defaults.given()
    check_gate(defaults, given, context, notes, place)
    unused = next((key for key in ("confidence", "margin") if key in given), None)
    if unused and not context.pass_rate and all(case.pass_rate is None for case in cases):
        mistake = no_rate(unused)
        notes.error(mistake.code, mistake.message, place(unused), mistake.hint)


def _check_said(key: str, value: Any, notes: Diagnostics, locate: Locator, path: DataPath) -> None:
    """Check that the prompt is not empty."""
    if key == "task":
        words = value.get("description") if isinstance(value, dict) else None
        if isinstance(words, str) and words.isspace():
            at = locate.value((*path, "description"))
            notes.error("empty", "`description` is empty", at, "say what the agent should do")
    elif value == [] or (isinstance(value, str) and not value.strip()):
        notes.error("empty", f"`{key}` is empty", locate.value(path), "add the user's message")
    elif isinstance(value, dict):
        _check_message(value, notes, locate, path)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            _check_message(one, notes, locate, (*path, number))


def _check_message(message: Any, notes: Diagnostics, locate: Locator, path: DataPath) -> None:
    """Check that a message has content, which only an assistant's tool calls can do without."""
    if not isinstance(message, dict) or "role" not in message:
        return
    content, role = message.get("content"), message["role"]
    if role == "assistant" and message.get("tool_calls"):
        return
    if "content" not in message:
        notes.error("missing-key", "`content` is missing", locate.key((*path, "content")), "add `content`")
    elif content is None or content == [] or (role == "user" and isinstance(content, str) and not content.strip()):
        at = locate.value((*path, "content"))
        notes.error("empty", "`content` is empty", at, "say something, or leave the message out")


def _check_dialogue(case: Case, raw: dict[str, Any], reader: CaseReader, locate: Locator, base: DataPath) -> None:
    notes = reader.notes
    if not reader.context.simulator:
        if "simulator" not in raw:
            at = locate.key((*base, "checkpoints"))
            notes.error("no-simulator", "checkpoints need a simulator", at, _NO_SIMULATOR_HINT.format("simulator"))
        elif isinstance(raw["simulator"], dict) and "use" not in raw["simulator"]:
            at = locate.key((*base, "simulator"))
            notes.error("no-simulator", "the simulator has no `use`", at, _NO_SIMULATOR_HINT.format("use"))
    if not raw.get("checkpoints"):
        at = locate.key((*base, "checkpoints" if "checkpoints" in raw else "simulator"))
        notes.error("no-checkpoints", "a simulated dialogue needs at least one checkpoint", at, "add `checkpoints`")
    _check_order(case.checkpoints, notes, locate, (*base, "checkpoints"))


def _check_order(checkpoints: list[Checkpoint], notes: Diagnostics, locate: Locator, base: DataPath) -> None:
    """Check that checkpoint ids are unique, and that `after` names other checkpoints without a cycle."""
    seen: dict[str, Checkpoint] = {}
    for number, one in enumerate(checkpoints):
        if one.id in seen:
            at = locate.value((*base, number, "id"))
            notes.error("duplicate-checkpoint", f"the checkpoint `{one.id}` is there twice", at, "give it another id")
        seen.setdefault(one.id, one)
    for number, one in enumerate(checkpoints):
        for place, before in enumerate(one.after):
            if before not in seen:
                at = locate.value((*base, number, "after", place))
                notes.error("unknown-checkpoint", f"there is no checkpoint `{before}`", at, _meant(before, seen))
    reported: set[str] = set()
    for number, one in enumerate(checkpoints):
        if one.id not in reported and (cycle := _cycle(one.id, seen)):
            at = locate.value((*base, number, "after"))
            message = f"the checkpoint waits for itself: {' → '.join(cycle)}"
            notes.error("checkpoint-cycle", message, at, "remove one `after`")
            reported.update(cycle)


def _cycle(start: str, checkpoints: dict[str, Checkpoint]) -> list[str]:
    """The checkpoints from `start` through `after` back to `start`; empty if there is no cycle."""
    trail: list[str] = []
    todo: list[tuple[str, int]] = [(start, 0)]
    seen: set[str] = set()
    while todo:
        name, depth = todo.pop()
        trail = [*trail[:depth], name]
        for before in checkpoints[name].after if name in checkpoints else ():
            if before == start:
                return [*trail, start]
            if before not in seen:
                seen.add(before)
                todo.append((before, depth + 1))
    return []


def _meant(word: str, known: Iterable[str]) -> str:
    known = list(known)
    meant = near_miss(word, known)
    return f"did you mean `{meant}`?" if meant else f"known: {', '.join(sorted(known)) or 'none'}"
