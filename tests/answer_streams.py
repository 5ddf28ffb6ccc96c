"""Streamed answers, chunk by chunk; sources as in `answer_shapes`."""

from __future__ import annotations

from typing import Any

from answer_shapes import CHAT, CONVERSE, GEMINI, MESSAGE, RESPONSE, TWO_CALLS, WEATHER, Row, response, said, tokens
from loopspan.values import Call


def chunk(delta: Any = None, reason: str | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of a chat completion; one without choices where there is no delta."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}]
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m-1", "choices": choices, **more}


def piece(index: int, arguments: str, **more: Any) -> dict[str, Any]:
    """A piece of a tool call in a chunk."""
    name = more.pop("name", None)
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"index": index, **more, "function": function}


def start(usage: Any) -> dict[str, Any]:
    """The first event of Anthropic's stream."""
    about = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude-1"}
    return {"type": "message_start", "message": {**about, "stop_reason": None, "stop_sequence": None, "usage": usage}}


def block(index: int, content: Any, *deltas: Any) -> list[Any]:
    """The events of one content block."""
    begin = {"type": "content_block_start", "index": index, "content_block": content}
    middle = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    return [begin, *middle, {"type": "content_block_stop", "index": index}]


def end(usage: Any, stop: str = "end_turn") -> list[Any]:
    """The last events of Anthropic's stream."""
    delta = {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    return [delta, {"type": "message_stop"}]


HI_BLOCK = block(
    0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "H"}, {"type": "text_delta", "text": "i."}
)

STREAMED = [
    Row(
        name="openai chat, usage in the last chunk",
        source="openai/types/chat/chat_completion_chunk.py: with include_usage the last chunk has no choices",
        answer=[
            chunk({"role": "assistant", "content": ""}, usage=None),
            chunk({"content": "H"}, usage=None),
            chunk({"content": "i."}, usage=None),
            chunk({}, "stop", usage=None),
            chunk(
                usage={
                    "prompt_tokens": 50,
                    "completion_tokens": 7,
                    "total_tokens": 57,
                    "prompt_tokens_details": {"cached_tokens": 32},
                }
            ),
        ],
        usage=tokens(50, 7, 32),
        **CHAT,
    ),
    Row(
        name="openai chat, no usage",
        source="openai/types/chat/chat_completion_chunk.py: without include_usage",
        answer=[chunk({"role": "assistant", "content": "Hi."}), chunk({}, "stop")],
        usage=None,
        **CHAT,
    ),
    Row(
        name="openai chat, tool calls in pieces",
        source="openai/types/chat/chat_completion_chunk.py ChoiceDeltaToolCall",
        answer=[
            chunk(
                {"role": "assistant", "content": None, "tool_calls": [piece(0, "", id="call_1", name="get_weather")]}
            ),
            chunk({"tool_calls": [piece(0, '{"city":')]}),
            chunk({"tool_calls": [piece(1, "", id="call_2", name="get_time")]}),
            chunk({"tool_calls": [piece(0, '"Oslo"}'), piece(1, "{}")]}),
            chunk({}, "tool_calls"),
            chunk(usage={"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99}),
        ],
        usage=tokens(82, 17),
        calls=TWO_CALLS,
        **{**CHAT, "reasons": ("tool_calls",), "content": None},
    ),
    Row(
        name="openai chat, calls that share an index",
        source="Gemini's and Ollama's endpoints in OpenAI's form: whole calls, each with index 0",
        answer=[
            chunk({"tool_calls": [piece(0, WEATHER, id="call_1", name="get_weather")]}),
            chunk({"tool_calls": [piece(0, "{}", id="call_2", name="get_time")]}, "tool_calls"),
        ],
        usage=None,
        calls=TWO_CALLS,
        **{**CHAT, "reasons": ("tool_calls",), "content": None},
    ),
    Row(
        name="openai chat, refusal",
        source="openai/types/chat/chat_completion_chunk.py ChoiceDelta.refusal",
        answer=[chunk({"refusal": "I cannot "}), chunk({"refusal": "help."}), chunk({}, "stop")],
        usage=None,
        **{**CHAT, "reasons": ("refusal",), "content": "I cannot help."},
    ),
    Row(
        name="openai chat, broken off",
        source="a consumer that stops early: neither a finish reason nor usage has come",
        answer=[chunk({"role": "assistant", "content": "Hi."})],
        usage=None,
        calls=None,
        **{**CHAT, "reasons": ()},
    ),
    Row(
        name="azure openai",
        source="Azure OpenAI: the first chunk has the prompt's filter results and no choices",
        answer=[
            {"choices": [], "model": "", "id": "", "prompt_filter_results": []},
            chunk({"content": "Hi."}),
            chunk({}, "stop"),
            chunk(usage={"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}),
        ],
        usage=tokens(5, 2),
        **CHAT,
    ),
    Row(
        name="deepseek, reasoning",
        source="DeepSeek's and xAI's delta.reasoning_content; usage beside the last choice",
        answer=[
            chunk({"role": "assistant", "content": None, "reasoning_content": "Let me "}),
            chunk({"content": None, "reasoning_content": "see."}),
            chunk({"content": "Hi.", "reasoning_content": None}),
            chunk(
                {"content": ""},
                "stop",
                usage={
                    "prompt_tokens": 100,
                    "completion_tokens": 25,
                    "total_tokens": 125,
                    "prompt_cache_hit_tokens": 64,
                    "prompt_cache_miss_tokens": 36,
                },
            ),
        ],
        usage=tokens(100, 25, 64),
        reasoning="Let me see.",
        **CHAT,
    ),
    Row(
        name="groq",
        source="leeroopedia, Groq python, streaming usage stats: x_groq.usage of the last chunk",
        answer=[
            chunk({"content": "Hi."}, x_groq={"id": "req_1"}),
            chunk({}, "stop", x_groq={"id": "req_1", "usage": {"prompt_tokens": 38, "completion_tokens": 4}}),
        ],
        usage=tokens(38, 4),
        **CHAT,
    ),
    Row(
        name="moonshot",
        source="northes/go-moonshot#17, higress-group/higress#1568: usage inside the last choice",
        answer=[
            chunk({"content": "Hi."}),
            {
                **chunk(),
                "choices": [
                    {
                        "index": 0,
                        "delta": {},
                        "finish_reason": "stop",
                        "usage": {"prompt_tokens": 19, "completion_tokens": 13, "total_tokens": 32},
                    }
                ],
            },
        ],
        usage=tokens(19, 13),
        **CHAT,
    ),
    Row(
        name="mistral events",
        source="mistralai/client/models/completionevent.py: the chunk is in data",
        answer=[
            {"data": chunk({"role": "assistant", "content": "H"})},
            {"data": chunk({"content": [{"type": "text", "text": "i."}]})},
            {"data": chunk({"content": ""}, "stop", usage={"prompt_tokens": 4, "completion_tokens": 2})},
        ],
        usage=tokens(4, 2),
        **CHAT,
    ),
    Row(
        name="openai responses",
        source="openai/types/responses/response_completed_event.py, response_created_event.py",
        answer=[
            {"type": "response.created", "sequence_number": 0, "response": response(None, status="in_progress")},
            {"type": "response.output_text.delta", "sequence_number": 1, "delta": "Hi."},
            {"type": "response.function_call_arguments.delta", "sequence_number": 2, "delta": "{}"},
            {
                "type": "response.completed",
                "sequence_number": 3,
                "response": response(
                    {"input_tokens": 82, "output_tokens": 17, "input_tokens_details": {"cached_tokens": 64}},
                    said("Hi."),
                    {"type": "function_call", "call_id": "call_2", "name": "get_time", "arguments": "{}"},
                ),
            },
        ],
        usage=tokens(82, 17, 64),
        calls=TWO_CALLS[1:],
        **RESPONSE,
    ),
    Row(
        name="openai responses, broken off",
        source="openai/types/responses/response_created_event.py",
        answer=[
            {"type": "response.created", "response": response(None, status="in_progress")},
            {"type": "response.output_text.delta", "delta": "Hi."},
        ],
        usage=None,
        calls=None,
        **{**RESPONSE, "reasons": (), "content": None},
    ),
    Row(
        name="anthropic",
        source="anthropic/types/raw_message_delta_event.py, message_delta_usage.py: counts are cumulative",
        answer=[
            start(
                {
                    "input_tokens": 21,
                    "cache_creation_input_tokens": 248,
                    "cache_read_input_tokens": 1800,
                    "output_tokens": 1,
                }
            ),
            {"type": "ping"},
            *block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "Let me see."}),
            *block(1, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi."}),
            *end({"output_tokens": 15, "output_tokens_details": {"thinking_tokens": 9}}),
        ],
        usage=tokens(21 + 1800 + 248, 15, 1800, 248, 9),
        reasoning="Let me see.",
        **MESSAGE,
    ),
    Row(
        name="anthropic, tool use",
        source="anthropic/types/input_json_delta.py: arguments come as pieces of text",
        answer=[
            start({"input_tokens": 472, "output_tokens": 2}),
            *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hi."}),
            *block(
                1,
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {}},
                {"type": "input_json_delta", "partial_json": ""},
                {"type": "input_json_delta", "partial_json": '{"city":'},
                {"type": "input_json_delta", "partial_json": '"Oslo"}'},
            ),
            *block(
                2,
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
                {"type": "input_json_delta", "partial_json": "{}"},
            ),
            *block(3, {"type": "tool_use", "id": "toolu_2", "name": "get_time", "input": {}}),
            *end({"output_tokens": 89}, "tool_use"),
        ],
        usage=tokens(472, 89),
        calls=(Call("get_weather", WEATHER, "toolu_1"), Call("get_time", {}, "toolu_2")),
        **{**MESSAGE, "reasons": ("tool_use",)},
    ),
    Row(
        name="anthropic, input only at the end",
        source="anthropic/types/message_delta_usage.py: input fields; what servers in Anthropic's form send",
        answer=[
            start({"input_tokens": 0, "output_tokens": 0}),
            *HI_BLOCK,
            *end({"input_tokens": 200, "cache_read_input_tokens": 800, "output_tokens": 9}),
        ],
        usage=tokens(1000, 9, 800),
        **MESSAGE,
    ),
    Row(
        name="anthropic, broken off",
        source="anthropic/types/raw_message_start_event.py: the start's output count is only a beginning",
        answer=[start({"input_tokens": 21, "output_tokens": 1}), *HI_BLOCK],
        usage=tokens(21, None),
        calls=None,
        **{**MESSAGE, "reasons": ()},
    ),
    Row(
        name="gemini",
        source="google/genai/types.py: usage of each chunk counts from the start; the last one is the total",
        answer=[
            {
                "candidates": [{"content": {"role": "model", "parts": [{"text": "Let me see.", "thought": True}]}}],
                "usageMetadata": {"promptTokenCount": 60, "thoughtsTokenCount": 20, "totalTokenCount": 80},
                "modelVersion": "gemini-1",
                "responseId": "r-1",
            },
            {
                "candidates": [{"content": {"role": "model", "parts": [{"text": "H"}]}, "index": 0}],
                "usageMetadata": {
                    "promptTokenCount": 60,
                    "candidatesTokenCount": 1,
                    "thoughtsTokenCount": 31,
                    "totalTokenCount": 92,
                },
                "modelVersion": "gemini-1",
            },
            {
                "candidates": [
                    {
                        "content": {
                            "role": "model",
                            "parts": [{"text": "i."}, {"functionCall": {"name": "get_time", "args": {}}}],
                        },
                        "finishReason": "STOP",
                        "index": 0,
                    }
                ],
                "usageMetadata": {
                    "promptTokenCount": 60,
                    "candidatesTokenCount": 9,
                    "thoughtsTokenCount": 31,
                    "totalTokenCount": 100,
                },
                "modelVersion": "gemini-1",
            },
        ],
        usage=tokens(60, 40, None, None, 31),
        calls=(Call("get_time", {}),),
        reasoning="Let me see.",
        **GEMINI,
    ),
    Row(
        name="bedrock",
        source="botocore bedrock-runtime service-2.json ConverseStreamOutput: usage is in the metadata at the end",
        answer=[
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"delta": {"reasoningContent": {"text": "Let me see."}}, "contentBlockIndex": 0}},
            {"contentBlockDelta": {"delta": {"text": "Hi."}, "contentBlockIndex": 1}},
            {"contentBlockStop": {"contentBlockIndex": 1}},
            {
                "contentBlockStart": {
                    "start": {"toolUse": {"toolUseId": "call_1", "name": "get_weather"}},
                    "contentBlockIndex": 2,
                }
            },
            {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"city":'}}, "contentBlockIndex": 2}},
            {"contentBlockDelta": {"delta": {"toolUse": {"input": '"Oslo"}'}}, "contentBlockIndex": 2}},
            {"messageStop": {"stopReason": "tool_use"}},
            {
                "metadata": {
                    "usage": {"inputTokens": 9, "outputTokens": 35, "totalTokens": 74, "cacheReadInputTokens": 30},
                    "metrics": {"latencyMs": 1},
                }
            },
        ],
        provider="aws.bedrock",
        usage=tokens(39, 35, 30),
        calls=TWO_CALLS[:1],
        reasoning="Let me see.",
        **{**CONVERSE, "id": None, "reasons": ("tool_use",)},
    ),
    Row(
        name="ollama",
        source="docs.ollama.com/api/chat; ollama/_types.py ChatResponse: the last chunk is done",
        answer=[
            {
                "model": "llama3.2",
                "message": {"role": "assistant", "content": "", "thinking": "Let me see."},
                "done": False,
            },
            {"model": "llama3.2", "message": {"role": "assistant", "content": "H"}, "done": False},
            {
                "model": "llama3.2",
                "message": {
                    "role": "assistant",
                    "content": "i.",
                    "tool_calls": [{"function": {"name": "get_time", "arguments": {}}}],
                },
                "done": False,
            },
            {
                "model": "llama3.2",
                "message": {"role": "assistant", "content": ""},
                "done": True,
                "done_reason": "stop",
                "prompt_eval_count": 26,
                "eval_count": 298,
            },
        ],
        usage=tokens(26, 298),
        model="llama3.2",
        reasons=("stop",),
        calls=(Call("get_time", {}),),
        content="Hi.",
        reasoning="Let me see.",
    ),
    Row(
        name="ollama generate",
        source="ollama/_types.py GenerateResponse",
        answer=[
            {"model": "llama3.2", "response": "H", "done": False},
            {"model": "llama3.2", "response": "i.", "done": False},
            {"model": "llama3.2", "response": "", "done": True, "done_reason": "stop", "eval_count": 3},
        ],
        usage=tokens(None, 3),
        model="llama3.2",
        reasons=("stop",),
        content="Hi.",
    ),
    Row(
        name="only usage is known",
        source="a form of its own: the last chunk has a field usage",
        answer=["H", {"text": "i."}, {"model": "m-1", "usage": {"input_tokens": 3, "output_tokens": 2}}],
        usage=tokens(3, 2),
        model="m-1",
        calls=None,
    ),
]
