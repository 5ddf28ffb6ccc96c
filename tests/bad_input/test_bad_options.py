"""Options and values that cannot work: refused where they are written, with the value, the rule and the way out."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable
from typing import Any

import pytest
from bad_options import TABLE, Made, Thing, function

from loopspan import (
    Approval,
    ConfigurationError,
    LoopspanError,
    Retry,
    Toolbox,
    WrongKind,
    agent_loop,
    model_request,
    tool,
)

# a decorator on something that is not a function

DECORATORS: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "agent_loop": lambda: agent_loop,
    "agent_loop()": agent_loop,
    "agent_loop(name)": lambda: agent_loop("name"),
    "model_request": lambda: model_request,
    "model_request()": model_request,
    "tool": lambda: tool,
    "tool()": tool,
    "tool(name)": lambda: tool("name"),
}
NO_FUNCTIONS = {
    "a class": Thing,
    "an instance": Thing(),
    "an integer": 5,
    "a list": [function],
    "a property": property(Thing.method),
    "an event": Retry(),
}


@pytest.mark.parametrize("value", NO_FUNCTIONS.values(), ids=NO_FUNCTIONS.keys())
@pytest.mark.parametrize("decorator", DECORATORS.values(), ids=DECORATORS.keys())
def test_a_decorator_on_something_that_is_not_a_function(decorator: Callable[[], Any], value: Any):
    """Refused at decoration; without parentheses it can only be taken for a name, and the error says so."""
    with pytest.raises((WrongKind, ConfigurationError)) as error:
        decorator()(value)
    named = f"class {value.__name__}" if isinstance(value, type) else repr(value)
    assert named[:60] in str(error.value)
    assert "function" in str(error.value)


@pytest.mark.parametrize("decorator", [agent_loop(), model_request(), tool()])
def test_a_decorator_on_none(decorator: Any):
    with pytest.raises(WrongKind, match=r"\(None\): decorate a function or method"):
        decorator(None)


@pytest.mark.parametrize("value", [5, Thing()], ids=["an integer", "an instance"])
def test_a_toolbox_of_something_that_is_not_a_function(value: Any):
    with pytest.raises(ConfigurationError, match="give functions"):
        Toolbox(value)


def test_a_toolbox_of_a_class():
    with pytest.raises(WrongKind, match="class Thing"):
        Toolbox(Thing)


@pytest.mark.parametrize("value", [function, Thing().method, functools.partial(function), lambda: None, print])
@pytest.mark.parametrize("decorator", [agent_loop, agent_loop("name"), model_request, model_request(), tool, tool()])
def test_functions_of_every_sort_are_taken(decorator: Any, value: Any):
    """The other side of the rule."""
    assert callable(decorator(value))


# options that cannot work


@pytest.mark.parametrize(("made", "text"), TABLE.values(), ids=TABLE.keys())
def test_what_cannot_work_is_refused_where_it_is_written(made: Made, text: str):
    """A ConfigurationError of our tree, a ValueError too, with option, value and what to give instead."""
    with pytest.raises(ConfigurationError) as error:
        made()
    assert isinstance(error.value, LoopspanError)
    assert isinstance(error.value, ValueError)
    assert text in str(error.value)


@pytest.mark.parametrize("value", ["maybe", "2", ""], ids=repr)
@pytest.mark.parametrize("variable", ["LOOPSPAN_STRICT", "LOOPSPAN_ENABLED"])
def test_a_variable_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, variable: str, value: str):
    """Told when the settings are first needed, by the variable's name."""
    from loopspan import _config

    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"{variable}={value!r}: give true or false"):
        _config.from_environment()


TAKEN: dict[str, Made] = {
    "one exception class": lambda: Retry(on=ConnectionError),
    "a list of exception classes": lambda: Retry(on=[ConnectionError, TimeoutError]),
    "no wait": lambda: Retry(wait=dt.timedelta(0)),
    "a timedelta": lambda: tool(timeout=dt.timedelta(minutes=1)),
    "no retries at all": lambda: agent_loop(retry_budget=0),
    "control flow by one class": lambda: agent_loop(control_flow=StopIteration),
    "a keyed effect that is reconciled": lambda: tool(effect="keyed", reconcile=print, key_ttl=60),
    "a durable loop with live arguments": lambda: agent_loop(durable=True, live=["db"], on_error="release"),
    "nobody but these": lambda: Approval(expires_in=1, approvers=["bob"]),
}


@pytest.mark.parametrize("made", TAKEN.values(), ids=TAKEN.keys())
def test_what_can_work_is_taken(made: Made):
    """The other side of the rules."""
    assert made() is not None


@pytest.mark.parametrize("on", [ConnectionError, [ConnectionError], (ConnectionError,)], ids=str)
def test_exception_classes_are_kept_as_a_tuple(on: Any):
    """In whichever form they were given, `isinstance` takes them."""
    assert Retry(on=on).on == (ConnectionError,)
