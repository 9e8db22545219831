"""The text format of Prometheus: its own library reads the values that were written."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from broker.http.metric_table import COUNTER, GAUGE, HISTOGRAM, Metric
from broker.http.metric_text import escaped, histogram, number, samples
from broker.stats import Histogram
from tests.support.metrics import read_page

NAMED = Metric("things_total", COUNTER, r"Things, by \name", ("name", "kind"))

HOSTILE = [
    pytest.param('"} 1\njms_broker_forged 7\n', id="an end of line and a forged sample"),
    pytest.param("\\", id="a backslash"),
    pytest.param('\\"', id="a backslash and a quote"),
    pytest.param("\\n", id="a backslash and the letter n"),
    pytest.param('a",kind="b', id="another label"),
    pytest.param("{}#= ", id="signs of the format"),
    pytest.param("\r\t\x00\x85\u2028", id="other ends of lines"),
    pytest.param("größe 📦", id="letters beyond ASCII"),
    pytest.param("", id="nothing"),
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_label_with_a_hostile_value_is_read_as_it_was(value: str) -> None:
    page = read_page(samples(NAMED, [((value, "k"), 3)]))
    assert page.values == {(NAMED.full_name(), (("kind", "k"), ("name", value))): 3}


@given(st.text(), st.text(), st.integers(0, 2**53) | st.floats(0, 1e300))
def test_all_labels_and_values_are_read_as_they_were(one: str, other: str, value: float) -> None:
    page = read_page(samples(NAMED, [((one, other), value)]))
    assert page.values == {(NAMED.full_name(), (("kind", other), ("name", one))): value}


class Described(Collector):
    """Shows metrics of Prometheus' library."""

    def __init__(self, *families: Family) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


def oracle(*families: Family) -> str:
    """Return the page that Prometheus' library writes."""
    registry = CollectorRegistry()
    registry.register(Described(*families))
    return generate_latest(registry).decode()


def test_a_counter_is_written_as_by_the_library_of_prometheus() -> None:
    known = CounterMetricFamily("jms_broker_things", NAMED.help, labels=NAMED.labels)
    known.add_metric(['a"\n\\', "k"], 3)
    known.add_metric(["b", "k"], 4)
    ours = samples(NAMED, [(('a"\n\\', "k"), 3), (("b", "k"), 4)])
    assert read_page(ours) == read_page(oracle(known))


@given(st.lists(st.integers(-5, 2**40)))
def test_a_histogram_is_written_as_by_the_library_of_prometheus(values: list[int]) -> None:
    counted = Histogram(250)
    for value in values:
        counted.observe(value)
    seen = [max(0, value) for value in values]
    bounds = [250 * 2**at for at in range(16)]
    buckets = [
        (str(bound / 1_000_000), float(sum(value <= bound for value in seen))) for bound in bounds
    ]
    known = HistogramMetricFamily("jms_broker_times_seconds", "Times")
    known.add_metric([], [*buckets, ("+Inf", float(len(seen)))], sum(seen) / 1_000_000)
    ours = histogram(Metric("times_seconds", HISTOGRAM, "Times"), counted, 1_000_000)
    assert read_page(ours) == read_page(oracle(known))


def test_a_metric_without_samples_has_its_head() -> None:
    page = read_page(samples(Metric("nothing", GAUGE, "None"), []))
    assert (page.values, page.types) == ({}, {"jms_broker_nothing": "gauge"})


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (2**53 + 1, "9007199254740993"), (0.25, "0.25")],
    ids=["nothing", "a large counter keeps all digits", "a fraction"],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


def test_a_common_name_is_not_copied() -> None:
    name = "orders.created"
    assert escaped(name) is name
