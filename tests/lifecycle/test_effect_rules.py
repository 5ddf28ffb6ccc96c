"""lifecycle.md, *Effects*, *Reconcile* and *Also refused*: no effect twice, none beside an unknown one; every row."""

from __future__ import annotations

from lifecycle.facts import (
    CALLED,
    FAILED,
    IN_FLIGHT,
    KEYED,
    MANUAL,
    ON_MANUAL,
    ON_UNKNOWN,
    RUNNING,
    TWO,
    UNKNOWN,
    asked,
    call_closed,
    entered,
    failed,
    inquired,
    of,
    once,
    opened,
    person_needed,
    person_said,
    resolved,
    reused,
    run,
    succeeded,
    unknown,
    unresolved,
)
from lifecycle.rows import Accepted, Refused, table
from loopspan.values import Effect

STRICT = (Effect.KEYED, Effect.RECONCILABLE, Effect.UNSAFE)


EFFECTS = [
    *(
        Accepted(
            f"{effect}: an exception that proves that nothing happened is a failure", (*of(effect), entered()), failed()
        )
        for effect in (None, *Effect)
    ),
    *(
        Accepted(f"{effect}: any other end is unknown", (*of(effect), entered()), unknown(), call={"unknown": True})
        for effect in STRICT
    ),
    Accepted(
        "not declared: a crash inside the body of a durable run is unknown",
        (run(durable=True), opened(), entered()),
        unknown(),
        call={"unknown": True},
    ),
    *(
        Accepted(f"{effect}: repeated after a failure", once(effect), entered(attempt=2))
        for effect in (Effect.READ_ONLY, Effect.IDEMPOTENT, Effect.RECONCILABLE)
    ),
    Accepted(
        "keyed: repeated after a failure, with the same key",
        (*of("keyed"), entered(key_digest="k"), failed()),
        entered(attempt=2, key_digest="k"),
        call={"key_digest": "k"},
    ),
    Accepted(
        "keyed: same_key is the resolution",
        KEYED,
        resolved(outcome="same_key"),
        call={"resend": True, "unknown": True},
    ),
    Accepted(
        "keyed: sent again with the same key",
        (*KEYED, resolved(outcome="same_key")),
        entered(attempt=2, key_digest="k"),
        call={"in_flight": True, "unknown": False},
    ),
    Accepted("keyed: reconciled otherwise", KEYED, inquired(), call={"unknown": True}),
    Accepted(
        "reconcilable: repeated after not_committed",
        (*UNKNOWN, inquired(), resolved(outcome="not_committed")),
        entered(attempt=2),
        call={"attempts": 2, "unknown": False},
    ),
    Accepted(
        "unsafe: repeated only when a person said that it did not happen",
        (*of("unsafe"), entered(), unknown(), person_needed(), person_said(outcome="not_committed")),
        entered(attempt=2),
    ),
    Accepted("read-only tools run beside an unknown effect", (*UNKNOWN, opened(TWO, effect="read_only")), entered(TWO)),
    Accepted("everything runs when it is resolved", (*UNKNOWN, resolved(), opened(TWO, effect="unsafe")), entered(TWO)),
    Accepted(
        "other attempts end beside an unknown effect", (*UNKNOWN[:3], opened(TWO), entered(TWO), unknown()), failed(TWO)
    ),
]


SETTLED = [
    Accepted("the remote side is asked", UNKNOWN, inquired(), {"lifecycle": "running"}, {"unknown": True}),
    Accepted("it answers committed", UNKNOWN, resolved(), call={"unknown": False, "committed": True}),
    Accepted("the committed result is reused", (*UNKNOWN, resolved()), reused(), call={"committed": True}),
    Accepted(
        "it answers not_committed",
        UNKNOWN,
        resolved(outcome="not_committed"),
        call={"unknown": False, "committed": False, "settled": True},
    ),
    Accepted("it cannot tell", UNKNOWN, unresolved(), call={"unknown": True}),
    Accepted("a person is needed", UNKNOWN, person_needed(), call={"unknown": True, "manual": True}),
    Accepted("all of that while suspended", ON_UNKNOWN, resolved(), {"lifecycle": "suspended"}),
    Accepted("a person says committed", ON_MANUAL, person_said(), call={"unknown": False, "committed": True}),
    Accepted(
        "a person says not_committed",
        ON_MANUAL,
        person_said(outcome="not_committed"),
        call={"unknown": False, "settled": True},
    ),
    Accepted("a person abandons it", ON_MANUAL, person_said(outcome="abandoned"), call={"unknown": True}),
]


NOT_TWICE = [
    *(
        Refused(
            f"{effect} after it succeeded",
            (*of(effect), entered(), succeeded()),
            entered(attempt=2),
            "committed",
            "tool_result_reused",
        )
        for effect in STRICT
    ),
    *(
        Refused(
            f"{effect} after it succeeded, the call opened again",
            (*of(effect), entered(), succeeded(), call_closed(), opened(effect=effect)),
            entered(attempt=2),
            "committed",
            "tool_result_reused",
        )
        for effect in STRICT
    ),
    Refused(
        "anything in a durable run after it succeeded",
        (run(durable=True), opened(), entered(), succeeded()),
        entered(attempt=2),
        "committed",
        "tool_result_reused",
    ),
    Refused("a result that was reused", (*CALLED, reused()), entered(), "committed", "tool_result_reused"),
    Refused("reconciled as committed", (*UNKNOWN, resolved()), entered(attempt=2), "committed", "tool_result_reused"),
    Refused(
        "committed as a person says", (*MANUAL, person_said()), entered(attempt=2), "committed", "tool_result_reused"
    ),
    Refused("while it is unknown", UNKNOWN, entered(attempt=2), "unknown_attempt", "reconcile first"),
    Refused("while it is unknown, reused", UNKNOWN, reused(), "unknown_attempt", "reconcile first"),
    Refused("asked for while it is unknown", UNKNOWN, asked(), "unknown_attempt", "reconcile first"),
    Refused("while a person is asked", MANUAL, entered(attempt=2), "unknown_attempt", "reconcile first"),
    Refused("unsafe after a failure", once("unsafe"), entered(attempt=2), "unsafe_retry", "keyed or reconcilable"),
    Refused(
        "unsafe after a failure, the call opened again",
        (*once("unsafe"), call_closed(outcome="failed"), opened(effect="unsafe")),
        entered(attempt=2),
        "unsafe_retry",
        "keyed or reconcilable",
    ),
    *(
        Refused(
            f"{name} on a retry",
            (*of("keyed"), entered(key_digest=first), failed()),
            entered(attempt=2, key_digest=second),
            "another_key",
            "the idempotency key of the first attempt",
        )
        for name, first, second in (("another key", "k", "l"), ("no key", "k", None), ("a key at last", None, "k"))
    ),
    Refused(
        "another key when it is sent again",
        (*KEYED, resolved(outcome="same_key")),
        entered(attempt=2, key_digest="l"),
        "another_key",
        "the idempotency key of the first attempt",
    ),
    Refused(
        "another key when the call is opened again",
        (*of("keyed"), entered(key_digest="k"), failed(), call_closed(outcome="failed"), opened(effect="keyed")),
        entered(attempt=2, key_digest="l"),
        "another_key",
        "the idempotency key of the first attempt",
    ),
    *(
        Refused(
            f"{effect} beside an unknown effect",
            (*UNKNOWN, opened(TWO, effect=effect)),
            entered(TWO),
            "unknown_effect",
            "reconcile it first",
        )
        for effect in (None, *Effect)
        if effect is not Effect.READ_ONLY
    ),
    Refused(
        "anything beside an effect that is to be sent again",
        (*KEYED, resolved(outcome="same_key"), opened(TWO)),
        entered(TWO),
        "unknown_effect",
        "reconcile it first",
    ),
]


NOT_SETTLED = [
    *(
        Refused(
            f"{effect}: a failure is known", (*of(effect), entered()), unknown(), "failed_instead", "record tool_failed"
        )
        for effect in (None, Effect.READ_ONLY, Effect.IDEMPOTENT)
    ),
    *(
        Refused(f"{event.name} of a known outcome", FAILED, event, "not_unknown", "nothing to settle")
        for event in (inquired(), resolved(), unresolved(), person_needed(), person_said())
    ),
    *(
        Refused(
            f"{event.name} of another attempt",
            UNKNOWN,
            event,
            "attempt_number",
            "attempt 1 of 'tool_1' is the unknown one",
        )
        for event in (inquired(attempt=2), resolved(attempt=2), unresolved(attempt=2), person_needed(attempt=2))
    ),
    *(
        Refused(f"{event.name} of a call that is not open", RUNNING, event, "call_not_open", "tool_call_opened first")
        for event in (inquired(), resolved(), unresolved(), person_needed(), person_said(), reused(), succeeded())
    ),
    Refused("an answer that says nothing", UNKNOWN, resolved(outcome="unknown"), "outcome", "use one of committed"),
    Refused(
        "the same key of a tool without one", UNKNOWN, resolved(outcome="same_key"), "same_key", "ask the remote side"
    ),
    Refused("nobody decided", MANUAL, person_said(actor=""), "no_actor", "actor="),
    Refused("a person's word that says nothing", MANUAL, person_said(outcome="maybe"), "outcome", "abandoned"),
    Refused("reused while the body is entered", IN_FLIGHT, reused(), "attempt_in_flight", "the end of the attempt"),
]


ROWS = [*EFFECTS, *SETTLED, *NOT_TWICE, *NOT_SETTLED]


@table([*EFFECTS, *SETTLED])
def test_an_effect_is_settled(row: Accepted):
    row.check()


@table([*NOT_TWICE, *NOT_SETTLED])
def test_an_effect_does_not_happen_twice(row: Refused):
    row.check()
