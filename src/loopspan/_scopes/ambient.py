"""Ambient facts for the runs inside: who, what for, which conversation; carried in OpenTelemetry's Context."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, cast

from opentelemetry.context import Context, attach, create_key, get_current, get_value, set_value
from opentelemetry.trace import Link, get_current_span, set_span_in_context

from loopspan import _redact
from loopspan.errors import ConfigurationError
from loopspan.telemetry._spans import Place

_KEY = create_key("loopspan-ambient")
PARENTS = ("child", "link", "none")


class Ambient:
    """What `context(...)` says; a context inside another one inherits what it does not say itself."""

    def __init__(self, outer: Ambient | None, **said: Any) -> None:
        self.facts: dict[str, Any] = {**(outer.facts if outer else {}), **said}
        self.attributes: dict[str, Any] = {**(outer.attributes if outer else {}), **(said.get("attributes") or {})}
        self.run_id: str | None = said.get("run_id")
        self._wanted = self.run_id

    def fact(self, name: str) -> Any:
        """A fact by its name, None where nobody said it."""
        return self.facts.get(name)

    def take_run_id(self) -> str | None:
        """The id that was asked for, once."""
        wanted, self._wanted = self._wanted, None
        return wanted


def ambient() -> Ambient | None:
    """What is said around the running code."""
    return cast("Ambient | None", get_value(_KEY))


def parent_place() -> tuple[Place, list[Link]]:
    """Where a new root hangs, and what it links to: by default the current span is its parent."""
    facts = ambient()
    wanted = facts.fact("parent") if facts else None
    if isinstance(wanted, Context):
        return Place(get_current_span(wanted), wanted), []
    current = get_current()
    span = get_current_span(current)
    if wanted in (None, "child"):
        return Place(span, current), []
    context = set_span_in_context(get_current_span(Context()), current)
    linked = wanted == "link" and span.get_span_context().is_valid
    return Place(get_current_span(context), context), [Link(span.get_span_context())] if linked else []


class context:  # noqa: N801  # used as a function: `with loopspan.context(...)`
    """Say what is true for the runs inside: `with loopspan.context(conversation_id=…, subject=…, goal=…):`.

    `conversation_id` goes to every span (`gen_ai.conversation.id`); `subject` (who it is done for) and `goal` (a
    summary) to the run; `attributes` (text, numbers, booleans, or lists of one of these) to every span at its start,
    never to metrics. `run_id` is the id of the next run inside; `run_id` of the context manager is the id of the run
    that was started. `parent`: "child" (default), "link" or "none" says what the current span is to a new run, or an
    OpenTelemetry Context.

    Raises ConfigurationError for values of other types.
    """

    def __init__(
        self,
        *,
        conversation_id: str | None = None,
        subject: str | None = None,
        goal: str | None = None,
        attributes: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        parent: str | Context | None = None,
    ) -> None:
        said = {
            "conversation_id": conversation_id,
            "subject": subject,
            "goal": goal,
            "run_id": run_id,
            "parent": parent,
        }
        for name in ("conversation_id", "subject", "goal", "run_id"):
            if said[name] is not None and not isinstance(said[name], str):
                raise ConfigurationError(f"context({name}={said[name]!r}): give text")
        if run_id == "":
            raise ConfigurationError("context(run_id=''): give the id that the next run shall have, or leave it out")
        if parent is not None and not isinstance(parent, Context) and parent not in PARENTS:
            raise ConfigurationError(f"context(parent={parent!r}): give one of {', '.join(PARENTS)}, or a Context")
        self._said = {name: value for name, value in said.items() if value is not None}
        self._attributes = _checked(attributes)
        self._ambient: Ambient | None = None

    @property
    def run_id(self) -> str | None:
        """The id of the last run that was started inside."""
        return None if self._ambient is None else self._ambient.run_id

    def __enter__(self) -> Self:
        self._saved = get_current()
        self._ambient = Ambient(ambient(), **self._said, attributes=self._attributes)
        attach(set_value(_KEY, self._ambient))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if get_value(_KEY) is self._ambient:
            attach(self._saved)


def _checked(attributes: Mapping[str, Any] | None) -> dict[str, Any]:
    if attributes is None:
        return {}
    if not isinstance(attributes, Mapping):
        raise ConfigurationError(f"context(attributes={attributes!r}): give a mapping from text to values")
    for key, value in attributes.items():
        parts = value if isinstance(value, list | tuple) else (value,)
        fits = all(isinstance(part, str | int | float | bool) for part in parts) and len(set(map(type, parts))) <= 1
        if not isinstance(key, str) or not fits:
            raise ConfigurationError(
                f"context(attributes={{{key!r}: {value!r}}}): give text, a number, a bool, or a list of one of these"
            )
    return {_redact.clean(key): attribute_value(value) for key, value in attributes.items()}


def attribute_value(value: Any) -> Any:
    """`value` in a form that every exporter can encode."""
    if isinstance(value, str):
        return _redact.clean(value)
    if isinstance(value, list | tuple):
        return tuple(attribute_value(part) for part in value)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return str(value)
    return value
