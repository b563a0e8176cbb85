"""The report of a comparison: a table for users, or one JSON object a line."""

import json
from collections.abc import Sequence

from bench.compare.ratios import LIMIT, Comparison

__all__ = ["as_json", "as_text"]

_ROW = "{:<46}{:>10}{:>10}  {:<5}{:>7}{:>9}  {:<15}{}"


def as_text(comparisons: Sequence[Comparison], *, revision: str, turns: int) -> str:
    """Return a table and what follows from it."""
    head = _ROW.format("measure", revision[:9], "current", "unit", "ratio", "spread", "95 % interval", "")
    rows = [_row(each).rstrip() for each in comparisons]
    slower = [each.measure for each in comparisons if each.is_slower]
    faster = [each.measure for each in comparisons if each.is_faster]
    told = [
        f"{turns} turns each. The ratio is current / {revision}; less is better.",
        f"Slower, the whole interval above {LIMIT}: {', '.join(slower) or 'none'}.",
        f"Faster, the whole interval below 1: {', '.join(faster) or 'none'}.",
    ]
    return "\n".join([head.rstrip(), *rows, "", *told])


def as_json(comparisons: Sequence[Comparison]) -> str:
    """Return one object a line, as other benchmarks print them, with the interval beside the ratio."""
    return "\n".join(json.dumps(_line(each), ensure_ascii=False, separators=(",", ":")) for each in comparisons)


def _row(each: Comparison) -> str:
    verdict = "slower" if each.is_slower else "faster" if each.is_faster else ""
    interval = f"{each.low:.3f} - {each.high:.3f}"
    return _ROW.format(
        each.measure,
        f"{each.base:.4g}",
        f"{each.current:.4g}",
        each.unit,
        f"{each.ratio:.3f}",
        f"{each.spread:.1%}",
        interval,
        verdict,
    )


def _line(each: Comparison) -> dict[str, object]:
    return {
        "bench": "compare",
        "measure": each.measure,
        "ours": round(each.current, 4),
        "limit": round(each.base, 4),
        "unit": each.unit,
        "ratio": round(each.ratio, 4),
        "goal": f"<= {LIMIT}",
        "holds": not each.is_slower,
        "spread": round(each.spread, 4),
        "low": round(each.low, 4),
        "high": round(each.high, 4),
        "faster": each.is_faster,
    }
