"""Random programs: what a loop, its model and its tools do, as data that Hypothesis builds and shrinks.

`playing` executes them through the public API.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from loopspan import Answer, Budget, Call, Cost, StopReason, Usage

NAMES = ("read", "write", "search")
MODELS = (None, "model-1", "model-1-2026")


@dataclass(frozen=True)
class Ask:
    """A model request: how often it fails, what it then answers, and in which form it is recorded."""

    answer: Answer
    failures: int = 0
    attempts: int | None = None
    misread: bool = False
    side: bool = False
    totals: bool = False
    form: str = "decorated"
    model: str | None = "model-1"


@dataclass(frozen=True)
class Use:
    """A tool call: in which form, with which options, and what each entry into its body does."""

    name: str
    form: str
    arguments: Any
    call_id: str | None
    entries: tuple[str, ...] = ()
    attempts: int | None = None
    effect: str | None = None
    truths: tuple[str, ...] = ()
    permission: Any = None
    decision: str | None = None
    fed_back: bool = True
    inside: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Together:
    """Things that happen at the same time: only calls, or only requests."""

    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Misread:
    """The loop says that it could not parse the last answer."""

    raw: Any


@dataclass(frozen=True)
class Wait:
    """The loop asks a person itself."""

    approved: bool | None


@dataclass(frozen=True)
class Loop:
    """A run: its form, its limits, what it does, how it ends, and whether it survives the failures of what it does.

    `options` are those of the loop, `facts` those of the context around it.
    """

    form: str
    actions: tuple[Any, ...]
    ending: Any
    forgiving: bool = True
    explicit: bool = False
    touching: bool = False
    options: Any = ()
    facts: Any = ()


# --- values

TEXTS = st.sampled_from(["", "a", "déjà", "line\nbreak", "lone \ud800 surrogate"])
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2), max_leaves=4
) | st.tuples(SCALARS, SCALARS)
COUNTS = st.none() | st.integers(0, 1000)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
COSTS = st.builds(
    Cost,
    st.decimals(Decimal("0.000001"), 3, places=6),
    st.sampled_from(["USD", "EUR"]),
    st.sampled_from(["provider", "estimated", "simulated"]),
    st.none() | st.just("table-1"),
)
IDS = st.none() | st.sampled_from(["call_0", "call_1"])
GOOD = st.fixed_dictionaries({}, optional={"value": st.integers(0, 3)})
BAD = st.sampled_from(["{", "[1]", '"\ud800"', '{"value": "many"}', {"surplus": 1}, {"value": None}])
ANSWERS = st.builds(
    Answer,
    usage=st.none() | USAGES,
    cost=st.none() | COSTS,
    model=st.sampled_from(["", *MODELS]),
    finish_reasons=st.sampled_from([(), ("stop",), ("stop", "tool_calls"), ("length",), ("refusal",)]),
    tool_calls=st.none() | st.lists(st.builds(Call, st.sampled_from(NAMES), GOOD, IDS), max_size=2).map(tuple),
    id=st.none() | st.just("answer-1"),
    content=VALUES,
    reasoning=st.none() | TEXTS,
    prompt_token_ids=st.none() | st.just((1, 2)),
    logprobs=st.none() | st.just((-0.5,)),
)

# --- actions

ASKS = st.builds(
    Ask,
    ANSWERS,
    failures=st.integers(0, 2),
    attempts=st.none() | st.integers(1, 3),
    misread=st.booleans(),
    side=st.sampled_from([False, False, False, True]),
    totals=st.booleans(),
    form=st.sampled_from(["decorated", "decorated", "block", "stream", "cut"]),
    model=st.sampled_from(MODELS),
)
ENTRIES = st.lists(
    st.sampled_from(["ok", "fail", "fail", "data", "accepted", "no_effect", "late", "cancel"]), max_size=3
).map(tuple)
TRUTHS = st.lists(st.sampled_from(["committed", "not_committed", "unknown"]), min_size=1, max_size=3).map(tuple)
DECISIONS = ["yes", "no", "someone", "stranger", "expired", "interrupted", "moved", "unneeded"]
PLAIN_USES = st.builds(
    Use,
    st.sampled_from(NAMES),
    st.sampled_from(["toolbox", "toolbox", "returned", "direct", "block", "unknown"]),
    GOOD | GOOD | BAD,
    IDS,
    entries=ENTRIES,
    attempts=st.none() | st.integers(1, 3),
    effect=st.sampled_from([None, None, "read_only", "idempotent"]),
    permission=st.sampled_from([None, None, True, "not on Fridays"]),
    fed_back=st.booleans(),
)
GUARDED_USES = st.builds(replace, PLAIN_USES, decision=st.sampled_from(DECISIONS))
EFFECT_USES = st.builds(
    replace, PLAIN_USES, effect=st.sampled_from(["keyed", "reconcilable", "unsafe"]), truths=TRUTHS
).map(lambda use: replace(use, attempts=None) if use.effect == "unsafe" else use)
USES = PLAIN_USES | GUARDED_USES | EFFECT_USES
MISREADS = st.builds(Misread, VALUES)
WAITS = st.builds(Wait, st.sampled_from([None, True, False]))

# --- loops

SYNC_FORMS = ["plain", "block", "generator", "closed"]
ASYNC_FORMS = ["coroutine", "async_generator"]
STOPS = st.tuples(
    st.just("stop"),
    st.sampled_from([reason for reason in StopReason if reason is not StopReason.SUCCESS]),
    st.none() | st.just("detail"),
)
ENDINGS = st.sampled_from(["return", "return", "return", "raise", "cancel", "exit", "interrupt", "flow"]) | STOPS
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "max_steps": st.integers(1, 3),
        "deadline": st.sampled_from([0.05, 5.0]),
        "retry_budget": st.integers(0, 2),
        "budget": st.builds(Budget, requests=st.integers(1, 3)),
        "version": st.just("v1"),
        "outcome": st.sampled_from([lambda end: "success", lambda end: ("tool_failed", "as data")]),
    },
)

FACTS = st.fixed_dictionaries(
    {},
    optional={
        "conversation_id": st.just("c-1") | TEXTS,
        "subject": st.just("alice"),
        "goal": TEXTS,
        "attributes": st.sampled_from([{"tenant": "t1", "tags": ("a", "b")}, {"share": 0.5, "large": 2**70}]),
    },
)


def calling(loops: Any) -> st.SearchStrategy[Use]:
    """Calls of tools whose body runs sub-agents, requests and other calls."""
    return st.builds(replace, USES, inside=st.lists(loops | ASKS | USES, min_size=1, max_size=2).map(tuple))


def actions(loops: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    """What a loop does, one after the other."""
    calls = USES if loops is None else USES | calling(loops)
    together = st.builds(Together, st.lists(calls, min_size=2, max_size=3).map(tuple)) | st.builds(
        Together, st.lists(ASKS, min_size=2, max_size=3).map(tuple)
    )
    one = ASKS | calls | MISREADS | WAITS | together
    return st.lists(one if loops is None else one | loops, max_size=4).map(tuple)


def loops(forms: list[str], inner: Any) -> st.SearchStrategy[Loop]:
    """Loops in one of these forms, with `inner` loops as sub-agents."""
    return st.builds(
        Loop,
        st.sampled_from(forms),
        actions(inner),
        ENDINGS,
        forgiving=st.sampled_from([True, True, False]),
        explicit=st.booleans(),
        touching=st.booleans(),
        options=st.just({}) | OPTIONS,
        facts=st.just({}) | FACTS,
    )


_SYNC = loops(SYNC_FORMS, loops(SYNC_FORMS, None))
_ASYNC = loops(ASYNC_FORMS, loops(SYNC_FORMS + ASYNC_FORMS, None))
PROGRAMS = _SYNC | _ASYNC
