"""How providers report tokens: one row for each form, and the rules that bring them to one meaning.

In the result, input includes cache reads and cache writes, and output includes reasoning; what is unknown is None.

`genai_prices.extract_usage` (0.2.3) does a related job and finds the same counts for OpenAI, Azure, Groq, OpenRouter,
Anthropic, Bedrock Converse and Gemini. What keeps it from being used here: it must be told the provider and the API; it
raises for a model that it does not know, and for Ollama and LiteLLM; it takes dicts with the names of the wire, no
object of an SDK; a main field that is missing, None, negative or of another type makes it raise, and the fields that
were right are lost; a fraction or 2**70 is a count; a part that was not reported reads as 0. It does not read
DeepSeek's `prompt_cache_hit_tokens` or Moonshot's `cached_tokens`, adds xAI's reasoning to the output also where the
answer's total says that it is in there, and leaves out what Anthropic's compaction used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

LIMIT: Final = 2**53
"""From here on a count is no count of tokens: JSON readers that use doubles cannot tell neighbours apart any more."""
_ABSENT: Final[Any] = object()
Get = Callable[..., Any]
"""Takes the name of a field, and what to answer where there is none (None)."""


def peek(source: Any, name: str, default: Any = None) -> Any:
    """Field `name` of a mapping, or attribute of an object; `default` where there is none or reading it raises."""
    try:
        if type(source) is dict:
            return source.get(name, default)
        if isinstance(source, Mapping):
            return source[name]
        return getattr(source, name, default)
    except Exception:  # noqa: BLE001  # an answer's own code: a property that raises counts as absent
        return default


def getter(source: Any) -> Get:
    """`peek` for several fields of one thing."""
    return source.get if type(source) is dict else partial(peek, source)


def count(value: Any) -> int | None:
    """`value` as a number of tokens; None unless it is a whole number from 0 to below 2**53, and not a bool."""
    if type(value) is not int:
        value = _whole_number(value)
    return value if value is not None and 0 <= value < LIMIT else None


def _whole_number(value: Any) -> int | None:
    """`value` as an int where it is another kind of whole number: a float without a fraction, an enum of ints."""
    kind = type(value)
    if kind is float:
        return int(value) if value.is_integer() else None
    return int.__index__(value) if issubclass(kind, int) and kind is not bool else None


_Paths = tuple[tuple[str, str], ...]


def _paths(*dotted: str) -> _Paths:
    """(holder, name) for each of `holder.name`; the holder of a field of the usage object itself is empty."""
    return tuple((holder, name) for holder, _, name in (path.rpartition(".") for path in dotted))


@dataclass(frozen=True, slots=True)
class _Shape:
    """The field names of one form. Of several paths, the first that holds a count is taken.

    Cache is part of the input, and reasoning of the output, unless they stand beside them; `more_input` always does. A
    shape with `marks` is meant only where one of those fields has a value.
    """

    input: str
    output: str
    total: str = "total_tokens"
    reads: _Paths = ()
    writes: _Paths = ()
    reasoning: _Paths = ()
    more_input: _Paths = ()
    marks: tuple[str, ...] = ()
    cache_beside: bool = False
    reasoning_beside: bool = False


_SHAPES: Final = (
    # OpenAI chat completions and what follows them: Azure, Mistral, DeepSeek, xAI, Groq, Moonshot, OpenRouter, LiteLLM
    _Shape(
        "prompt_tokens",
        "completion_tokens",
        reads=_paths(
            "prompt_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
            "cached_tokens",
            "cache_read_input_tokens",
            "cached_prompt_text_tokens",
        ),
        writes=_paths(
            "prompt_tokens_details.cache_write_tokens",
            "prompt_tokens_details.cache_creation_tokens",
            "cache_creation_input_tokens",
        ),
        reasoning=_paths("completion_tokens_details.reasoning_tokens", "reasoning_tokens"),
    ),
    # OpenAI responses and realtime, Perplexity responses; LangChain's UsageMetadata
    _Shape(
        "input_tokens",
        "output_tokens",
        reads=_paths(
            "input_tokens_details.cached_tokens",
            "input_token_details.cache_read",
            "input_token_details.cached_tokens",
            "input_tokens_details.cache_read_input_tokens",
        ),
        writes=_paths("input_tokens_details.cache_write_tokens", "input_token_details.cache_creation"),
        reasoning=_paths("output_tokens_details.reasoning_tokens", "output_token_details.reasoning"),
        marks=("input_tokens_details", "input_token_details"),
    ),
    # Anthropic messages: the total input is input_tokens, cache_creation_input_tokens and cache_read_input_tokens
    _Shape(
        "input_tokens",
        "output_tokens",
        reads=_paths("cache_read_input_tokens"),
        writes=_paths("cache_creation_input_tokens"),
        reasoning=_paths("output_tokens_details.thinking_tokens"),
        marks=("cache_read_input_tokens", "cache_creation_input_tokens"),
        cache_beside=True,
    ),
    # The names of Usage itself, and of pydantic-ai; Anthropic where no cache was used
    _Shape(
        "input_tokens",
        "output_tokens",
        reads=_paths("cache_read_tokens"),
        writes=_paths("cache_write_tokens"),
        reasoning=_paths(
            "reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
            "output_tokens_details.thinking_tokens",
            "details.reasoning_tokens",
        ),
    ),
    # Gemini on the wire, in google-genai, and its interactions
    _Shape(
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        reads=_paths("cachedContentTokenCount"),
        reasoning=_paths("thoughtsTokenCount"),
        more_input=_paths("toolUsePromptTokenCount"),
        reasoning_beside=True,
    ),
    _Shape(
        "prompt_token_count",
        "candidates_token_count",
        "total_token_count",
        reads=_paths("cached_content_token_count"),
        reasoning=_paths("thoughts_token_count"),
        more_input=_paths("tool_use_prompt_token_count"),
        reasoning_beside=True,
    ),
    _Shape(
        "total_input_tokens",
        "total_output_tokens",
        reads=_paths("total_cached_tokens"),
        reasoning=_paths("total_thought_tokens"),
        more_input=_paths("total_tool_use_tokens"),
        reasoning_beside=True,
    ),
    # Bedrock Converse; DeepSeek Harness
    _Shape(
        "inputTokens",
        "outputTokens",
        "totalTokens",
        reads=_paths("cacheReadInputTokens", "cacheReadTokens"),
        writes=_paths("cacheWriteInputTokens", "cacheWriteTokens"),
        reasoning=_paths("reasoningTokens"),
        cache_beside=True,
    ),
    # Ollama: the whole answer
    _Shape("prompt_eval_count", "eval_count", "", reads=_paths("prompt_eval_cached_count")),
)

_REASONING_BESIDE: Final = frozenset({"xai", "perplexity"})
"""Providers that count reasoning beside the output of OpenAI's form. An answer's own total is the better evidence."""


Counts = tuple[int | None, int | None, int | None, int | None, int | None, bool]
"""Input, output, cache reads, cache writes, reasoning, incomplete: the fields of a Usage in their order."""
_UNKNOWN: Final[Counts] = (None, None, None, None, None, True)


_Report = tuple[int | None, int | None, int | None, int | None, int | None, int | None, int | None]
"""As reported: input, output, cache reads, cache writes, reasoning, more input; what the total has beyond all of these.

None is not given; -1, of a part, is given and no count. The last is None where the total or one of the rest is unknown.
"""


def normalise(source: Any, provider: str | None) -> list[Counts]:
    """The counts of a usage object, and of what was billed beside it; empty where no field of it is known."""
    get = getter(source)
    shape = _shape_of(get)
    if shape is None:
        return []
    found = _normalised(_report(get, shape), shape, provider)
    iterations = get("iterations") if shape.input == "input_tokens" else None
    return [found] if type(iterations) is not list else [found, *_compactions(iterations)]


def _compactions(iterations: list[Any]) -> Iterator[Counts]:
    """Anthropic: a compaction's tokens "are not included in the top-level usage fields", says the SDK's BetaUsage."""
    for item in iterations:
        if peek(item, "type") == "compaction":
            get = getter(item)
            shape = _shape_of(get)
            yield _UNKNOWN if shape is None else _normalised(_report(get, shape), shape, None)


def _shape_of(get: Get) -> _Shape | None:
    """The first shape that has a count for input or output here, else the first whose names appear."""
    for shape in _SHAPES:
        if (count(get(shape.input)) is not None or count(get(shape.output)) is not None) and _marked(get, shape):
            return shape
    for shape in _SHAPES:
        named = get(shape.input, _ABSENT) is not _ABSENT or get(shape.output, _ABSENT) is not _ABSENT
        if named and _marked(get, shape):
            return shape
    return None


def _marked(get: Get, shape: _Shape) -> bool:
    return not shape.marks or any(get(mark) is not None for mark in shape.marks)


def _report(get: Get, shape: _Shape) -> _Report:
    given, made, reported = count(get(shape.input)), count(get(shape.output)), count(get(shape.total))
    more = _part(get, shape.more_input) if shape.more_input else None
    reasoning = _part(get, shape.reasoning)
    left = None if reported is None or given is None else reported - given - _positive(more)
    if made is None and get(shape.output) is None and left == (_positive(reasoning) if shape.reasoning_beside else 0):
        made = 0  # the total leaves nothing for it: embeddings have no output, and protobuf leaves zeros out
    spare = None if left is None or made is None else left - made
    return given, made, _part(get, shape.reads), _part(get, shape.writes), reasoning, more, spare


def _part(get: Get, paths: _Paths) -> int | None:
    """The first count at `paths`; None where there is nothing, -1 where there is only something else."""
    found = None
    for holder, name in paths:
        value = get(name) if not holder else None if (held := get(holder)) is None else peek(held, name)
        if value is not None:
            known = count(value)
            if known is not None:
                return known
            found = -1
    return found


def _normalised(report: _Report, shape: _Shape, provider: str | None) -> Counts:
    given, made, reads, writes, reasoning, more, _ = report
    cache, thought = _beside(report, shape, provider)
    beside_input = (more, reads, writes) if cache else (more,)
    beside_output = (reasoning,) if thought else ()
    return (
        given if given is None else given + sum(map(_positive, beside_input)),
        made if made is None else made + sum(map(_positive, beside_output)),
        None if reads == -1 else reads,
        None if writes == -1 else writes,
        None if reasoning == -1 else reasoning,
        given is None or made is None or -1 in beside_input or -1 in beside_output,
    )


def _beside(report: _Report, shape: _Shape, provider: str | None) -> tuple[bool, bool]:
    """Whether cache stands beside the input, and reasoning beside the output.

    By the shape; or because a part is greater than the whole; or because only that makes the reported total right.
    """
    given, made, reads, writes, reasoning, _, spare = report
    cache, thought = shape.cache_beside, shape.reasoning_beside
    cached = _positive(reads) + _positive(writes)
    if reasoning and not thought:
        says_total = _hinted(provider) if spare is None else spare in (reasoning, reasoning + cached)
        thought = says_total or (made is not None and reasoning > made)
    if cached and not cache:
        says_total = spare is not None and spare - (_positive(reasoning) if thought else 0) == cached
        cache = says_total or (given is not None and max(reads or 0, writes or 0) > given)
    return cache, thought


def _positive(part: int | None) -> int:
    return 0 if part is None or part < 0 else part


def _hinted(provider: str | None) -> bool:
    return provider is not None and "".join(filter(str.isalnum, provider.lower())) in _REASONING_BESIDE
