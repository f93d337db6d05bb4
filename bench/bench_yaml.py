"""A YAML suite of 1,000 tests: loading it against PyYAML's own C loader on the same text."""

import sys
import time
from collections.abc import Callable

import yaml

from atp.loader import TestLoader

TESTS = 1_000
ROUNDS = 15
MOST = 1.5
"""How much longer than `yaml.load(text, CSafeLoader)` loading may take."""

HEAD = """\
test_suite: "benchmark"
version: "1.0"
description: "A suite as people write them"

defaults:
  runs_per_test: 3
  timeout_seconds: 300
  constraints:
    max_steps: 20
    allowed_tools: ["file_read", "file_write", "web_search"]
  scoring:
    quality_weight: 0.4
    completeness_weight: 0.3
    efficiency_weight: 0.2
    cost_weight: 0.1

agents:
  - name: "data-agent"
    type: "http"
    config:
      endpoint: "${API_ENDPOINT:http://localhost:8000}"
      timeout: 60

tests:
"""
TEST = """\
  - id: "test-{number:04}"
    name: "Merge of files, number {number}"
    tags: ["regression", "data", "part-{part}"]
    description: "Merges two files and writes a third"
    task:
      description: >
        Merge data from users-{number}.csv and transactions.csv based on user_id.
        Create merged_data.csv with all columns.
      input_data:
        users_file: "fixtures/users-{number}.csv"
        limit: {number}
        strict: true
      expected_artifacts:
        - "merged_data.csv"
    constraints:
      max_steps: 15
      timeout_seconds: 120
    assertions:
      - type: "artifact_exists"
        config:
          path: "merged_data.csv"
      - type: "behavior"
        config:
          check: "no_repeated_actions"
      - type: "llm_eval"
        config:
          criteria: "completeness"
          threshold: 0.85

"""


def best(work: Callable[[], object]) -> float:
    """The shortest time of several rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> int:
    text = HEAD + "".join(TEST.format(number=number, part=number % 10) for number in range(TESTS))
    loader = TestLoader(env={})
    assert len(loader.load_string(text, "yaml").tests) == TESTS
    plain = best(lambda: yaml.load(text, yaml.CSafeLoader))
    ours = best(lambda: loader.load_string(text, "yaml"))
    ratio = ours / plain
    print(f"{TESTS:,} YAML tests, {len(text) / 1e6:.2f} MB, best of {ROUNDS}")
    print(f"  yaml.load(text, CSafeLoader)  {plain * 1000:7.1f} ms")
    print(f"  TestLoader().load_string      {ours * 1000:7.1f} ms")
    print(f"  ratio                         {ratio:7.2f}     (limit {MOST})")
    return int(ratio > MOST)


if __name__ == "__main__":
    sys.exit(main())
