"""Prices from the `genai-prices` package (extra `[prices]`): `configure(prices="genai-prices")`."""

from __future__ import annotations

from decimal import Decimal
from importlib import metadata
from typing import Any

from loopspan.errors import ConfigurationError
from loopspan.usage.money import Cost
from loopspan.usage.tokens import Usage

PROVIDERS = {
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "aws.bedrock": "aws",
    "azure.ai.openai": "azure",
    "mistral_ai": "mistral",
    "x_ai": "x-ai",
}
"""The package's provider ids, where the OpenTelemetry conventions have other ones."""


def genai_price(provider: str | None, model: str | None, usage: Usage) -> Cost | None:
    """An estimate in US dollars with the table's name and version; None for a model that the table does not have.

    Raises ConfigurationError where the package is not installed.
    """
    package = _package()
    if model is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    priced = package.Usage(
        input_tokens=usage.input_tokens or 0,
        output_tokens=usage.output_tokens or 0,
        cache_read_tokens=usage.cache_read_tokens or 0,
        cache_write_tokens=usage.cache_write_tokens or 0,
    )
    try:
        found = package.calc_price(priced, model_ref=model, provider_id=PROVIDERS.get(provider or "", provider))
    except LookupError:
        return None
    return Cost(Decimal(found.total_price), "USD", "estimated", f"genai-prices {metadata.version('genai-prices')}")


def _package() -> Any:
    try:
        import genai_prices
    except ImportError as error:
        raise ConfigurationError("prices='genai-prices': install loopspan[prices]") from error
    return genai_prices
