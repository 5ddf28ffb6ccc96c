"""Answers that came in one piece: a reader for each form, tried in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from loopspan._answers.fields import either, items, joined, text, texts
from loopspan.usage import Get, Usage, getter, peek
from loopspan.values import Answer, Call

_ABSENT: Final[Any] = object()
_PLAIN: Final = (str, bytes, bytearray, int, float, complex, list, tuple, set, frozenset)


def read(answer: Any, provider: str | None = None) -> Answer | None:
    """What `answer` says; None where it has no form that is known. Never raises.

    A mapping, a pydantic model or an object of an SDK: OpenAI chat completions and responses and those who follow their
    form (Mistral, DeepSeek, LiteLLM), Anthropic messages, Bedrock Converse, Gemini, Ollama; at the least something with
    a field `usage`. `provider` is the hint for `Usage.parse`.

    `tool_calls` is what the loop is asked to run: None where the answer does not tell, () where it asks for nothing.
    Arguments are as the answer holds them, text is not parsed. Finish reasons keep the provider's words; but `refusal`
    stands for the `stop` or `completed` of an OpenAI message that is a refusal. A field that cannot be read costs no
    other.
    """
    kind = type(answer)
    if answer is None or issubclass(kind, _PLAIN):
        return None
    if kind is Answer:
        return answer  # type: ignore[no-any-return]  # of that very class
    get = getter(answer)
    for reader in _READERS:
        try:
            found = reader(get, provider)
        except Exception:  # noqa: BLE001  # whatever an object does, the next form may fit
            continue
        if found is not None:
            return found
    return None


class Said:
    """What the parts of an answer add up to. `told`: whether its calls, or that it has none, can be known."""

    __slots__ = ("calls", "content", "reasoning", "reasons", "told")

    def __init__(self, *reasons: str | None, told: bool = True) -> None:
        self.calls: list[Call] = []
        self.content: list[str | None] = []
        self.reasoning: list[str | None] = []
        self.reasons = [*reasons]
        self.told = told

    def call(self, name: Any, arguments: Any, call_id: Any) -> None:
        """Add a call; one without a name is none."""
        known = text(name)
        if known is not None:
            self.calls.append(Call(known, arguments, text(call_id)))

    def answer(self, usage: Usage | None, model: Any, answer_id: Any) -> Answer:
        """All of it, with what the answer says about itself."""
        return _made(
            usage,
            None,
            text(model),
            tuple([reason for reason in self.reasons if reason is not None]),
            tuple(self.calls) if self.calls or self.told else None,
            text(answer_id),
            joined(self.content) if self.content else None,
            joined(self.reasoning) if self.reasoning else None,
            None,
            None,
            None,
        )


_PUT: Final = [getattr(Answer, each.name).__set__ for each in fields(Answer)]


def _made(*values: Any) -> Answer:
    """An Answer of its fields in their order, without the checks of what users hand in (slow)."""
    answer = object.__new__(Answer)
    for put, value in zip(_PUT, values, strict=True):
        put(answer, value)
    return answer


def _chat(get: Get, provider: str | None) -> Answer | None:
    """OpenAI chat completions, Mistral, DeepSeek, LiteLLM and others of that form. Texts of choices are joined."""
    choices = items(get("choices"))
    if choices is None:
        return None
    said = Said()
    for choice in choices:
        _chat_choice(getter(choice), said)
    return said.answer(Usage.parse(get("usage"), provider), get("model"), get("id"))


def _chat_choice(choice: Get, said: Said) -> None:
    reason, message = text(choice("finish_reason")), choice("message")
    if message is None:
        said.content.append(text(choice("text")))
        said.told = said.told and said.content[-1] is not None
    else:
        get = getter(message)
        refused = message_text(get, said)
        _message_calls(get, said)
        reason = "refusal" if refused and reason in (None, "stop") else reason
    said.reasons.append(reason)


def message_text(get: Get, said: Said) -> bool:
    """Add what a message, or a piece of one, says and thinks; tell whether it is a refusal."""
    content, refusal = get("content"), text(get("refusal"))
    said.content.append(text(content) or refusal)
    for name in ("reasoning_content", "reasoning", "thinking"):
        if (thought := get(name)) is not None:
            said.reasoning.append(text(thought))
            break
    if content is not None and type(content) is not str:
        for part in items(content) or ():
            said.content.append(text(peek(part, "text")))
            said.reasoning += texts(peek(part, "thinking"), "text")
    return refusal is not None


def _message_calls(get: Get, said: Said) -> None:
    listed, old = get("tool_calls"), get("function_call")
    if listed is not None:
        rows = items(listed)
        said.told = said.told and (rows is not None or not issubclass(type(listed), (*_PLAIN, Mapping)))
        for row in rows or ():
            _message_call(getter(row), said)
    if old is not None:
        said.call(peek(old, "name"), peek(old, "arguments"), None)


def _message_call(row: Get, said: Said) -> None:
    function = row("function")
    body, field_name = (row("custom"), "input") if function is None else (function, "arguments")
    get = getter(body)
    said.call(get("name"), get(field_name), row("id"))


_LOOP_RUNS: Final = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
"""Items of OpenAI responses that the loop is to run, and the field with their arguments. Others ran at the provider."""


def _responses(get: Get, provider: str | None) -> Answer | None:
    """OpenAI responses and realtime."""
    output = items(get("output"))
    if output is None or not _is_response(get, output):
        return None
    status = text(get("status"))
    said = Said(told=status not in ("in_progress", "queued"))
    refused = [_output_item(getter(item), said) for item in output]
    _leave_out_answered(output, said)
    reason = text(peek(get("incomplete_details"), "reason")) or (status if said.told else None)
    said.reasons.append("refusal" if True in refused and reason in (None, "completed") else reason)
    return said.answer(Usage.parse(get("usage"), provider), get("model"), get("id"))


def _is_response(get: Get, output: Sequence[Any]) -> bool:
    if text(get("object")) in ("response", "realtime.response"):
        return True
    return text(peek(output[0], "type")) is not None if output else get("usage", _ABSENT) is not _ABSENT


def _output_item(item: Get, said: Said) -> bool:
    """Add one item of the output; tell whether it is a refusal."""
    kind = text(item("type")) or ""
    refusals = []
    if kind == "message":
        content = items(item("content")) or ()
        refusals = [text(peek(part, "refusal")) for part in content if text(peek(part, "type")) == "refusal"]
        said.content += texts(content, "output_text") + refusals
    elif kind == "reasoning":
        said.reasoning += texts(item("summary"), "summary_text") + texts(item("content"), "reasoning_text")
    elif kind in _LOOP_RUNS:
        name = item("name") if _LOOP_RUNS[kind] in ("arguments", "input") else kind.removesuffix("_call")
        said.call(name, either(item, _LOOP_RUNS[kind], "actions"), item("call_id"))
    return bool(refusals)


def _leave_out_answered(output: Sequence[Any], said: Said) -> None:
    """A call whose output is in the same answer ran at the provider."""
    answered = {
        text(peek(item, "call_id")) for item in output if (text(peek(item, "type")) or "").endswith("_output")
    } - {None}
    if answered:
        said.calls = [call for call in said.calls if call.call_id not in answered]


def _messages(get: Get, provider: str | None) -> Answer | None:
    """Anthropic messages."""
    content = items(get("content"))
    stop = get("stop_reason", _ABSENT)
    if content is None or (stop is _ABSENT and text(get("type")) != "message"):
        return None
    said = Said(text(stop))
    for block in map(getter, content):
        match text(block("type")):
            case "text":
                said.content.append(text(block("text")))
            case "thinking":
                said.reasoning.append(text(block("thinking")))
            case "tool_use":
                said.call(block("name"), block("input"), block("id"))
    return said.answer(Usage.parse(get("usage"), provider), get("model"), get("id"))


def _converse(get: Get, provider: str | None) -> Answer | None:
    """Bedrock Converse. It names the model only where a prompt router chose it."""
    content = items(peek(peek(get("output"), "message"), "content"))
    if content is None:
        return None
    said = Said(text(get("stopReason")))
    for block in map(getter, content):
        said.content.append(text(block("text")))
        thought, use = block("reasoningContent"), block("toolUse")
        if thought is not None:
            said.reasoning.append(text(peek(peek(thought, "reasoningText"), "text")))
        if use is not None and text(peek(use, "type")) != "server_tool_use":
            said.call(peek(use, "name"), peek(use, "input"), peek(use, "toolUseId"))
    model = peek(peek(get("trace"), "promptRouter"), "invokedModelId")
    request_id = peek(get("ResponseMetadata"), "RequestId")
    return said.answer(Usage.parse(get("usage"), provider), model, request_id)


def _gemini(get: Get, provider: str | None) -> Answer | None:
    """Gemini: the names of the wire and those of google-genai."""
    candidates = items(get("candidates"))
    blocked = block_reason(get)
    if candidates is None and blocked is None:
        return None
    said = Said(blocked)
    for candidate in map(getter, candidates or ()):
        said.reasons.append(text(either(candidate, "finish_reason", "finishReason")))
        for part in items(peek(candidate("content"), "parts")) or ():
            _gemini_part(getter(part), said)
    usage = Usage.parse(either(get, "usage_metadata", "usageMetadata"), provider)
    model = either(get, "model_version", "modelVersion")
    return said.answer(usage, model, either(get, "response_id", "responseId"))


def block_reason(get: Get) -> str | None:
    """Why Gemini did not take the prompt."""
    feedback = either(get, "prompt_feedback", "promptFeedback")
    return None if feedback is None else text(either(getter(feedback), "block_reason", "blockReason"))


def _gemini_part(part: Get, said: Said) -> None:
    (said.reasoning if part("thought") is True else said.content).append(text(part("text")))
    call = either(part, "function_call", "functionCall")
    if call is not None:
        said.call(peek(call, "name"), peek(call, "args"), peek(call, "id"))


def _ollama(get: Get, provider: str | None) -> Answer | None:
    """Ollama chat and generate: the counts stand in the answer itself."""
    message, response = get("message"), text(get("response"))
    if type(get("done")) is not bool or (message is None and response is None):
        return None
    said = Said(text(get("done_reason")))
    said.content.append(response)
    spoken = get if message is None else getter(message)
    message_text(spoken, said)
    _message_calls(spoken, said)
    counts = {name: get(name) for name in ("prompt_eval_count", "eval_count", "prompt_eval_cached_count")}
    known = {name: value for name, value in counts.items() if value is not None}
    return said.answer(Usage.parse(known, provider), get("model"), None)


def _least(get: Get, provider: str | None) -> Answer | None:
    """Anything with a field for usage; whether it asks for tools is not known."""
    for name in ("usage", "usage_metadata", "usageMetadata"):
        usage = get(name, _ABSENT)
        if usage is not _ABSENT:
            return Said(told=False).answer(Usage.parse(usage, provider), get("model"), get("id"))
    return None


_READERS: Final = (_chat, _responses, _messages, _converse, _gemini, _ollama, _least)
