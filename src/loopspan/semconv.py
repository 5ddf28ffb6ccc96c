"""Every name that leaves the process. Nothing else writes a literal.

GenAI names follow open-telemetry/semantic-conventions-genai v0.1.0 (status: Development); own names start with
`loopspan.`. Nothing is invented under `gen_ai.`.
"""

from __future__ import annotations

SCOPE = "loopspan"
SCHEMA_URL = "https://opentelemetry.io/schemas/gen-ai/0.1.0"
PREFIX = "loopspan."

# GenAI conventions: span attributes
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
FINISH_REASONS = "gen_ai.response.finish_reasons"
USAGE_INPUT = "gen_ai.usage.input_tokens"
USAGE_OUTPUT = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE = "gen_ai.usage.cache_write.input_tokens"
USAGE_REASONING = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR_TYPE = "error.type"
ENDUSER = "user.id"

# GenAI conventions: operations, which are also the first word of a span's name
CHAT = "chat"
EXECUTE_TOOL = "execute_tool"
INVOKE_AGENT = "invoke_agent"
FUNCTION = "function"

# loopspan: what is on every span
RUN_ID = "loopspan.run.id"
STEP_NUMBER = "loopspan.step.number"
PERIOD = "loopspan.period"
LIFECYCLE = "loopspan.run.lifecycle"

# loopspan: the run
STOP_REASON = "loopspan.run.stop_reason"
STOP_DETAIL = "loopspan.run.stop_detail"
PARENT_RUN_ID = "loopspan.run.parent_run_id"
PARENT_CALL_ID = "loopspan.run.parent_call_id"
SUBJECT = "loopspan.run.subject"
GOAL = "loopspan.run.goal"
STEPS = "loopspan.run.steps"
ACTIVE = "loopspan.run.active_s"
WAITING = "loopspan.run.waiting_s"
PERIODS = "loopspan.run.periods"
CONCURRENCY_PEAK = "loopspan.run.concurrency.peak"
EVENTS_COUNT = "loopspan.events.count"
EVENTS_DROPPED = "loopspan.events.dropped"

# loopspan: steps, requests, calls, attempts
STEP_OUTCOME = "loopspan.step.outcome"
BACKFILL_UNOBSERVED = "loopspan.backfill.unobserved"
BACKFILL_OUTCOME = "loopspan.backfill.outcome"
REQUEST_ID = "loopspan.request.id"
REQUEST_OUTCOME = "loopspan.request.outcome"
ATTEMPT_NUMBER = "loopspan.attempt.number"
ATTEMPT_OUTCOME = "loopspan.attempt.outcome"
BACKOFF = "loopspan.attempt.backoff_s"
KEY_DIGEST = "loopspan.attempt.key_digest"
TOOL_EFFECT = "loopspan.tool.effect"
TOOL_OUTCOME = "loopspan.tool.outcome"
TOOL_ATTEMPTS = "loopspan.tool.attempts"
TOOL_ID_SOURCE = "loopspan.tool.call.id_source"
TOOL_ORDINAL = "loopspan.tool.call.ordinal"
ARGUMENTS_DIGEST = "loopspan.tool.arguments.digest"
ARGUMENTS_SIZE = "loopspan.tool.arguments.size"
VALIDATION_OUTCOME = "loopspan.validation.outcome"
VALIDATION_STAGE = "loopspan.validation.stage"
VALIDATION_REASON = "loopspan.validation.reason"
APPROVAL_ID = "loopspan.approval.id"
APPROVAL_OUTCOME = "loopspan.approval.outcome"
APPROVAL_EXPIRES = "loopspan.approval.expires_at"
APPROVAL_DECIDED_BY = "loopspan.approval.decided_by"
RECONCILE_OUTCOME = "loopspan.reconcile.outcome"
RECONCILE_TRIES = "loopspan.reconcile.tries"
RECONCILE_ACTOR = "loopspan.reconcile.actor"

# loopspan: totals, on steps and runs only, so that nothing is ever summed twice
TOTAL_USAGE = "loopspan.usage."
TOTAL_USAGE_DESCENDANTS = "loopspan.usage.descendants."
TOTAL_USAGE_DELIVERED = "loopspan.usage.delivered."
TOTAL_INCOMPLETE = "loopspan.usage.incomplete"
TOTAL_COST = "loopspan.cost."
COST_UNPRICED = "loopspan.cost.unpriced"
COST_INCOMPLETE = "loopspan.cost.incomplete"

# loopspan: every event
EVENT_SEQ = "loopspan.event.seq"
EVENT_VERSION = "loopspan.event.version"

# span names: one word, then a low-cardinality name
STEP = "step"
VALIDATE = "validate"
APPROVAL = "approval"
APPROVAL_WAIT = "approval_wait"
MANUAL_INTERVENTION = "manual_intervention"
ATTEMPT = "attempt"
RECONCILE = "reconcile"
BACKFILL = "backfill"

# the standard switch for content, and ours
CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
VARIABLE_PREFIX = "LOOPSPAN_"

# metrics of the GenAI conventions v0.1.0
M_INFERENCE_DURATION = "gen_ai.client.inference.duration"
M_USAGE = "gen_ai.client.inference.usage."
M_OPERATION_INPUT = "gen_ai.client.inference.operation.input_tokens"
M_OPERATION_OUTPUT = "gen_ai.client.inference.operation.output_tokens"
M_EXECUTE_TOOL_DURATION = "gen_ai.execute_tool.duration"
M_INVOKE_AGENT_DURATION = "gen_ai.invoke_agent.duration"
M_INVOKE_AGENT_INFERENCE_CALLS = "gen_ai.invoke_agent.inference_calls"
M_INVOKE_AGENT_TOOL_CALLS = "gen_ai.invoke_agent.tool_calls"
TOKEN_MODALITY = "gen_ai.token.modality"
TOKEN_TYPE = "gen_ai.token.type"

# metrics of the general conventions 1.41, which today's dashboards still ask for
M_141_TOKEN_USAGE = "gen_ai.client.token.usage"
M_141_OPERATION_DURATION = "gen_ai.client.operation.duration"

# metrics of our own, and their attributes
M_RUN_STARTED = "loopspan.run.started"
M_RUN_CLOSED = "loopspan.run.closed"
M_RUN_ACTIVE = "loopspan.run.active.duration"
M_RUN_WAITING = "loopspan.run.waiting"
M_STEP_DURATION = "loopspan.step.duration"
M_STEP_TOKENS = "loopspan.step.tokens"
M_TOOL_CALLS = "loopspan.tool.calls"
M_TOOL_ATTEMPTS = "loopspan.tool.attempts"
M_APPROVAL_WAIT = "loopspan.approval.wait"
M_UNKNOWN = "loopspan.side_effect.unknown"
M_COST = "loopspan.cost"
M_COST_UNPRICED = "loopspan.cost.unpriced"
M_CONCURRENCY = "loopspan.concurrency.peak"
M_USAGE_UNKNOWN = "loopspan.usage.unknown"
M_PRODUCED = "loopspan.telemetry.produced"
M_FAULTS = "loopspan.telemetry.faults"
SUSPEND_REASON = "loopspan.run.suspend_reason"
RESOLUTION = "loopspan.side_effect.resolution"
COST_SOURCE = "loopspan.cost.source"
CURRENCY = "loopspan.cost.currency"
KIND = "loopspan.telemetry.kind"
OTHER = "_OTHER"
