"""One run that has a span of every kind: the same each time under a ticking clock and counting ids."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import loopspan
from loopspan import Answer, Approval, Call, Cost, Decision, Reconciled, Retry, Usage


class Flaky(Exception):
    """Worth another attempt."""


class Script:
    """What happens at each entry: an exception is raised, anything else is returned."""

    def __init__(self, *entries: Any) -> None:
        self.entries = list(entries)

    def __call__(self) -> Any:
        """The next entry."""
        entry = self.entries.pop(0)
        if isinstance(entry, BaseException):
            raise entry
        return entry


FIRST = Answer(
    usage=Usage(input_tokens=100, output_tokens=20, cache_read_tokens=60, reasoning_tokens=5),
    cost=Cost(Decimal("0.25"), "USD", "provider"),
    model="gpt-4.1-2026",
    id="r1",
    finish_reasons=("tool_calls",),
    tool_calls=(Call("read", {"path": "a"}, "call_1"), Call("pay", {"amount": 5}, "call_2")),
    content=[{"text": "let me look"}],
)
LAST = Answer(usage=Usage(input_tokens=150, output_tokens=30), finish_reasons=("stop",), tool_calls=())


def everything() -> str:
    """Two steps: a repeated request, a repeated call, an approved payment of unknown effect, a sub-agent, a refusal."""
    answers = Script(Flaky("the model is overloaded"), FIRST, LAST)
    readings = Script(Flaky("the disk is busy"), "green")
    payments = Script(ConnectionError("the line broke"))

    @loopspan.model_request(
        provider="openai", model="gpt-4.1", retry=Retry(max_attempts=2, on=(Flaky,), wait=2), read=lambda said: said
    )
    def ask(messages: list[Any]) -> Any:
        return answers()

    @loopspan.tool(effect="read_only", retry=Retry(max_attempts=2, on=(Flaky,), wait=1))
    def read(path: str) -> Any:
        return readings()

    @loopspan.tool(
        effect="reconcilable",
        reconcile=lambda intent: Reconciled.committed("paid"),
        approval=Approval(expires_in=60, decide=lambda request: Decision(True, by="alice"), policy_version="p7"),
        permission=lambda arguments: True,
    )
    def pay(amount: int) -> Any:
        return payments()

    @loopspan.tool(subagent=True)
    def delegate() -> Any:
        return helper()

    @loopspan.agent_loop("helper")
    def helper() -> str:
        return "helped"

    tools = loopspan.Toolbox(read, pay, delegate)

    @loopspan.agent_loop("builder", version="v3", max_steps=4)
    def build() -> str:
        messages: list[Any] = [{"role": "user", "content": "build it"}]
        ask(messages)
        for name, arguments, call_id in (("read", {"path": "a"}, "call_1"), ("pay", {"amount": 5}, "call_2")):
            result = tools.call(name, arguments, call_id=call_id)
            messages.append({"role": "tool", "tool_call_id": call_id, "content": result})
        delegate()
        tools.call("remove", "{}", call_id="call_3", on_error="return")
        with loopspan.human_wait("review") as wait:
            wait.decided(False, by="bob")
        ask(messages)
        return "built"

    return build()
