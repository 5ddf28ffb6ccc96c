"""What a model wrote, as arguments of a function: JSON, an object, and the types of the signature (pydantic)."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any

from loopspan import _redact
from loopspan.errors import ValidationRejected

_KINDS = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Signature:
    """The arguments that a tool takes; the pydantic model is built when it is first needed."""

    __slots__ = ("_aliases", "_function", "_model", "_name")

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name
        self._model: Any = None
        self._aliases: list[tuple[str, str]] = []

    def parse(self, arguments: Any) -> dict[str, Any]:
        """Keyword arguments for the function.

        Raises ValidationRejected with `reason` where what was written is no JSON, no object, or does not fit.
        """
        loaded = self._loaded(arguments)
        from pydantic import ValidationError

        try:
            model = self.model().model_validate(loaded)
        except ValidationError as error:
            problems = error.errors(include_input=False)
            reason = "; ".join(f"{_place(p['loc'])}: {p['msg']}" for p in problems)
            raise self._rejected(reason, _redact.misfit(problems, [alias for _, alias in self._aliases])) from error
        values, present = model.__dict__, model.model_fields_set
        given = {alias: values[name] for name, alias in self._aliases if name in present}
        extra = model.model_extra
        return {**given, **extra} if extra else given

    def _loaded(self, arguments: Any) -> Mapping[str, Any]:
        if isinstance(arguments, str | bytes | bytearray):
            try:
                arguments = json.loads(arguments or "{}")
            except (ValueError, RecursionError) as error:
                raise self._rejected(f"not JSON: {error}") from error
        if not isinstance(arguments, Mapping):
            raise self._rejected(f"not a JSON object but {type(arguments).__name__}")
        return arguments

    def _rejected(self, reason: str, safe: str | None = None) -> ValidationRejected:
        names = ", ".join(inspect.signature(self._function).parameters) or "no arguments"
        text = f"tool {self._name!r}: {reason}; it takes {names}. Its body was not entered"
        return ValidationRejected(text, reason=reason, safe=safe)

    def model(self) -> Any:
        """The pydantic model of the signature."""
        if self._model is None:
            self._model = _build(self._function, self._name)
            self._aliases = [(name, field.alias or name) for name, field in self._model.model_fields.items()]
        return self._model


def _place(location: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in location) or "arguments"


def _build(function: Callable[..., Any], name: str) -> Any:
    """A field for each parameter; names that pydantic keeps for itself are reached by an alias."""
    from pydantic import ConfigDict, Field, create_model

    parameters = inspect.signature(function).parameters.values()
    types = _types(function)
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
    fields: dict[str, Any] = {}
    for number, parameter in enumerate(p for p in parameters if p.kind not in _KINDS):
        default = ... if parameter.default is parameter.empty else parameter.default
        annotation = types.get(parameter.name, Any)
        fields[f"field_{number}"] = (annotation, Field(default, alias=parameter.name, validate_default=False))
    config = ConfigDict(extra="allow" if open_ended else "forbid", arbitrary_types_allowed=True)
    return create_model(name, __config__=config, **fields)


def _types(function: Callable[..., Any]) -> dict[str, Any]:
    """The parameters' types; those that cannot be resolved are not checked."""
    import typing

    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}
