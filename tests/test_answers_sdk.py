"""The tables again, with the objects that the SDKs make of them; each is skipped where the SDK is not installed."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from typing import Any

import pytest

from answer_shapes import WHOLE, Row
from answer_streams import STREAMED
from loopspan._answers import read
from loopspan.values import Call
from test_answers import accumulate, expected, facts

OPENAI = ("openai._models", "construct_type")
ANTHROPIC = ("anthropic._models", "construct_type")
WHOLE_TYPES = {
    "openai chat": (OPENAI, "openai.types.chat", "ChatCompletion"),
    "openai responses": (OPENAI, "openai.types.responses", "Response"),
    "openai embeddings": (OPENAI, "openai.types", "CreateEmbeddingResponse"),
    "anthropic, compaction": (ANTHROPIC, "anthropic.types.beta", "BetaMessage"),
    "anthropic": (ANTHROPIC, "anthropic.types", "Message"),
    "gemini interactions": None,
    "gemini": (None, "google.genai.types", "GenerateContentResponse"),
    "mistral": (None, "mistralai.client.models", "ChatCompletionResponse"),
    "ollama generate": (None, "ollama", "GenerateResponse"),
    "ollama": (None, "ollama", "ChatResponse"),
    "litellm": (None, "litellm", "ModelResponse"),
}
CHUNK_TYPES = {
    "openai chat": (OPENAI, "openai.types.chat", "ChatCompletionChunk"),
    "azure openai": (OPENAI, "openai.types.chat", "ChatCompletionChunk"),
    "deepseek": (OPENAI, "openai.types.chat", "ChatCompletionChunk"),
    "groq": (OPENAI, "openai.types.chat", "ChatCompletionChunk"),
    "openai responses": (OPENAI, "openai.types.responses", "ResponseStreamEvent"),
    "anthropic": (ANTHROPIC, "anthropic.types", "RawMessageStreamEvent"),
    "gemini": (None, "google.genai.types", "GenerateContentResponse"),
    "mistral": (None, "mistralai.client.models", "CompletionEvent"),
    "ollama generate": (None, "ollama", "GenerateResponse"),
    "ollama": (None, "ollama", "ChatResponse"),
}


def maker(row: Row, types: dict[str, Any]) -> Any:
    """The (function, module, type) that makes an SDK's object of a row, None where no SDK does."""
    return next((types[start] for start in types if row.name.startswith(start)), None)


def load(module: str, name: str) -> Any:
    """A name of a module; the test is skipped where the module is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(module.partition(".")[0] if module != "google.genai.types" else module)
        return getattr(importlib.import_module(module), name)


def build(made_by: Any, value: dict[str, Any]) -> Any:
    """The SDK's object of a mapping."""
    function, module, name = made_by
    kind = load(module, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if function is not None:
            return load(*function)(type_=kind, value=value)
        return kind.model_validate({"created": 1, **value} if name == "ChatCompletionResponse" else value)


def plain(call: Call) -> Call:
    """A call whose arguments are a mapping where the SDK has a model."""
    dump = getattr(call.arguments, "model_dump", None)
    return call if dump is None else replace(call, arguments=dump(exclude_none=True))


def compared(found: dict[str, Any]) -> dict[str, Any]:
    """Facts with plain arguments."""
    calls = found["calls"]
    return found if calls is None else {**found, "calls": tuple(plain(call) for call in calls)}


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteLLM asks the network for its prices when it is imported, but for this."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


@pytest.mark.parametrize("row", [row for row in WHOLE if maker(row, WHOLE_TYPES)], ids=lambda row: row.name)
def test_whole(row: Row):
    answer = build(maker(row, WHOLE_TYPES), row.answer)
    if row.name == "ollama generate" and not hasattr(answer, "prompt_eval_cached_count"):
        pytest.skip("this release of the SDK drops the count of cached tokens")
    assert compared(facts(read(answer, row.provider))) == expected(row)


@pytest.mark.parametrize("row", [row for row in STREAMED if maker(row, CHUNK_TYPES)], ids=lambda row: row.name)
def test_streamed(row: Row):
    chunks = [build(maker(row, CHUNK_TYPES), chunk) for chunk in row.answer]
    assert compared(facts(accumulate(chunks, row.provider))) == expected(row)
