"""Reading back, placeholder."""
from __future__ import annotations
def ratio(options): return []
