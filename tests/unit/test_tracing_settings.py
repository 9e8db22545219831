"""The table `tracing`: what it takes."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from broker.tracing_settings import TracingSettings

pytestmark = pytest.mark.requirement("OPS-09")


def test_there_are_no_traces_by_default() -> None:
    assert TracingSettings().endpoint is None


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:4318/v1/traces", "https://collector/v1"])
def test_a_collector(endpoint: str) -> None:
    assert str(TracingSettings.model_validate({"endpoint": endpoint}).endpoint) == endpoint


@pytest.mark.parametrize(
    "given",
    [
        {"endpoint": "127.0.0.1:4318"},
        {"endpoint": "grpc://collector:4317"},
        {"endpoint": ""},
        {"endpoint": "https://shop:sesame@collector/v1/traces"},
        {"service_name": ""},
        {"ratio": 0.5},
    ],
)
def test_wrong_settings(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        TracingSettings.model_validate(given)
