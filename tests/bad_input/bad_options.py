"""Options and values that cannot work: how they are written, and what their error says."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import loopspan
from loopspan import (
    Answer,
    Approval,
    Budget,
    Call,
    Cost,
    Decision,
    Reconciled,
    Retry,
    Toolbox,
    agent_loop,
    model_request,
    tool,
)

Made = Callable[[], Any]


class Thing:
    """A class, its instances, and a method of it."""

    def method(self) -> None:
        """Is a function."""


def function() -> None:
    """Is one."""


def generator() -> Iterator[int]:
    """Cannot be read twice."""
    yield 1


async def stream() -> AsyncIterator[int]:
    """Neither can this."""
    yield 1


LOOPS: dict[str, tuple[Made, str]] = {
    "a name that is a number": (lambda: agent_loop(5), "agent_loop(5): give the agent's name, as text"),
    "an empty name": (lambda: agent_loop(""), "agent_loop(name=''): give the agent's name, as text"),
    "no steps": (lambda: agent_loop(max_steps=0), "agent_loop(max_steps)=0: give an integer of at least 1"),
    "half a step": (lambda: agent_loop(max_steps=1.5), "agent_loop(max_steps)=1.5: give an integer"),
    "a bool for a count": (lambda: agent_loop(max_steps=True), "agent_loop(max_steps)=True: give an integer"),
    "a deadline of no time": (
        lambda: agent_loop(deadline=0),
        "agent_loop(deadline)=0: give a positive number of seconds",
    ),
    "a deadline in the past": (
        lambda: agent_loop(deadline=dt.timedelta(-1)),
        "agent_loop(deadline)=datetime.timedelta",
    ),
    "an endless deadline": (lambda: agent_loop(deadline=float("inf")), "agent_loop(deadline)=inf"),
    "a deadline that is no number": (lambda: agent_loop(deadline=float("nan")), "agent_loop(deadline)=nan"),
    "a deadline in words": (lambda: agent_loop(deadline="1 min"), "agent_loop(deadline)='1 min'"),
    "a budget that is a number": (lambda: agent_loop(budget=5), "agent_loop(budget)=5: give a loopspan.Budget"),
    "fewer retries than none": (
        lambda: agent_loop(retry_budget=-1),
        "agent_loop(retry_budget)=-1: give an integer of at least 0",
    ),
    "an outcome that is text": (
        lambda: agent_loop(outcome="success"),
        "agent_loop(outcome)='success': give a function",
    ),
    "durable in words": (lambda: agent_loop(durable="no"), "agent_loop(durable)='no': give True or False"),
    "a version that is a number": (lambda: agent_loop(version=2), "agent_loop(version)=2: give text"),
    "one live argument as text": (
        lambda: agent_loop(durable=True, live="db"),
        "agent_loop(live)='db': give a list of names",
    ),
    "an unknown on_error": (
        lambda: agent_loop(on_error="retry"),
        "agent_loop(on_error='retry'): give one of close, release",
    ),
    "live without durable": (lambda: agent_loop(live=("db",)), "need durable=True"),
    "release without durable": (lambda: agent_loop(on_error="release"), "need durable=True"),
    "control flow by a number": (
        lambda: agent_loop(control_flow=5),
        "agent_loop(control_flow)=5: give exception classes",
    ),
    "control flow by an instance": (lambda: agent_loop(control_flow=(ValueError(),)), "give exception classes"),
    "control flow by another class": (lambda: agent_loop(control_flow=(Thing,)), "give exception classes"),
    "a durable generator": (lambda: agent_loop(durable=True)(generator), "a generator cannot be durable"),
    "a durable stream": (lambda: agent_loop(durable=True)(stream), "a generator cannot be durable"),
    "a block without a name": (lambda: agent_loop().__enter__(), 'with agent_loop("name") as run'),
}

REQUESTS: dict[str, tuple[Made, str]] = {
    "a provider that is a number": (
        lambda: model_request(provider=5),
        "model_request(provider=5): give text or a function",
    ),
    "a model that is a list": (
        lambda: model_request(model=["m"]),
        "model_request(model=['m']): give text or a function",
    ),
    "a retry that is a number": (lambda: model_request(retry=3), "model_request(retry)=3: give a loopspan.Retry"),
    "a time-out of no time": (lambda: model_request(timeout=0), "model_request(timeout)=0: give a positive number"),
    "a reader that is text": (lambda: model_request(read="usage"), "model_request(read)='usage': give a function"),
    "parse errors by a number": (
        lambda: model_request(parse_errors=5),
        "model_request(parse_errors)=5: give exception classes",
    ),
    "parse errors by text": (lambda: model_request(parse_errors="ValueError"), "give exception classes"),
    "a reader of errors without errors": (lambda: model_request(read_error=print), "in parse_errors="),
    "a reader of errors that is none": (
        lambda: model_request(read_error=5, parse_errors=(ValueError,)),
        "model_request(read_error)=5: give a function",
    ),
    "step in words": (lambda: model_request(step="no"), "model_request(step)='no': give True or False"),
    "a stream that is repeated": (lambda: model_request(retry=Retry())(generator), "retry around it"),
    "an asynchronous stream that is repeated": (lambda: model_request(retry=Retry())(stream), "retry around it"),
    "a block that is repeated": (
        lambda: model_request(retry=Retry()).__enter__(),
        "a block cannot be repeated or cut; decorate",
    ),
    "a block that is cut": (
        lambda: model_request(timeout=1).__enter__(),
        "a block cannot be repeated or cut; decorate",
    ),
}

TOOLS: dict[str, tuple[Made, str]] = {
    "a name that is a number": (lambda: tool(5), "tool(5): give the tool's name, as text"),
    "an empty name": (lambda: tool(""), "tool(name=''): give the tool's name, as text"),
    "an unknown effect": (
        lambda: tool(effect="risky"),
        "tool(effect='risky'): give one of read_only, idempotent, keyed",
    ),
    "an effect that is a number": (lambda: tool(effect=5), "tool(effect=5): give one of"),
    "an unsafe effect that is repeated": (lambda: tool(effect="unsafe", retry=Retry()), "is never repeated"),
    "reconcilable by nothing": (lambda: tool(effect="reconcilable"), "needs reconcile="),
    "reconcile without an effect": (lambda: tool(reconcile=print), "is for effect='keyed' or 'reconcilable'"),
    "reconcile for another effect": (
        lambda: tool(effect="unsafe", reconcile=print),
        "is for effect='keyed' or 'reconcilable'",
    ),
    "a key's life without a key": (lambda: tool(effect="idempotent", key_ttl=60), "key_ttl= is for effect='keyed'"),
    "a key that lives no time": (lambda: tool(effect="keyed", key_ttl=0), "tool(key_ttl)=0: give a positive number"),
    "no_effect_errors without an effect": (
        lambda: tool(no_effect_errors=(ValueError,)),
        "no_effect_errors= is for effect=",
    ),
    "no_effect_errors by a number": (
        lambda: tool(effect="unsafe", no_effect_errors=5),
        "tool(no_effect_errors)=5: give exception",
    ),
    "a retry that is a number": (lambda: tool(retry=3), "tool(retry)=3: give a loopspan.Retry"),
    "an approval that is a bool": (lambda: tool(approval=True), "tool(approval)=True: give a loopspan.Approval"),
    "a permission that is text": (lambda: tool(permission="admin"), "tool(permission)='admin': give a function"),
    "a reconcile that is text": (
        lambda: tool(effect="keyed", reconcile="ask"),
        "tool(reconcile)='ask': give a function",
    ),
    "a failure that is text": (lambda: tool(failure="error"), "tool(failure)='error': give a function"),
    "a call that is a Call": (lambda: tool(call=Call("pay")), "give a function"),
    "control flow by a number": (lambda: tool(control_flow=5), "tool(control_flow)=5: give exception classes"),
    "a time-out in words": (lambda: tool(timeout="1 s"), "tool(timeout)='1 s': give a positive number"),
    "subagent in words": (lambda: tool(subagent="no"), "tool(subagent)='no': give True or False"),
    "a generator that is repeated": (lambda: tool(retry=Retry())(generator), "cannot repeat a generator"),
    "a stream that is repeated": (lambda: tool(retry=Retry())(stream), "cannot repeat a generator"),
    "two of one name": (lambda: Toolbox(function, tool(name="function")(print)), "two tools are called 'function'"),
    "an unknown on_error": (
        lambda: Toolbox(function).call("function", {}, on_error="skip"),
        "on_error='skip': give 'raise'",
    ),
    "a block without a name": (lambda: loopspan.tool_call("", {}), "tool(name=''): give the tool's name"),
    "a block whose failure is text": (
        lambda: loopspan.tool_call("pay", {}, failure="no"),
        "tool(failure)='no': give a function",
    ),
}

VALUES: dict[str, tuple[Made, str]] = {
    "no attempts": (lambda: Retry(max_attempts=0), "Retry(max_attempts)=0: give an integer of at least 1"),
    "attempts without an end": (lambda: Retry(max_attempts=None), "Retry(max_attempts=None): give an integer"),
    "a retry on nothing": (lambda: Retry(on=()), "Retry(on=()): give the exception classes"),
    "a retry on a number": (lambda: Retry(on=(429,)), "Retry(on)=(429,): give exception classes"),
    "a retry on text": (lambda: Retry(on="ValueError"), "Retry(on)='ValueError': give exception classes"),
    "a negative wait": (lambda: Retry(wait=-1), "Retry(wait)=-1: give a positive number"),
    "a wait in words": (lambda: Retry(wait="1 s"), "Retry(wait)='1 s': give a positive number"),
    "an endless wait": (lambda: Retry(wait=float("inf")), "Retry(wait)=inf"),
    "more jitter than there is": (lambda: Retry(jitter=1.5), "Retry(jitter=1.5): give a share from 0 to 1"),
    "jitter in words": (lambda: Retry(jitter="some"), "Retry(jitter='some'): give a share from 0 to 1"),
    "jitter that is no number": (lambda: Retry(jitter=float("nan")), "Retry(jitter=nan)"),
    "an approval without an end": (lambda: Approval(expires_in=None), "Approval(expires_in=None): say how long"),
    "an approval of no time": (lambda: Approval(expires_in=0), "Approval(expires_in)=0: give a positive number"),
    "one approver as text": (
        lambda: Approval(expires_in=1, approvers="bob"),
        "Approval(approvers)='bob': give a list of names",
    ),
    "an approver that is a number": (
        lambda: Approval(expires_in=1, approvers=[5]),
        "Approval(approvers)=[5]: give a list of names",
    ),
    "a policy version that is a number": (
        lambda: Approval(expires_in=1, policy_version=2),
        "Approval(policy_version)=2: give text",
    ),
    "a condition that is a bool": (lambda: Approval(expires_in=1, when=True), "Approval(when)=True: give a function"),
    "a resource that is text": (
        lambda: Approval(expires_in=1, resource="db"),
        "Approval(resource)='db': give a function",
    ),
    "a decision beforehand": (lambda: Approval(expires_in=1, decide=True), "Approval(decide)=True: give a function"),
    "a decision in words": (lambda: Decision("no"), "Decision(approved)='no': give True or False"),
    "an unknown truth": (lambda: Reconciled("maybe"), "Reconciled('maybe'): use .committed("),
    "usage as a mapping": (lambda: Answer(usage={"input_tokens": 5}), "give a loopspan.Usage: Usage.parse makes one"),
    "cost as a number": (lambda: Answer(cost=0.5), "Answer(cost=0.5): give a loopspan.Cost"),
    "tool calls as mappings": (lambda: Answer(tool_calls=[{"name": "pay"}]), "give a list of loopspan.Call"),
    "tool calls as text": (lambda: Answer(tool_calls="pay"), "Answer(tool_calls)='pay': give a list of loopspan.Call"),
    "one finish reason as text": (lambda: Answer(finish_reasons="stop"), "Answer(finish_reasons='stop'): give a list"),
    "a budget of nothing": (Budget, "Budget(): give at least one limit"),
    "a budget of no tokens": (lambda: Budget(total_tokens=0), "Budget(total_tokens=0): give an integer of at least 1"),
    "a budget of half a request": (lambda: Budget(requests=0.5), "Budget(requests=0.5): give an integer of at least 1"),
    "a bool for a limit": (lambda: Budget(input_tokens=True), "Budget(input_tokens=True): give an integer"),
    "a cost limit that is a number": (lambda: Budget(cost=5), "Budget(cost=5): give a Cost above 0"),
    "a cost limit of nothing": (lambda: Budget(cost=Cost(0)), "give a Cost above 0"),
    "a negative cost": (lambda: Cost(-1), "Cost(amount=-1): give a finite number of at least 0"),
    "a cost in words": (lambda: Cost("cheap"), "Cost(amount='cheap'): give a finite number"),
    "a cost that is no number": (lambda: Cost(float("nan")), "Cost(amount=nan)"),
    "a currency in small letters": (
        lambda: Cost(1, "usd"),
        "Cost(currency='usd'): give a code of three capital letters",
    ),
    "a cost from nowhere": (
        lambda: Cost(1, source="guess"),
        "Cost(source='guess'): give one of provider, estimated, simulated",
    ),
    "a price table that is a number": (lambda: Cost(1, table=5), "Cost(table=5): give the name and version"),
}

SETTINGS: dict[str, tuple[Made, str]] = {
    "an unknown way of events": (
        lambda: loopspan.configure(events="spans"),
        "events='spans': give one of span, log, both",
    ),
    "an unknown content": (lambda: loopspan.configure(content="some"), "content='some': give a bool or one of"),
    "prices as a mapping": (lambda: loopspan.configure(prices={}), "prices={}: give a function"),
    "strict in words": (lambda: loopspan.configure(strict="no"), "strict='no': give True or False"),
    "enabled by a number": (lambda: loopspan.configure(enabled=0), "enabled=0: give True or False"),
    "a conversation that is a number": (
        lambda: loopspan.context(conversation_id=5),
        "context(conversation_id=5): give text",
    ),
    "an empty run id": (lambda: loopspan.context(run_id=""), "context(run_id=''): give the id"),
    "an unknown parent": (
        lambda: loopspan.context(parent="sister"),
        "context(parent='sister'): give one of child, link, none",
    ),
    "attributes that are a list": (
        lambda: loopspan.context(attributes=["a"]),
        "context(attributes=['a']): give a mapping",
    ),
    "an attribute without a name": (lambda: loopspan.context(attributes={5: "a"}), "context(attributes={5: 'a'})"),
    "an attribute without a value": (
        lambda: loopspan.context(attributes={"a": None}),
        "context(attributes={'a': None})",
    ),
    "an attribute of two types": (lambda: loopspan.context(attributes={"a": [1, "b"]}), "a list of one of these"),
}

TABLE = {
    f"{of}: {case}": row
    for of, rows in {"loop": LOOPS, "request": REQUESTS, "tool": TOOLS, "value": VALUES, "setting": SETTINGS}.items()
    for case, row in rows.items()
}
