"""The one point that everything passes on its way out: safe values, digests, and the content policy."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping
from enum import Enum, StrEnum
from typing import Any

from loopspan import _guard, semconv

NAME_LIMIT = 256
"""Characters of a name or an id that came from outside."""


class Content(StrEnum):
    """Where content (messages, arguments, results) may go; the values of the standard variable."""

    NO_CONTENT = "NO_CONTENT"
    SPAN_ONLY = "SPAN_ONLY"
    EVENT_ONLY = "EVENT_ONLY"
    SPAN_AND_EVENT = "SPAN_AND_EVENT"

    def __init__(self, value: str) -> None:
        self.on_spans = value in ("SPAN_ONLY", "SPAN_AND_EVENT")
        """Whether span attributes may carry content."""
        self.in_events = value != "NO_CONTENT"
        """Whether RunLog events may carry content."""


_OLD_VALUES = {"true": Content.SPAN_AND_EVENT, "false": Content.NO_CONTENT, "": Content.NO_CONTENT}


def content_from_environment() -> Content:
    """What the standard variable says, in any case; anything that it cannot say is NO_CONTENT, with a warning."""
    value = os.environ.get(semconv.CONTENT_VARIABLE, "").strip()
    if value.upper() in Content.__members__:
        return Content[value.upper()]
    if value.lower() not in _OLD_VALUES:
        _guard.log.warning("%s=%r is none of %s: no content", semconv.CONTENT_VARIABLE, value, ", ".join(Content))
    return _OLD_VALUES.get(value.lower(), Content.NO_CONTENT)


def clean(text: str) -> str:
    """`text` with lone surrogates replaced, so that it can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode()


def name(value: Any) -> str | None:
    """A name or id from outside as text of at most NAME_LIMIT characters; None where it is no text or number."""
    if isinstance(value, str):
        text = value if type(value) is str else str.__str__(value)
        return text[:NAME_LIMIT] if text.isascii() else clean(text[:NAME_LIMIT])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(value)[:NAME_LIMIT]
    return None


_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=lambda o: plain(o)
).encode
_encode_sorted = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True, default=lambda o: plain(o)
).encode


def to_json(value: Any, *, sort: bool = False) -> str:
    """`value` as strict JSON text; never raises, never consumes an iterator, never calls a user's `repr`."""
    try:
        return clean((_encode_sorted if sort else _encode)(value))
    except Exception:
        return clean(_encode(_made_plain(value, 0)))


def plain(value: Any) -> Any:
    """One level of `value` as JSON types; what has no form becomes the name of its type."""
    try:
        if isinstance(value, Enum):
            return value.value
        if hasattr(value, "model_dump") and not isinstance(value, type):
            return value.model_dump(mode="json")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if isinstance(value, set | frozenset | tuple):
            return list(value)
        if hasattr(value, "isoformat"):
            return value.isoformat()
        if type(value).__module__ in ("decimal", "uuid", "pathlib", "fractions"):
            return str(value)
    except Exception:
        return f"<{type(value).__name__}: unreadable>"
    if isinstance(value, bytes | bytearray):
        return f"<{len(value)} bytes>"
    return f"<{type(value).__name__}>"


def _made_plain(value: Any, depth: int) -> Any:
    """The slow way, for values that the encoder refuses: NaN, cycles, keys that are not text, raising properties."""
    if depth > 20:
        return "<too deep>"
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, dict):
        return {_key(k): _made_plain(v, depth + 1) for k, v in list(value.items())}
    if isinstance(value, list | tuple):
        return [_made_plain(item, depth + 1) for item in value]
    return _made_plain(plain(value), depth + 1)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else str(plain(key)) if not isinstance(key, int | float) else str(key)


def digest(text: str) -> str:
    """The first 32 hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def error_type(error: BaseException) -> str:
    """The error's class as OpenTelemetry writes it: qualified, but for builtins."""
    cls = type(error)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"[:NAME_LIMIT]


def misfit(problems: Iterable[Mapping[str, Any]], names: Collection[str]) -> str:
    """What pydantic finds wrong, without what was written: `names` are those of the schema, other keys are the input's.

    A message that quotes the input (of a validator of the user's own, of a union's tag) gives way to the error's type.
    """
    return "; ".join(f"{_where(problem['loc'], names)}: {_complaint(problem)}" for problem in problems)


def _where(location: Iterable[Any], names: Collection[str]) -> str:
    parts = [str(part) if isinstance(part, int) or part in names else "?" for part in location]
    return ".".join(parts) or "arguments"


def _complaint(problem: Mapping[str, Any]) -> str:
    quotes = "url" not in problem or not {"error", "tag"}.isdisjoint(problem.get("ctx", ()))
    return str(problem["type"] if quotes else problem["msg"])


def message(error: BaseException, policy: Content) -> str | None:
    """The error's text, which is content: None where the policy keeps it in."""
    if not policy.in_events:
        return None
    try:
        return clean(str(error))[:4096]
    except Exception:
        return f"<{type(error).__name__}: unreadable>"
