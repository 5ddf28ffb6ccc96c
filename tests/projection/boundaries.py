"""The boundaries of a played program: its model requests and its tool calls, each in every form that there is."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

import loopspan
from loopspan import Approval, Cost, Decision, NoEffect, Reconciled, Retry, Usage
from projection.programs import Ask, Loop, Use


class Broken(Exception):
    """What the model, the tools and the loops of the programs raise."""


class Unread(Exception):
    """An answer came, and the client cannot parse it."""


class Arguments(BaseModel, extra="forbid"):
    """What the tools take."""

    value: int = 0


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits to its end, in this thread."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise AssertionError("something waits where nothing may wait")


async def settled(value: Any) -> Any:
    """The value, or what it gives when it is awaited."""
    return await value if inspect.isawaitable(value) else value


@dataclass
class Frame:
    """What one running loop keeps; `tasks` where it is asynchronous."""

    loop: Loop
    tasks: bool
    messages: list[Any] = field(default_factory=lambda: [{"role": "user", "content": "go"}])
    totals: Usage = field(default_factory=lambda: Usage(input_tokens=0, output_tokens=0))


class Asking:
    """Plays one model request."""

    def __init__(self, player: Any, ask: Ask, frame: Frame) -> None:
        self.player = player
        self.asked = ask
        self.frame = frame
        self.failures = ask.failures

    async def ask(self) -> Any:
        """The request in its form."""
        ask, messages = self.asked, self.frame.messages
        if ask.form == "block":
            return self.block()
        decorate = loopspan.model_request(**self.options())
        if ask.form in ("stream", "cut"):
            items = decorate(self.stream)(messages)
            return items.close() if ask.form == "cut" and next(items) else list(items)
        return await settled(decorate(self.answer_later if self.frame.tasks else self.answer)(messages))

    def options(self) -> dict[str, Any]:
        """What the decorator is told."""
        ask = self.asked
        retry = (
            None if ask.attempts is None or ask.form != "decorated" else Retry(max_attempts=ask.attempts, on=(Broken,))
        )
        return {
            "provider": "openai",
            "model": ask.model,
            "read": lambda value: ask.answer,
            "parse_errors": (Unread,),
            "read_error": lambda error: ask.answer,
            "step": not ask.side,
            "retry": retry,
        }

    def answer(self, messages: Any) -> Any:
        """The client's call."""
        self.player.touch(self.frame)
        if self.failures:
            self.failures -= 1
            raise Broken("the model is overloaded")
        if self.asked.misread:
            raise Unread("no JSON")
        return {"text": "an answer"}

    async def answer_later(self, messages: Any) -> Any:
        """The asynchronous client's call."""
        await asyncio.sleep(0)
        return self.answer(messages)

    def stream(self, messages: Any) -> Iterator[Any]:
        """The client's call that streams."""
        yield {"text": "an "}
        yield self.answer(messages)

    def block(self) -> Any:
        """The request as a block, its usage told by the answer or by cumulative counters."""
        options = {key: value for key, value in self.options().items() if key not in ("read", "retry")}
        with loopspan.model_request(**options) as request:
            if self.asked.totals:
                frame = self.frame
                frame.totals = frame.totals + (self.asked.answer.usage or Usage())
                request.observe_totals(frame.totals, cost=Cost(frame.totals.input_tokens or 0, source="simulated"))
            else:
                request.answer(self.asked.answer)
            return self.answer(self.frame.messages)


class Using:
    """Plays one tool call."""

    def __init__(self, player: Any, use: Use, frame: Frame) -> None:
        self.player = player
        self.used = use
        self.frame = frame
        self.entries = iter(use.entries)
        self.truths = iter(use.truths)
        self.inside = use.inside
        self.resource = 0
        self.late = frame.tasks and "late" in use.entries and use.form != "block"

    async def use(self) -> Any:
        """The call in its form; afterwards the loop reuses its own objects, and feeds the result back or not."""
        use, arguments = self.used, self.used.arguments
        arguments = dict(arguments) if isinstance(arguments, dict) else arguments
        try:
            if use.form == "block":
                return await self.block(arguments)
            result = await settled(self.called(arguments))
        except TypeError as error:
            if arguments != {"surplus": 1}:
                raise
            raise Broken("what Python says of arguments that do not fit is a failure like any other here") from error
        finally:
            if isinstance(arguments, dict):
                arguments["reused"] = True
        if use.fed_back:
            self.frame.messages.append({"role": "tool", "tool_call_id": use.call_id, "content": str(result)})
        return result

    def called(self, arguments: Any) -> Any:
        """A direct call, or one through a Toolbox."""
        use, tool = self.used, loopspan.tool(self.used.name, **self.options())(self.body())
        if use.form == "direct":
            return tool(**arguments if isinstance(arguments, dict) else {})
        toolbox = loopspan.Toolbox(tool)
        name = "missing" if use.form == "unknown" else use.name
        on_error = "return" if use.form == "returned" else "raise"
        call = toolbox.acall if self.frame.tasks else toolbox.call
        return call(name, arguments, call_id=use.call_id, on_error=on_error)

    def body(self) -> Any:
        """The tool's function."""

        def plain(value: int = 0) -> Any:
            return finished(self.enter(value))

        async def coroutine(value: int = 0) -> Any:
            await asyncio.sleep(0)
            return await self.enter(value)

        return coroutine if self.frame.tasks else plain

    async def enter(self, value: int) -> Any:
        """One entry into the tool's body."""
        self.player.touch(self.frame)
        parts, self.inside = self.inside, ()
        for part in parts:
            await self.player.act(part, self.frame)
        what = next(self.entries, "ok")
        if what == "late" and self.late:
            await asyncio.Event().wait()
        if what in ("fail", "late"):
            raise Broken("the tool's own")
        if what == "no_effect":
            raise NoEffect("refused before anything was sent")
        if what == "cancel":
            raise asyncio.CancelledError if self.frame.tasks else KeyboardInterrupt
        if what == "accepted":
            loopspan.current_tool_call().accepted("job-1")
        return {"error": "quota"} if what == "data" else {"value": (value, float("nan"))}

    def options(self) -> dict[str, Any]:
        """What the decorator is told."""
        use = self.used
        return {
            "effect": use.effect,
            "retry": None if use.attempts is None else Retry(max_attempts=use.attempts, on=(Broken, TimeoutError)),
            "timeout": 0.005 if self.late else None,
            "permission": None if use.permission is None else lambda arguments: use.permission,
            "reconcile": self.reconcile if use.effect in ("keyed", "reconcilable") else None,
            "failure": failure,
            "approval": None if use.decision is None else self.approval(use.decision),
        }

    def reconcile(self, intent: loopspan.Intent) -> Reconciled[Any]:
        """What the remote side says."""
        truth = next(self.truths, "unknown")
        if truth == "committed":
            return Reconciled.committed({"value": intent.attempt})
        return Reconciled.not_committed() if truth == "not_committed" else Reconciled.unknown()

    def approval(self, decision: str) -> Approval:
        """Who is asked, and what they say."""
        return Approval(
            expires_in=60,
            when=(lambda arguments: False) if decision == "unneeded" else None,
            approvers=["alice"] if decision in ("someone", "stranger") else None,
            resource=self.moving if decision == "moved" else None,
            policy_version="p1",
            decide=self.decide_later if self.frame.tasks else self.decide,
        )

    def moving(self, arguments: Any) -> int:
        """A fact that changes once while somebody decides."""
        self.resource += 1
        return min(self.resource, 2)

    def decide(self, request: loopspan.ApprovalRequest) -> Any:
        """The person."""
        decision = self.used.decision
        if decision == "interrupted":
            raise asyncio.CancelledError if self.frame.tasks else KeyboardInterrupt
        if decision == "expired":
            self.player.clock.advance(100)
        if decision in ("someone", "stranger"):
            return Decision(True, by="alice" if decision == "someone" else "mallory", comment="fine with me")
        return decision != "no"

    async def decide_later(self, request: loopspan.ApprovalRequest) -> Any:
        """The person, asked asynchronously."""
        await asyncio.sleep(0)
        return self.decide(request)

    async def block(self, arguments: Any) -> Any:
        """The call as a block, repeated inside of it as often as it may be."""
        use = self.used
        result: Any = None
        with loopspan.tool_call(use.name, arguments, call_id=use.call_id, failure=failure) as call:
            value = call.validate(Arguments).value
            for left in reversed(range(use.attempts or 1)):
                try:
                    with call.attempt():
                        result = await self.enter(value)
                    break
                except Broken:
                    if not left:
                        raise
            call.result(result)
        if use.fed_back:
            loopspan.current_step().backfill(call, "the result, as text")
        return result


def failure(result: Any) -> str | None:
    """Failures that come back as a result."""
    return result.get("error") if isinstance(result, dict) else None
