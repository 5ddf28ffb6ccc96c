"""Running user code inside scopes, written once for every kind of function.

What a boundary does (open spans, run the body, repeat it, wait, close) is a *flow*: a generator that yields commands
and gets their outcomes, and does no waiting of its own. A driver performs the commands: `drive` for plain functions,
`drive_async` for coroutines, `relay` and `relay_async` for generators. An outcome is a value, never an exception that
travels through the flow, so the very object that user code raised is what its caller gets.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Any

from opentelemetry.context import Context

from loopspan import _clock
from loopspan._scopes.commands import NOTHING, Command, Flow, Invoke, Outcome, Sleep
from loopspan._scopes.context import Scope
from loopspan._scopes.streams import is_manager, is_stream, proxied
from loopspan.values import Streamed


def _advance(flow: Flow, outcome: Outcome | None) -> Command | Outcome:
    """The flow's next command, or what it ended with."""
    try:
        return flow.send(outcome)  # type: ignore[arg-type]  # None starts it
    except StopIteration as stop:
        ended: Outcome = stop.value
        return ended


def drive(flow: Flow) -> Any:
    """Run a flow to its end in this thread.

    A body that returns something to await makes the rest asynchronous, one that returns a generator makes it a
    generator: what a function is, is decided by its result as well.
    """
    step = _advance(flow, None)
    while not isinstance(step, Outcome):
        outcome = _perform(step)
        if outcome.error is None and isinstance(step, Invoke) and step.body:
            adopted = _adopted(flow, step, outcome.value)
            if adopted is not None:
                return adopted
        step = _advance(flow, outcome)
    return step.unwrap()


def _adopted(flow: Flow, command: Invoke, value: Any) -> Any:
    """What to hand out in place of a value that is not the result yet; None for an ordinary value."""
    if value is None or isinstance(value, str | int | dict | list):
        return None
    if inspect.isgenerator(value):
        return relay(flow, command, value)
    if inspect.isawaitable(value):
        return _continued(flow, command, value)
    return _adopted_late(flow, command, value)


def _adopted_late(flow: Flow, command: Invoke, value: Any) -> Any:
    """`_adopted` for what was awaited already."""
    if inspect.isgenerator(value):
        return relay(flow, command, value)
    if inspect.isasyncgen(value):
        return relay_async(flow, command, value)
    return _streamed(flow, command, value)


def _streamed(flow: Flow, command: Invoke, value: Any) -> Any:
    """A proxy of an SDK's stream or stream manager, where the scope reads such; None for other values."""
    wanted = command.scope.reads
    if not ((wanted and is_stream(value)) or (wanted == "managers" and is_manager(value))):
        return None

    def finish(snapshot: Any, error: BaseException | None) -> None:
        _concluded(flow, Outcome(snapshot, error))

    return proxied(value, command.scope, finish)


def _perform(command: Command) -> Outcome:
    if isinstance(command, Sleep):
        _clock.clock().sleep(command.seconds)
        return NOTHING
    saved = command.scope.enter()
    try:
        if command.timeout is not None:
            return _in_thread(command)
        return Outcome(command.call())
    except BaseException as error:
        return Outcome(error=error)
    finally:
        command.scope.leave(saved)


def _in_thread(command: Invoke) -> Outcome:
    """The only way to stop waiting for a plain function: its thread is left behind, its late result unread."""
    done: list[Outcome] = []

    def body() -> None:
        try:
            done.append(Outcome(command.call()))
        except BaseException as error:
            done.append(Outcome(error=error))

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(body,), name="loopspan-timeout", daemon=True)
    thread.start()
    thread.join(command.timeout)
    return done[0] if done else Outcome(error=command.late())


async def drive_async(flow: Flow) -> Any:
    """Run a flow to its end in this task."""
    return await _driven(flow, _advance(flow, None))


async def _continued(flow: Flow, command: Invoke, awaitable: Any) -> Any:
    """The rest of a flow whose body turned out to be something to await."""
    return await _driven(flow, command._replace(function=lambda: awaitable, args=(), kwargs={}))


async def _driven(flow: Flow, step: Command | Outcome) -> Any:
    while not isinstance(step, Outcome):
        outcome = await _perform_async(step)
        if outcome.error is None and isinstance(step, Invoke) and step.body:
            adopted = _adopted_late(flow, step, outcome.value)
            if adopted is not None:
                return adopted
        step = _advance(flow, outcome)
    return step.unwrap()


async def _perform_async(command: Command) -> Outcome:
    try:
        if isinstance(command, Sleep):
            await _clock.clock().asleep(command.seconds)
            return NOTHING
        return Outcome(await _invoke_async(command))
    except BaseException as error:
        return Outcome(error=error)


async def _invoke_async(command: Invoke) -> Any:
    saved = command.scope.enter()
    try:
        if command.timeout is None:
            return await _awaited(command)
        import asyncio

        limit = asyncio.timeout(command.timeout)
        try:
            async with limit:
                return await _awaited(command)
        except TimeoutError as error:
            if limit.expired():
                raise command.late() from error
            raise
    finally:
        command.scope.leave(saved)


async def _awaited(command: Invoke) -> Any:
    value = command.call()
    return await value if inspect.isawaitable(value) else value


def start_generator(flow: Flow) -> Generator[Any, Any, Any]:
    """A generator function's body: nothing happens before the first `next`."""
    reached = _to_body(flow)
    if isinstance(reached, Outcome):
        return reached.unwrap()
    return (yield from relay(flow, reached, reached.call()))


def _to_body(flow: Flow) -> Invoke | Outcome:
    """Perform what comes before the body; the flow's outcome where the body is never reached."""
    step = _advance(flow, None)
    while not isinstance(step, Outcome) and not (isinstance(step, Invoke) and step.body):
        step = _advance(flow, _perform(step))
    return step


def relay(flow: Flow, command: Invoke, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Hand a generator's items through.

    The scope is entered anew for each of them, so nothing is attached across a `yield`, whoever finalises the
    generator.
    """
    scope = command.scope
    step: Callable[..., Any] = inner.send
    argument: Any = None
    inside: Context | None = None
    outcome: Outcome
    ignored: BaseException | None = None
    while True:
        visit = scope.resume(inside)
        try:
            item = step(argument)
        except StopIteration as stop:
            outcome = Outcome(stop.value)
            break
        except BaseException as error:
            outcome = Outcome(error=error)
            break
        finally:
            inside = scope.pause(visit)
        scope.chunk(item)
        try:
            argument, step = (yield item), inner.send
        except GeneratorExit as error:
            outcome, ignored = _closed(scope, inside, inner, error)
            break
        except BaseException as error:
            argument, step = error, inner.throw
    return _ended(flow, outcome, ignored)


Closed = tuple[Outcome, BaseException | None]
"""How closing a generator ended, and the error of one that yields instead: its reader has stopped it all the same."""


def _closed(scope: Scope, inside: Context | None, inner: Any, error: GeneratorExit) -> Closed:
    visit = scope.resume(inside)
    try:
        inner.close()
    except BaseException as other:
        return (Outcome(error=other), None) if inner.gi_frame is None else (Outcome(error=error), other)
    finally:
        scope.pause(visit)
    return Outcome(error=error), None


def _ended(flow: Flow, outcome: Outcome, ignored: BaseException | None) -> Any:
    """What the reader of a generator gets at its end."""
    ended = _concluded(flow, outcome)
    if ignored is not None:
        raise ignored
    return ended.unwrap()


def _concluded(flow: Flow, outcome: Outcome) -> Outcome:
    """A stream is read once: whatever the flow would do next, it has ended."""
    ended = _advance(flow, outcome._replace(value=Streamed((), outcome.value)))
    if not isinstance(ended, Outcome):
        flow.close()
        return outcome
    return ended._replace(value=ended.value.value) if isinstance(ended.value, Streamed) else ended


Begun = tuple[Flow, Invoke, AsyncGenerator[Any, Any]]


def relaying(begin: Callable[..., Awaitable[Begun]]) -> Callable[..., AsyncGenerator[Any, Any]]:
    """An asynchronous generator function that relays what `begin` starts, at the first item that is asked for."""

    async def relayed(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        flow, command, inner = await begin(*args, **kwargs)
        scope = command.scope
        step: Callable[..., Coroutine[Any, Any, Any]] = inner.asend
        argument: Any = None
        inside: Context | None = None
        outcome: Outcome
        ignored: BaseException | None = None
        while True:
            visit = scope.resume(inside)
            try:
                item = await step(argument)
            except StopAsyncIteration:
                outcome = NOTHING
                break
            except BaseException as error:
                outcome = Outcome(error=error)
                break
            finally:
                inside = scope.pause(visit)
            scope.chunk(item)
            try:
                argument, step = (yield item), inner.asend
            except GeneratorExit as error:
                outcome, ignored = await _closed_async(scope, inside, inner, error)
                break
            except BaseException as error:
                argument, step = error, inner.athrow
        _ended(flow, outcome, ignored)

    return relayed


async def begin_flow(flow: Flow) -> Begun:
    """Perform what comes before the body, then call the asynchronous generator function."""
    step = _advance(flow, None)
    while not isinstance(step, Outcome) and not (isinstance(step, Invoke) and step.body):
        step = _advance(flow, await _perform_async(step))
    if isinstance(step, Outcome):
        step.unwrap()
        raise RuntimeError("a flow ended before its body without an error")
    return flow, step, step.call()


async def _begun(flow: Flow, command: Invoke, inner: AsyncGenerator[Any, Any]) -> Begun:
    return flow, command, inner


relay_async = relaying(_begun)


async def _closed_async(
    scope: Scope, inside: Context | None, inner: AsyncGenerator[Any, Any], error: GeneratorExit
) -> Closed:
    visit = scope.resume(inside)
    try:
        await inner.aclose()
    except BaseException as other:
        ended = getattr(inner, "ag_frame", None) is None
        return (Outcome(error=other), None) if ended else (Outcome(error=error), other)
    finally:
        scope.pause(visit)
    return Outcome(error=error), None
