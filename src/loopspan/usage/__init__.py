"""Tokens and cost as values: what a provider reported in one form, with sums, differences and limits."""

from __future__ import annotations

from loopspan.usage.budget import Budget
from loopspan.usage.money import Cost, CostSource, CostTotals
from loopspan.usage.shapes import Get, count, getter, peek
from loopspan.usage.tokens import Usage, total

__all__ = ["Budget", "Cost", "CostSource", "CostTotals", "Get", "Usage", "count", "getter", "peek", "total"]
