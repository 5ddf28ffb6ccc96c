"""The Terminus2 seed: its error branch, run on fakes, and the same turn on loopspan leave the same step behind."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from terminus2_harness import Terminus2Seed, Turn

import loopspan
from loopspan import Answer, Content, Cost, Usage
from loopspan._journal import Entry
from loopspan.adapters.terminus2 import corrective_prompt, is_parse_error, response_type
from loopspan.testing import Captured, CountingIds, TickingClock, capture

BEFORE = "the prompt of before"
UNDERSTOOD = {
    "no feedback": Turn(feedback=None),
    "empty feedback": Turn(feedback=""),
    "feedback without an error": Turn(feedback="WARNING: extra text"),
    "an error in other words": Turn(feedback="error: no JSON"),
}
NOT_UNDERSTOOD = {
    "a parse error": Turn(),
    "an error after warnings": Turn(feedback="WARNING: extra text\nERROR: no JSON\nERROR: no keys"),
    "the XML parser": Turn(parser="xml"),
    "served by the configured model": Turn(served="configured-1"),
    "no served model": Turn(served=None),
    "an empty served model": Turn(served=""),
    "cached tokens and cost": Turn(gained={"cache": 5, "cost": 0.125}),
    "no cached tokens and no cost": Turn(gained={"cache": 0, "cost": 0}),
    "counters that went back": Turn(gained={"cache": -5, "cost": -0.125}),
    "counters that stood still": Turn(gained={"input": 0, "output": 0}),
    "the first turn of the client": Turn(before={"input": 0, "output": 0, "cache": 0, "cost": 0}, gained={"cache": 1}),
    "an answer with everything": Turn(
        content="<raw>\n\tnot parsed",
        reasoning="first the keys",
        prompt_token_ids=[1, 2, 3],
        completion_token_ids=[4, 5],
        logprobs=[-0.5, -0.25],
    ),
    "an empty answer": Turn(content=""),
}


class Played(NamedTuple):
    """What the turn left behind on loopspan."""

    prompt: str
    went_on: bool
    last_served: str | None
    captured: Captured

    def event(self, name: str) -> Entry | None:
        """The event of the turn, which is step 2."""
        found = [entry for entry in self.captured.entries if entry.name == name and entry.step == 2]
        return found[0] if found else None


def ask(turn: Turn, answer: Answer, read: Any) -> None:
    """One model request as a block, with the client's cumulative counters."""
    with loopspan.model_request(provider="harbor", model=turn.configured) as request:
        request.answer(answer)
        request.observe_totals(
            Usage(input_tokens=read("input"), output_tokens=read("output"), cache_read_tokens=read("cache")),
            cost=Cost(read("cost")),
        )


def play(turn: Turn, **settings: Any) -> Played:
    """The former turn, to which the counters stand as the seed's baselines say, then the turn itself."""
    prompt, went_on = BEFORE, False
    with (
        capture(clock=TickingClock(), ids=CountingIds(), **settings) as captured,
        loopspan.agent_loop("terminus2") as run,
    ):
        for step in run.steps():
            if step.number == 1:
                ask(turn, Answer(model="served-before"), turn.before.__getitem__)
                continue
            if step.number == 3:
                run.succeed()
                continue
            ask(turn, answer(turn), turn.after)
            if is_parse_error(turn.feedback):
                prompt = step.parse_error(turn.content, feedback=corrective_prompt(turn.feedback or "", turn.parser))
                continue
            went_on = True
            run.succeed()
    return Played(prompt, went_on, run.last_response_model, captured)


def answer(turn: Turn) -> Answer:
    """What the client's response says."""
    return Answer(
        model=turn.served,
        content=turn.content,
        reasoning=turn.reasoning,
        prompt_token_ids=turn.prompt_token_ids,
        completion_token_ids=turn.completion_token_ids,
        logprobs=turn.logprobs,
    )


def play_seed(seed: type[Terminus2Seed], turn: Turn) -> tuple[Terminus2Seed, str, bool]:
    """The same turn by the seed's own code."""
    before = tuple(turn.before[counter] for counter in ("input", "output", "cache", "cost"))
    agent = seed(turn.parser, turn.configured)
    prompt, went_on = agent.turn(turn.feedback, turn.response(), turn.chat(), before)
    return agent, prompt, went_on


def step_of(played: Played) -> dict[str, Any]:
    """The recorded turn under the names of the seed's Step."""
    error, closed = played.event("response_parse_error"), played.event("step_closed")
    assert error is not None
    assert closed is not None
    cost = None if closed.cost is None else float(Decimal(closed.cost[0]["amount"]))
    return {
        "source": error.source,
        "model_name": error.model_name,
        "message": error.message,
        "reasoning_content": error.reasoning,
        "observation": [error.prompt],
        "prompt_tokens": closed.input_tokens,
        "completion_tokens": closed.output_tokens,
        "cached_tokens": closed.cache_read_tokens,
        "cost_usd": cost,
        "prompt_token_ids": error.prompt_token_ids,
        "completion_token_ids": error.completion_token_ids,
        "logprobs": error.logprobs,
    }


def step_of_seed(step: Any) -> dict[str, Any]:
    """The seed's Step, flat."""
    own = {key: value for key, value in vars(step).items() if key not in ("step_id", "timestamp", "metrics")}
    own["observation"] = [result.content for result in step.observation.results]
    return {**own, **vars(step.metrics)}


@pytest.mark.parametrize("turn", UNDERSTOOD.values(), ids=UNDERSTOOD.keys())
def test_other_feedback_does_not_enter_the_branch(terminus2: type[Terminus2Seed], turn: Turn):
    """No step of the kind is recorded, the prompt stays, the turn goes on to what follows."""
    agent, prompt, went_on = play_seed(terminus2, turn)
    played = play(turn)
    assert (prompt, went_on, agent._trajectory_steps) == (BEFORE, True, [])
    assert (played.prompt, played.went_on) == (prompt, went_on)
    assert played.event("response_parse_error") is None
    assert [step.outcome for step in played.captured.runs[0].steps] == ["ok", "ok"]


@pytest.mark.parametrize("turn", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_the_recorded_step_is_the_seeds(terminus2: type[Terminus2Seed], turn: Turn):
    """Every field of the seed's Step and Metrics, made by the seed's own code, and the prompt that goes back."""
    agent, prompt, went_on = play_seed(terminus2, turn)
    played = play(turn)
    assert (played.prompt, played.went_on) == (prompt, went_on) == (agent_prompt(agent), False)
    assert step_of(played) == step_of_seed(agent._trajectory_steps[0])
    assert played.last_served == agent._last_response_model_name


def agent_prompt(agent: Terminus2Seed) -> str:
    """The observation of the seed's only step."""
    (result,) = agent._trajectory_steps[0].observation.results
    text: str = result.content
    return text


@pytest.mark.parametrize("turn", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_the_step_reads_back_as_the_seeds(terminus2: type[Terminus2Seed], turn: Turn):
    """What the reader gives: the raw answer as message, the prompt as observation, outcome parse_error, no call."""
    agent, prompt, _ = play_seed(terminus2, turn)
    _, step, after = play(turn).captured.runs[0].steps
    assert (step.message, step.observation) == (agent._trajectory_steps[0].message, prompt)
    assert (step.outcome, step.tool_calls) == ("parse_error", [])
    assert (after.number, after.outcome) == (3, "ok"), "the loop went on with its next turn"


def test_the_timestamp_is_utc(terminus2: type[Terminus2Seed]):
    """The seed writes an ISO text with offset zero; events have nanoseconds since the epoch, which are UTC."""
    agent, _, _ = play_seed(terminus2, Turn())
    seeds = dt.datetime.fromisoformat(agent._trajectory_steps[0].timestamp)
    assert seeds.utcoffset() == dt.timedelta(0)
    start = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    with capture(clock=TickingClock(start=start.timestamp())) as captured, loopspan.agent_loop("terminus2") as run:
        next(run.steps()).parse_error("raw", feedback="again")
        run.succeed()
    (error,) = [entry for entry in captured.entries if entry.name == "response_parse_error"]
    assert start <= dt.datetime.fromtimestamp(error.time / 1e9, dt.UTC) < start + dt.timedelta(seconds=1)
    (event,) = [event for span in captured.spans for event in span.events if event.name == "response_parse_error"]
    assert event.timestamp == error.time


def test_the_step_is_numbered_after_those_before_it(terminus2: type[Terminus2Seed]):
    """The seed counts what its trajectory has, plus one."""
    agent = terminus2("json", "configured-1")
    for _ in range(2):
        agent.turn("ERROR: x", Turn().response(), Turn().chat(), (0, 0, 0, 0))
    assert [step.step_id for step in agent._trajectory_steps] == [1, 2]
    with capture() as captured, loopspan.agent_loop("terminus2") as run:
        for step in run.steps():
            step.parse_error("raw", feedback="again")
            if step.number == 2:
                run.succeed()
    assert [entry.step for entry in captured.entries if entry.name == "response_parse_error"] == [1, 2]


def test_nothing_is_executed():
    """A parse error is a step with a chat span and nothing else."""
    tree = play(Turn()).captured.span_tree()
    assert tree == [
        (
            "invoke_agent terminus2",
            [
                ("step", [("chat configured-1", [])]),
                ("step", [("chat configured-1", [])]),
                ("step", []),
            ],
        )
    ]


def test_without_content_the_step_keeps_the_figures_and_none_of_the_words():
    """Content policy off: no raw answer, prompt, reasoning, token ids or log probabilities leave the process."""
    turn = NOT_UNDERSTOOD["an answer with everything"]
    played = play(turn, content=Content.NO_CONTENT)
    content = ("message", "observation", "reasoning_content", "prompt_token_ids", "completion_token_ids", "logprobs")
    step = step_of(played)
    assert {key: step[key] for key in content} == {**dict.fromkeys(content), "observation": [None]}
    assert (step["prompt_tokens"], step["completion_tokens"], step["model_name"]) == (7, 3, "served-1")
    assert played.prompt.startswith("Previous response had parsing errors:\nERROR: no JSON"), "the loop has its prompt"
    exported = "".join(span.to_json() for span in played.captured.spans)
    assert "not parsed" not in exported
    assert "Previous response" not in exported
    assert "first the keys" not in exported


@pytest.mark.parametrize("parser", ["yaml", "", "JSON", "None"])
def test_an_unknown_parser_is_refused_in_the_seeds_words(terminus2: type[Terminus2Seed], parser: str):
    """No fallback: the name that was given is in the message, with the two that are known."""
    with pytest.raises(ValueError, match="Use 'json' or 'xml'") as expected:
        terminus2(parser, "configured-1")._get_error_response_type()
    with pytest.raises(ValueError, match="Use 'json' or 'xml'") as error:
        response_type(parser)
    assert str(error.value) == str(expected.value)
    with pytest.raises(ValueError, match="Use 'json' or 'xml'") as error:
        corrective_prompt("ERROR: no JSON", parser)
    assert str(error.value) == str(expected.value)


@pytest.mark.parametrize("parser", ["json", "xml"])
def test_an_answer_is_called_as_in_the_seed(terminus2: type[Terminus2Seed], parser: str):
    """The two names are the seed's, not the parsers' own."""
    assert response_type(parser) == terminus2(parser, "")._get_error_response_type()
