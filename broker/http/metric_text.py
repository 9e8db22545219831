"""Writes metrics in the text format of Prometheus, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from mypy_extensions import i64

from broker.http.metric_table import Metric
from broker.stats import BUCKETS, Histogram

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[str, ...]
Value = float | i64


def escaped(value: str) -> str:
    r"""Return a label's value as the format wants it: `\`, `"` and line feeds are escaped."""
    if "\\" in value or '"' in value or "\n" in value:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def number(value: Value) -> str:
    """Return a value as the format wants it."""
    return repr(value) if isinstance(value, float) else str(value)


def head(metric: Metric) -> str:
    """Return the two lines before the samples of a metric."""
    name = metric.full_name()
    text = metric.help.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {metric.type}\n"


def sample(metric: Metric, labels: Labels, value: Value) -> str:
    """Return the line of one sample; `labels` are values in the order of the metric's."""
    return f"{metric.full_name()}{_braces(metric, labels)} {number(value)}\n"


def _braces(metric: Metric, labels: Labels) -> str:
    if not labels:
        return ""
    pairs = zip(metric.labels, labels, strict=True)
    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in pairs) + "}"


def samples(metric: Metric, values: Iterable[tuple[Labels, Value]]) -> str:
    """Return a metric with all its samples."""
    return head(metric) + "".join(sample(metric, labels, value) for labels, value in values)


def histogram(metric: Metric, counted: Histogram, unit: int) -> str:
    """Return a histogram; `unit` of its values are 1 on the page, such as 1,000,000 µs."""
    name = metric.full_name()
    totals = list(accumulate(counted.counts))
    bounds = [counted.least * 2**at / unit for at in range(int(BUCKETS))]
    lines = [
        f'{name}_bucket{{le="{bound}"}} {total}\n'
        for bound, total in zip(bounds, totals, strict=False)
    ]
    lines.append(f'{name}_bucket{{le="+Inf"}} {totals[-1]}\n')
    lines.append(f"{name}_sum {number(counted.total / unit)}\n{name}_count {totals[-1]}\n")
    return head(metric) + "".join(lines)
