"""The wording of Harbor's Terminus2 for answers that it cannot parse (seed: the error branch of its loop)."""

from __future__ import annotations

RESPONSE_TYPES = {"json": "JSON response", "xml": "response"}
"""What an answer is called in the corrective prompt, by parser."""


def is_parse_error(feedback: str | None) -> bool:
    """Whether the parser's feedback takes the error branch: it is not empty and contains `ERROR:`."""
    return bool(feedback) and "ERROR:" in str(feedback)


def response_type(parser: str) -> str:
    """What an answer is called for `parser`, "json" or "xml".

    Raises ValueError in the seed's words for any other parser.
    """
    if parser not in RESPONSE_TYPES:
        raise ValueError(f"Unknown parser_name: {parser}. Use 'json' or 'xml'.")
    return RESPONSE_TYPES[parser]


def corrective_prompt(feedback: str, parser: str) -> str:
    """The prompt that asks the model to mend its answer.

    Raises ValueError for an unknown parser.
    """
    kind = response_type(parser)
    return f"Previous response had parsing errors:\n{feedback}\n\nPlease fix these issues and provide a proper {kind}."
