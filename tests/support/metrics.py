"""Pages of metrics, as Prometheus' own library reads them."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from broker.http.metric_table import PREFIX
from tests.support.broker import Broker
from tests.support.http import ask, served

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Page:
    """The samples of a page by name and labels; types and texts by the name of the metric."""

    values: dict[tuple[str, Labels], float]
    types: dict[str, str]
    texts: dict[str, str]

    def value(self, name: str, **labels: str) -> float:
        """Return the value of one sample; the name is without the prefix."""
        return self.values[PREFIX + name, tuple(sorted(labels.items()))]

    def names(self) -> set[str]:
        """Return the names of all samples, without the prefix."""
        return {name.removeprefix(PREFIX) for name, _ in self.values}

    def labels(self, name: str) -> list[dict[str, str]]:
        """Return the labels of every sample of that name."""
        return [dict(labels) for known, labels in self.values if known == PREFIX + name]


def read_page(text: str) -> Page:
    """Return the page; fail if a sample is there twice, or a metric in two places."""
    page = Page({}, {}, {})
    for family in text_string_to_metric_families(text):
        assert family.name not in page.types, f"{family.name} is in two places"
        page.types[family.name] = family.type
        page.texts[family.name] = family.documentation
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in page.values, f"{key} is there twice"
            page.values[key] = sample.value
    return page


async def page_of(broker: Broker) -> Page:
    """Return the metrics of `broker`, as a client of HTTP reads them."""
    async with served(broker.store, broker=broker) as url:
        answer = await ask(f"{url}/metrics")
    assert (answer.status, answer.is_whole) == (200, True)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read_page(answer.body.decode())
