"""What a model is told of the tools, in each provider's dialect."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from loopspan.errors import ConfigurationError
from loopspan.toolbox.arguments import Signature


def _openai_chat(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _openai_responses(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": parameters, "strict": False}


def _anthropic(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description, "input_schema": parameters}


DIALECTS: dict[str, Callable[[str, str, dict[str, Any]], dict[str, Any]]] = {
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
}


def schema(dialect: str, name: str, function: Callable[..., Any], signature: Signature) -> dict[str, Any]:
    """One tool's description: its name, its docstring, and the JSON schema of its arguments.

    Raises ConfigurationError for a dialect that is not known.
    """
    if dialect not in DIALECTS:
        raise ConfigurationError(f"schemas({dialect!r}): give one of {', '.join(DIALECTS)}")
    parameters = _plain(signature.model().model_json_schema(by_alias=True))
    return DIALECTS[dialect](name, inspect.getdoc(function) or "", parameters)


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """Without the titles that pydantic makes up."""
    properties = {
        name: {key: value for key, value in field.items() if key != "title"}
        for name, field in parameters.get("properties", {}).items()
    }
    return {**{key: value for key, value in parameters.items() if key != "title"}, "properties": properties}
