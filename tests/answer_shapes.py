"""Answers as providers give them, whole and streamed, and what they are to be read as.

Field names are those of the documents that each row names; a path is that of a type in the provider's Python SDK at the
version given here: openai 3.57.0, anthropic 2.14.0, google-genai 3.6.1, mistralai 3.7.0, ollama 0.6.3,
litellm 1.110.2, botocore 1.44.8 (its service model). Numbers and texts are made up unless a row says that they are the
document's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loopspan.usage import Usage
from loopspan.values import Call


@dataclass(frozen=True, kw_only=True)
class Row:
    """One answer (or the chunks of one) and what it says; `calls` None: it does not tell."""

    name: str
    source: str
    answer: Any
    usage: Usage | None
    provider: str | None = None
    model: str | None = None
    id: str | None = None
    reasons: tuple[str, ...] = ()
    calls: tuple[Call, ...] | None = ()
    content: str | None = None
    reasoning: str | None = None


def tokens(
    given: int | None, made: int | None, read: int | None = None, written: int | None = None, thought: int | None = None
) -> Usage:
    """A usage, incomplete where input or output is unknown."""
    return Usage(given, made, read, written, thought, incomplete=given is None or made is None)


def chat(usage: Any, message: Any = None, reason: str = "stop", **more: Any) -> dict[str, Any]:
    """A chat completion in OpenAI's form."""
    message = {"role": "assistant", "content": "Hi."} if message is None else message
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [choice]}
    return {**answer, "usage": usage, **more}


def message(usage: Any, *blocks: Any, stop: str = "end_turn") -> dict[str, Any]:
    """A message in Anthropic's form."""
    content = list(blocks) or [{"type": "text", "text": "Hi.", "citations": None}]
    about = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-1"}
    return {**about, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def response(usage: Any, *output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    """A response in OpenAI's form."""
    about = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m-1", "status": status, "error": None}
    return {**about, "incomplete_details": None, "output": list(output), "usage": usage, **more}


def said(text: str) -> dict[str, Any]:
    """An output message of a response."""
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}


def converse(usage: Any, *blocks: Any, stop: str = "end_turn") -> dict[str, Any]:
    """An answer of Bedrock Converse."""
    output = {"message": {"role": "assistant", "content": list(blocks) or [{"text": "Hi."}]}}
    metadata = {"RequestId": "req-1", "HTTPStatusCode": 200}
    return {"ResponseMetadata": metadata, "output": output, "stopReason": stop, "usage": usage, "metrics": {}}


def gemini(usage: Any, *parts: Any, reason: str = "STOP") -> dict[str, Any]:
    """An answer of Gemini as it is on the wire."""
    content = {"role": "model", "parts": list(parts) or [{"text": "Hi."}]}
    candidate = {"content": content, "finishReason": reason, "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-1", "responseId": "r-1"}


CHAT = {"model": "m-1", "id": "chatcmpl-1", "reasons": ("stop",), "content": "Hi."}
MESSAGE = {"model": "claude-1", "id": "msg_1", "reasons": ("end_turn",), "content": "Hi."}
RESPONSE = {"model": "m-1", "id": "resp_1", "reasons": ("completed",), "content": "Hi."}
CONVERSE = {"id": "req-1", "reasons": ("end_turn",), "content": "Hi."}
GEMINI = {"model": "gemini-1", "id": "r-1", "reasons": ("STOP",), "content": "Hi."}
WEATHER = '{"city":"Oslo"}'
WEATHER_CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": WEATHER}},
    {"id": "call_2", "type": "function", "function": {"name": "get_time", "arguments": "{}"}},
]
TWO_CALLS = (Call("get_weather", WEATHER, "call_1"), Call("get_time", "{}", "call_2"))

WHOLE = [
    # --- OpenAI chat completions and what follows their form
    Row(
        name="openai chat",
        source="openai/types/completion_usage.py",
        answer=chat(
            {
                "prompt_tokens": 1117,
                "completion_tokens": 146,
                "total_tokens": 1263,
                "prompt_tokens_details": {"audio_tokens": 0, "cached_tokens": 1024},
                "completion_tokens_details": {
                    "reasoning_tokens": 64,
                    "audio_tokens": 0,
                    "accepted_prediction_tokens": 0,
                    "rejected_prediction_tokens": 0,
                },
            }
        ),
        usage=tokens(1117, 146, 1024, None, 64),
        **CHAT,
    ),
    Row(
        name="openai chat, cache writes",
        source="openai/types/completion_usage.py: cache_write_tokens",
        answer=chat(
            {
                "prompt_tokens": 2006,
                "completion_tokens": 300,
                "total_tokens": 2306,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 1920},
            }
        ),
        usage=tokens(2006, 300, 0, 1920),
        **CHAT,
    ),
    Row(
        name="openai chat, tool calls",
        source="openai/types/chat/chat_completion_message.py, chat_completion_message_function_tool_call.py",
        answer=chat(
            {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99},
            {"role": "assistant", "content": None, "refusal": None, "tool_calls": WEATHER_CALLS},
            "tool_calls",
        ),
        usage=tokens(82, 17),
        calls=TWO_CALLS,
        **{**CHAT, "reasons": ("tool_calls",), "content": None},
    ),
    Row(
        name="openai chat, custom tool",
        source="openai/types/chat/chat_completion_message_custom_tool_call.py",
        answer=chat(
            {"prompt_tokens": 8, "completion_tokens": 3, "total_tokens": 11},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}],
            },
            "tool_calls",
        ),
        usage=tokens(8, 3),
        calls=(Call("shell", "ls -l", "call_1"),),
        **{**CHAT, "reasons": ("tool_calls",), "content": None},
    ),
    Row(
        name="openai chat, refusal",
        source="openai/types/chat/chat_completion_message.py: refusal",
        answer=chat(
            {"prompt_tokens": 8, "completion_tokens": 3, "total_tokens": 11},
            {"role": "assistant", "content": None, "refusal": "I cannot help with that."},
        ),
        usage=tokens(8, 3),
        **{**CHAT, "reasons": ("refusal",), "content": "I cannot help with that."},
    ),
    Row(
        name="openai embeddings",
        source="openai/types/create_embedding_response.py: no output, total_tokens equals prompt_tokens",
        answer={
            "object": "list",
            "data": [{"object": "embedding", "index": 0, "embedding": [0.1]}],
            "model": "text-embedding-3-small",
            "usage": {"prompt_tokens": 8, "total_tokens": 8},
        },
        usage=tokens(8, 0),
        model="text-embedding-3-small",
        calls=None,
    ),
    Row(
        name="azure openai",
        source="genai-prices 0.2.3 data, azure chat: OpenAI's form, with content filters around it",
        answer=chat(
            {"prompt_tokens": 33, "completion_tokens": 557, "total_tokens": 590},
            prompt_filter_results=[{"prompt_index": 0, "content_filter_results": {}}],
        ),
        provider="azure.ai.openai",
        usage=tokens(33, 557),
        **CHAT,
    ),
    Row(
        name="mistral",
        source="mistralai/client/models/usageinfo.py, functioncall.py: arguments may be a mapping",
        answer=chat(
            {"prompt_tokens": 104, "completion_tokens": 22, "total_tokens": 126, "prompt_audio_seconds": None},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "D681PevKs", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}],
            },
            "tool_calls",
        ),
        provider="mistral_ai",
        usage=tokens(104, 22),
        calls=(Call("get_weather", {"city": "Oslo"}, "D681PevKs"),),
        **{**CHAT, "reasons": ("tool_calls",), "content": None},
    ),
    Row(
        name="mistral, thinking",
        source="mistralai/client/models/thinkchunk.py, textchunk.py",
        answer=chat(
            {"prompt_tokens": 10, "completion_tokens": 60, "total_tokens": 70},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]},
                    {"type": "text", "text": "Hi."},
                ],
            },
        ),
        usage=tokens(10, 60),
        reasoning="Let me see.",
        **CHAT,
    ),
    Row(
        name="deepseek",
        source="docs.rs/crate/deepseek-sdk/0.7.0 src/chat/response.rs: prompt_tokens is hit plus miss",
        answer=chat(
            {
                "prompt_tokens": 1000,
                "completion_tokens": 250,
                "total_tokens": 1250,
                "prompt_cache_hit_tokens": 832,
                "prompt_cache_miss_tokens": 168,
                "completion_tokens_details": {"reasoning_tokens": 200},
            },
            {"role": "assistant", "content": "Hi.", "reasoning_content": "Let me see."},
        ),
        provider="deepseek",
        usage=tokens(1000, 250, 832, None, 200),
        reasoning="Let me see.",
        **CHAT,
    ),
    Row(
        name="xai, reasoning beside the output",
        source="docs.cloud.google.com, Vertex AI, Grok, reasoning: the document's numbers; 663 + 50 + 124 = 837",
        answer=chat(
            {
                "completion_tokens": 50,
                "completion_tokens_details": {
                    "accepted_prediction_tokens": 0,
                    "audio_tokens": 0,
                    "reasoning_tokens": 124,
                    "rejected_prediction_tokens": 0,
                },
                "cost_in_usd_ticks": 0,
                "num_sources_used": 0,
                "prompt_tokens": 663,
                "prompt_tokens_details": {
                    "audio_tokens": 0,
                    "cached_tokens": 654,
                    "image_tokens": 0,
                    "text_tokens": 663,
                },
                "total_tokens": 837,
            }
        ),
        provider="x_ai",
        usage=tokens(663, 174, 654, None, 124),
        **CHAT,
    ),
    Row(
        name="xai through a gateway, reasoning in the output",
        source="infron.ai/docs/billing-apis/usage-and-cost: the document's numbers; 163 + 241 = 404",
        answer=chat(
            {
                "completion_tokens": 241,
                "completion_tokens_details": {"audio_tokens": 0, "image_tokens": 0, "reasoning_tokens": 204},
                "prompt_tokens": 163,
                "prompt_tokens_details": {"audio_tokens": 0, "cache_write_tokens": 0, "cached_tokens": 162},
                "total_tokens": 404,
            }
        ),
        provider="x_ai",
        usage=tokens(163, 241, 162, 0, 204),
        **CHAT,
    ),
    Row(
        name="xai prompt caching",
        source="docs.x.ai/developers/advanced-api-usage/prompt-caching/usage-and-pricing: the document's numbers",
        answer=chat(
            {
                "prompt_tokens": 125,
                "completion_tokens": 48,
                "total_tokens": 173,
                "prompt_tokens_details": {
                    "text_tokens": 125,
                    "audio_tokens": 0,
                    "image_tokens": 0,
                    "cached_tokens": 98,
                },
                "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
            }
        ),
        provider="x_ai",
        usage=tokens(125, 48, 98, None, 0),
        **CHAT,
    ),
    Row(
        name="perplexity deep research",
        source="api-evangelist/perplexity perplexity-usageinfo-schema.json; reasoning exceeds the completion",
        answer=chat(
            {
                "prompt_tokens": 33,
                "completion_tokens": 7163,
                "total_tokens": 7196,
                "citation_tokens": 20016,
                "num_search_queries": 18,
                "reasoning_tokens": 73997,
            }
        ),
        provider="perplexity",
        usage=tokens(33, 7163 + 73997, None, None, 73997),
        **CHAT,
    ),
    Row(
        name="groq",
        source="console.groq.com/docs/prompt-caching; vercel/ai#17118: cached_tokens is part of prompt_tokens",
        answer=chat(
            {
                "queue_time": 0.026959759,
                "prompt_tokens": 4641,
                "prompt_time": 0.009995497,
                "completion_tokens": 1817,
                "completion_time": 5.57691751,
                "total_tokens": 6458,
                "total_time": 5.586913007,
                "prompt_tokens_details": {"cached_tokens": 4608},
            }
        ),
        provider="groq",
        usage=tokens(4641, 1817, 4608),
        **CHAT,
    ),
    Row(
        name="openrouter",
        source="openrouter docs, use-cases/usage-accounting: the document's numbers",
        answer=chat(
            {
                "completion_tokens": 2,
                "completion_tokens_details": {"reasoning_tokens": 0},
                "cost": 0.95,
                "cost_details": {"upstream_inference_cost": 19},
                "prompt_tokens": 194,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 100, "audio_tokens": 0},
                "total_tokens": 196,
            },
            {"role": "assistant", "content": "Hi.", "reasoning": "Let me see."},
        ),
        usage=tokens(194, 2, 0, 100, 0),
        reasoning="Let me see.",
        **CHAT,
    ),
    Row(
        name="moonshot",
        source="Bike4Mind/bike4mind#1089: cached_tokens is part of prompt_tokens",
        answer=chat({"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100, "cached_tokens": 64}),
        usage=tokens(90, 10, 64),
        **CHAT,
    ),
    Row(
        name="litellm for anthropic",
        source="litellm/types/utils.py Usage: OpenAI's form and Anthropic's fields; prompt_tokens has all input",
        answer=chat(
            {
                "completion_tokens": 100,
                "prompt_tokens": 1000,
                "total_tokens": 1100,
                "completion_tokens_details": None,
                "prompt_tokens_details": {"audio_tokens": None, "cached_tokens": 700, "cache_creation_tokens": 100},
                "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 700,
            }
        ),
        provider="anthropic",
        usage=tokens(1000, 100, 700, 100),
        **CHAT,
    ),
    Row(
        name="databricks",
        source="genai-prices 0.2.3 data: cache_read_input_tokens of prompt_tokens",
        answer=chat(
            {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "cache_read_input_tokens": 700}
        ),
        usage=tokens(1000, 100, 700),
        **CHAT,
    ),
    Row(
        name="gateway with both families",
        source="doc.302.ai/api-263332597: the document's numbers; empty fields of the other family",
        answer=chat(
            {
                "prompt_tokens": 686,
                "completion_tokens": 123,
                "total_tokens": 809,
                "prompt_tokens_details": {"cached_tokens": 679, "text_tokens": 686},
                "completion_tokens_details": {"text_tokens": 11, "audio_tokens": 0, "reasoning_tokens": 112},
                "input_tokens": 0,
                "output_tokens": 0,
                "input_tokens_details": None,
            }
        ),
        usage=tokens(686, 123, 679, None, 112),
        **CHAT,
    ),
    Row(
        name="gateway that keeps the cache beside the input",
        source="no document: the total is the evidence, 200 + 800 + 100 = 1100",
        answer=chat(
            {
                "prompt_tokens": 200,
                "completion_tokens": 100,
                "total_tokens": 1100,
                "prompt_tokens_details": {"cached_tokens": 800},
            }
        ),
        usage=tokens(1000, 100, 800),
        **CHAT,
    ),
    Row(
        name="legacy completion",
        source="openai/types/completion_choice.py: text in place of a message",
        answer={
            "id": "cmpl-1",
            "object": "text_completion",
            "model": "m-1",
            "choices": [{"text": "Hi.", "index": 0, "logprobs": None, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
        },
        usage=tokens(5, 7),
        model="m-1",
        id="cmpl-1",
        reasons=("length",),
        content="Hi.",
    ),
    # --- OpenAI responses
    Row(
        name="openai responses",
        source="openai/types/responses/response_usage.py",
        answer=response(
            {
                "input_tokens": 328,
                "input_tokens_details": {"cached_tokens": 256, "cache_write_tokens": 0},
                "output_tokens": 152,
                "output_tokens_details": {"reasoning_tokens": 128},
                "total_tokens": 480,
            },
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Let me see."}]},
            said("Hi."),
        ),
        usage=tokens(328, 152, 256, 0, 128),
        reasoning="Let me see.",
        **RESPONSE,
    ),
    Row(
        name="openai responses, function calls",
        source="openai/types/responses/response_function_tool_call.py, response_custom_tool_call.py",
        answer=response(
            {"input_tokens": 82, "output_tokens": 17, "total_tokens": 99, "input_tokens_details": {"cached_tokens": 0}},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": WEATHER},
            {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "get_time", "input": "{}"},
        ),
        usage=tokens(82, 17, 0),
        calls=TWO_CALLS,
        **{**RESPONSE, "content": None},
    ),
    Row(
        name="openai responses, what the provider ran",
        source="openai/types/responses/response_output_item.py: web_search_call, shell_call with its output",
        answer=response(
            {"input_tokens": 82, "output_tokens": 17, "total_tokens": 99},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "shell_call", "id": "sh_1", "call_id": "call_1", "action": {"commands": ["ls"]}},
            {"type": "shell_call_output", "id": "so_1", "call_id": "call_1", "output": []},
            {"type": "local_shell_call", "id": "ls_1", "call_id": "call_2", "action": {"command": ["pwd"]}},
            said("Hi."),
        ),
        usage=tokens(82, 17),
        calls=(Call("local_shell", {"command": ["pwd"]}, "call_2"),),
        **RESPONSE,
    ),
    Row(
        name="openai responses, cut off",
        source="openai/types/responses/response.py: incomplete_details",
        answer=response(
            {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30},
            said("Hi."),
            status="incomplete",
            incomplete_details={"reason": "max_output_tokens"},
        ),
        usage=tokens(10, 20),
        **{**RESPONSE, "reasons": ("max_output_tokens",)},
    ),
    Row(
        name="openai responses, refusal",
        source="openai/types/responses/response_output_refusal.py",
        answer=response(
            {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30},
            {"type": "message", "content": [{"type": "refusal", "refusal": "I cannot help with that."}]},
        ),
        usage=tokens(10, 20),
        **{**RESPONSE, "reasons": ("refusal",), "content": "I cannot help with that."},
    ),
    Row(
        name="openai responses in the background",
        source="openai/types/responses/response_status.py: queued",
        answer=response(None, status="queued"),
        usage=None,
        calls=None,
        **{**RESPONSE, "reasons": (), "content": None},
    ),
    # --- Anthropic
    Row(
        name="anthropic",
        source="anthropic/types/usage.py; message.py: total input is the sum of the three input fields",
        answer=message(
            {
                "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 248},
                "cache_creation_input_tokens": 248,
                "cache_read_input_tokens": 1800,
                "input_tokens": 21,
                "output_tokens": 393,
                "output_tokens_details": {"thinking_tokens": 300},
                "server_tool_use": None,
                "service_tier": "standard",
            },
            {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
            {"type": "text", "text": "Hi.", "citations": None},
        ),
        provider="anthropic",
        usage=tokens(21 + 1800 + 248, 393, 1800, 248, 300),
        reasoning="Let me see.",
        **MESSAGE,
    ),
    Row(
        name="anthropic, without a cache",
        source="anthropic/types/usage.py: the cache fields may be null",
        answer=message(
            {
                "cache_creation_input_tokens": None,
                "cache_read_input_tokens": None,
                "input_tokens": 2095,
                "output_tokens": 503,
            }
        ),
        provider="anthropic",
        usage=tokens(2095, 503),
        **MESSAGE,
    ),
    Row(
        name="anthropic, tool use",
        source="anthropic/types/tool_use_block.py, server_tool_use_block.py: server tools ran at the provider",
        answer=message(
            {"input_tokens": 472, "output_tokens": 89, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}},
            stop="tool_use",
        ),
        provider="anthropic",
        usage=tokens(472, 89, 0, 0),
        calls=(Call("get_weather", {"city": "Oslo"}, "toolu_1"),),
        **{**MESSAGE, "reasons": ("tool_use",), "content": None},
    ),
    Row(
        name="anthropic, compaction",
        source="anthropic/types/beta/beta_usage.py: a compaction is not in the top-level fields",
        answer=message(
            {
                "input_tokens": 23000,
                "output_tokens": 1000,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "iterations": [
                    {
                        "type": "compaction",
                        "input_tokens": 180000,
                        "output_tokens": 3500,
                        "cache_creation_input_tokens": 0,
                        "cache_read_input_tokens": 50,
                    },
                    {
                        "type": "message",
                        "input_tokens": 23000,
                        "output_tokens": 1000,
                        "cache_creation_input_tokens": 0,
                        "cache_read_input_tokens": 0,
                    },
                ],
            }
        ),
        provider="anthropic",
        usage=tokens(23000 + 180050, 4500, 50, 0),
        **MESSAGE,
    ),
    # --- Gemini
    Row(
        name="gemini on the wire",
        source="google/genai/types.py GenerateContentResponseUsageMetadata (camelCase): what total_token_count sums",
        answer=gemini(
            {
                "promptTokenCount": 1000,
                "cachedContentTokenCount": 600,
                "candidatesTokenCount": 80,
                "toolUsePromptTokenCount": 50,
                "thoughtsTokenCount": 300,
                "totalTokenCount": 1430,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1000}],
            },
            {"text": "Let me see.", "thought": True},
            {"text": "Hi."},
        ),
        provider="gcp.gemini",
        usage=tokens(1050, 380, 600, None, 300),
        reasoning="Let me see.",
        **GEMINI,
    ),
    Row(
        name="gemini, function call",
        source="google/genai/types.py FunctionCall (camelCase)",
        answer=gemini(
            {"promptTokenCount": 60, "candidatesTokenCount": 9, "totalTokenCount": 69},
            {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}}, "thoughtSignature": "c2ln"},
        ),
        usage=tokens(60, 9),
        calls=(Call("get_weather", {"city": "Oslo"}),),
        **{**GEMINI, "content": None},
    ),
    Row(
        name="gemini in google-genai",
        source="google/genai/types.py GenerateContentResponse",
        answer={
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [{"function_call": {"id": "f1", "name": "get_weather", "args": {"city": "Oslo"}}}],
                    },
                    "finish_reason": "STOP",
                }
            ],
            "usage_metadata": {
                "prompt_token_count": 60,
                "cached_content_token_count": None,
                "candidates_token_count": 9,
                "thoughts_token_count": 31,
                "tool_use_prompt_token_count": None,
                "total_token_count": 100,
            },
            "model_version": "gemini-1",
            "response_id": "r-1",
        },
        usage=tokens(60, 40, None, None, 31),
        calls=(Call("get_weather", {"city": "Oslo"}, "f1"),),
        **{**GEMINI, "content": None},
    ),
    Row(
        name="gemini, all output was thought",
        source="google/genai/types.py; protobuf JSON leaves a candidatesTokenCount of 0 out",
        answer=gemini({"promptTokenCount": 60, "thoughtsTokenCount": 31, "totalTokenCount": 91}, reason="MAX_TOKENS"),
        usage=tokens(60, 31, None, None, 31),
        **{**GEMINI, "reasons": ("MAX_TOKENS",)},
    ),
    Row(
        name="gemini, prompt blocked",
        source="google/genai/types.py GenerateContentResponsePromptFeedback (camelCase)",
        answer={
            "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
            "usageMetadata": {"promptTokenCount": 60, "totalTokenCount": 60},
            "modelVersion": "gemini-1",
        },
        usage=tokens(60, 0),
        model="gemini-1",
        reasons=("PROHIBITED_CONTENT",),
    ),
    Row(
        name="gemini interactions",
        source="google/genai/_gaos/types/interactions/usage.py; only its usage is read",
        answer={
            "id": "i-1",
            "model": "gemini-1",
            "usage": {
                "total_input_tokens": 100,
                "total_cached_tokens": 40,
                "total_output_tokens": 20,
                "total_thought_tokens": 5,
                "total_tool_use_tokens": 10,
                "total_tokens": 135,
            },
        },
        usage=tokens(110, 25, 40, None, 5),
        model="gemini-1",
        id="i-1",
        calls=None,
    ),
    # --- Bedrock Converse
    Row(
        name="bedrock",
        source="botocore bedrock-runtime service-2.json TokenUsage; anomalyco/opencode#38427: input is without cache",
        answer=converse(
            {
                "inputTokens": 9,
                "outputTokens": 357,
                "totalTokens": 37575,
                "cacheReadInputTokens": 30000,
                "cacheWriteInputTokens": 7209,
                "cacheDetails": [{"ttl": "5m", "inputTokens": 7209}],
            },
            {"reasoningContent": {"reasoningText": {"text": "Let me see.", "signature": "c2ln"}}},
            {"text": "Hi."},
        ),
        provider="aws.bedrock",
        usage=tokens(37218, 357, 30000, 7209),
        reasoning="Let me see.",
        **CONVERSE,
    ),
    Row(
        name="bedrock, tool use",
        source="botocore bedrock-runtime service-2.json ToolUseBlock",
        answer=converse(
            {"inputTokens": 403, "outputTokens": 71, "totalTokens": 474},
            {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": {"city": "Oslo"}}},
            {"toolUse": {"toolUseId": "tooluse_2", "name": "search", "input": {}, "type": "server_tool_use"}},
            stop="tool_use",
        ),
        provider="aws.bedrock",
        usage=tokens(403, 71),
        calls=(Call("get_weather", {"city": "Oslo"}, "tooluse_1"),),
        **{**CONVERSE, "reasons": ("tool_use",), "content": None},
    ),
    # --- Ollama
    Row(
        name="ollama chat",
        source="docs.ollama.com/api/chat; ollama/_types.py ChatResponse",
        answer={
            "model": "llama3.2",
            "created_at": "2026-01-01T00:00:00Z",
            "message": {
                "role": "assistant",
                "content": "",
                "thinking": "Let me see.",
                "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}],
            },
            "done": True,
            "done_reason": "stop",
            "total_duration": 5191566416,
            "prompt_eval_count": 26,
            "eval_count": 298,
        },
        usage=tokens(26, 298),
        model="llama3.2",
        reasons=("stop",),
        calls=(Call("get_weather", {"city": "Oslo"}),),
        reasoning="Let me see.",
    ),
    Row(
        name="ollama, cached prompt",
        source="ollama/ollama#3427: prompt_eval_count may be left out",
        answer={
            "model": "llama3.2",
            "message": {"role": "assistant", "content": "Hi."},
            "done": True,
            "done_reason": "stop",
            "eval_count": 298,
        },
        usage=tokens(None, 298),
        model="llama3.2",
        reasons=("stop",),
        content="Hi.",
    ),
    Row(
        name="ollama generate",
        source="ollama/_types.py GenerateResponse; stdapi-ai/stdapi.ai#252: the cached count is part of the prompt's",
        answer={
            "model": "llama3.2",
            "response": "Hi.",
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 26,
            "prompt_eval_cached_count": 20,
            "eval_count": 298,
        },
        usage=tokens(26, 298, 20),
        model="llama3.2",
        reasons=("stop",),
        content="Hi.",
    ),
    # --- Only usage is known
    Row(
        name="deepseek harness",
        source="deepseek-ai/deepseek-harness notifications: input without cache reads, 30 + 7 + 20 = 57",
        answer={
            "usage": {
                "inputTokens": 30,
                "outputTokens": 7,
                "cacheReadTokens": 20,
                "cacheWriteTokens": 0,
                "totalTokens": 57,
            }
        },
        usage=tokens(50, 7, 20, 0),
        calls=None,
    ),
    Row(
        name="langchain message",
        source="reference.langchain.com, langchain-core UsageMetadata: input_tokens is the sum of all input",
        answer={
            "usage_metadata": {
                "input_tokens": 350,
                "output_tokens": 240,
                "total_tokens": 590,
                "input_token_details": {"audio": 10, "cache_creation": 200, "cache_read": 100},
                "output_token_details": {"audio": 10, "reasoning": 200},
            },
            "id": "run-1",
        },
        usage=tokens(350, 240, 100, 200, 200),
        id="run-1",
        calls=None,
    ),
    Row(
        name="own names",
        source="loopspan.Usage",
        answer={"usage": {"input_tokens": 1000, "output_tokens": 10, "cache_read_tokens": 800, "reasoning_tokens": 5}},
        usage=tokens(1000, 10, 800, None, 5),
        calls=None,
    ),
    Row(
        name="one main field",
        source="examples/usage.py: a provider that does not say its input",
        answer={"usage": {"input_tokens": None, "output_tokens": 5}},
        usage=tokens(None, 5),
        calls=None,
    ),
    Row(
        name="usage is null",
        source="OpenAI's form without stream_options, and providers that do not count",
        answer=chat(None),
        usage=None,
        **CHAT,
    ),
]
