"""Cases, group metrics: no id is a label, and an exemplar leads to its trace."""

from __future__ import annotations

from typing import Any

import loopspan
from loopspan.testing import capture
from metered import metered, price, run_everything, series


def test_L1_a_thousand_users_and_runs_are_the_series_of_one():
    def one(number: int) -> None:
        with loopspan.context(
            conversation_id=f"conversation-{number}", subject=f"user-{number}", attributes={"tenant": f"t-{number}"}
        ):
            loopspan.agent_loop("agent")(loopspan.model_request(provider="p", model="m")(lambda: said(number)))()

    def said(number: int) -> dict[str, Any]:
        return {"id": f"answer-{number}", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}

    with capture() as captured, metered() as read:
        one(0)
        first = series(read())
        for number in range(1, 100):
            one(number)
        assert series(read()) == first
    assert len({span.attributes["loopspan.run.id"] for span in captured.spans}) == 100, "ids are on spans"


def test_L2_what_is_recorded_after_a_span_has_ended_leads_to_its_trace():
    with capture(strict=False) as captured, metered(prices=price) as read:
        run_everything()
        metrics = read()
    ids = {(span.get_span_context().trace_id, span.get_span_context().span_id) for span in captured.spans}
    for name in ("gen_ai.client.inference.duration", "gen_ai.execute_tool.duration", "gen_ai.invoke_agent.duration"):
        for point in metrics[name].points.values():
            assert point.exemplars
            assert {(exemplar.trace_id, exemplar.span_id) for exemplar in point.exemplars} <= ids
