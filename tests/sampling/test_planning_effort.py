"""Planning is quick where constraints are many, and says what it must before the order is known."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from itertools import permutations

import pytest

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.sampling import build_plan, require
from kamino.sampling.plan.sampling_plan import StepKind
from kamino.schema import Codec, Integer, Schema

SHAPES = {
    "apart": lambda i: f"a{2 * i} -> a{2 * i + 1}",
    "chain": lambda i: f"a{i} -> a{i + 1}",
    "star": lambda i: f"a0 -> a{i + 1}",
    "pairs": lambda i: f"a{i}, a{i + 1} -> a{i + 2}",
}
# Runs on its own, so that memory is that of the plan alone: `getrusage` also counts what the parent had when it forked,
# the kernel's word on the program itself does not.
CODE = """
import re, resource, sys, time
from pathlib import Path
from kamino.constraints import Constraints
from kamino.sampling import build_plan
from kamino.schema import Codec, Integer, Schema
codec = Codec(Schema(attributes={f"a{i}": Integer(min=0, max=199) for i in range(100)}))
rules = Constraints.parse(sys.stdin.read())
begin = time.process_time()
build_plan(codec, rules)
spent, status = time.process_time() - begin, Path("/proc/self/status")
own = re.search(r"VmHWM:\\s*(\\d+) kB", status.read_text()) if status.exists() else None
print(spent, (int(own[1]) if own else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) / 1024)
"""


@pytest.mark.parametrize("shape", SHAPES)
def test_fifty_dependencies_are_planned_quickly(shape: str) -> None:
    rules = "\n".join(SHAPES[shape](i) for i in range(50))
    ran = subprocess.run([sys.executable, "-c", CODE], input=rules, capture_output=True, text=True, check=True)
    seconds, mebibytes = map(float, ran.stdout.split())
    assert seconds < 2
    assert mebibytes < 400


@pytest.mark.parametrize("length", [20, 45])
@pytest.mark.parametrize("shape", ["chain", "star", "tree", "narrowing"])
def test_long_chains_are_drawn_in_order(shape: str, length: int) -> None:
    """What is cheap at first, attributes with no rule between them, would leave others between both their sides."""
    left = {"chain": lambda i: i, "star": lambda i: 0, "tree": lambda i: i * 7 % (i + 1), "narrowing": lambda i: i}[
        shape
    ]
    most = [int(2000 * 0.9**i) + 2 if shape == "narrowing" else 199 for i in range(length + 1)]
    codec = Codec(Schema(attributes={f"a{i}": Integer(min=0, max=size) for i, size in enumerate(most)}))
    rules = Constraints.parse("\n".join(f"a{left(i)} -> a{i + 1}" for i in range(length)))
    assert all(step.kind is not StepKind.INDEXED for step in build_plan(codec, rules).steps)


def test_many_clashing_checks_are_refused_quickly() -> None:
    codec = Codec(Schema(attributes={name: Integer(min=0, max=10) for name in "abc"}))
    rules = [f"check (a != {i} or b != {i})" for i in range(11)]
    rules += [f"check (b != {i} or a = c)" for i in range(11)] + ["check (a < b)", "check (b < c)", "check (c < a)"]
    begin = time.process_time()
    with pytest.raises(SamplingError, match=r"check \(a < b\); check \(b < c\); check \(c < a\)\. Widen"):
        build_plan(codec, Constraints.parse("\n".join(rules)))
    assert time.process_time() - begin < 8


def test_open_steps_are_those_of_every_order() -> None:
    codec = Codec(Schema(attributes={name: Integer(min=0, max=3) for name in "abcd"}))
    rules = Constraints.parse("check (a < b)\ncheck (c > 0)\nsoft: b -> c\nweight 2: not (t1.a > t2.a and t1.d < t2.d)")
    required = require(codec, rules)
    known = required.open_steps()
    assert not required.asks_for_an_order
    for order in permutations("abcd"):
        for step in required.arrange(order).steps:
            own = [each for each in known if max(each.among, key=order.index) == step.attribute]
            assert set(step.named) == {c for each in own for c in each.constraints}


def test_planning_does_not_grow_with_the_rows() -> None:
    """A plan for a hundred million rows takes no more memory than one for a few."""
    codec = Codec(Schema(attributes={name: Integer(min=0, max=9) for name in ("a", "b")}))
    rules = Constraints.parse("a -> b")
    tracemalloc.start()
    try:
        plan = build_plan(codec, rules, num_rows=100_000_000)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert plan.checked_rows >= 100_000_000
