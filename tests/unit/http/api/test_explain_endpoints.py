"""The endpoints that explain: each kind of explanation of management has one."""

from __future__ import annotations

import pytest

from broker.http.api.explain_endpoints import explain_endpoints
from broker.http.api.table import endpoints
from broker.management.route import explanations_of
from tests.support.broker import Broker

pytestmark = [pytest.mark.requirement("OPS-19"), pytest.mark.requirement("OPS-21")]


def test_each_explanation_of_management_has_an_endpoint() -> None:
    explained = {each.path.removeprefix("/explain/") for each in explain_endpoints()}
    assert explained == explanations_of(Broker().container).keys()


def test_they_are_among_the_endpoints_of_the_api() -> None:
    assert {each.path for each in explain_endpoints()} <= {each.path for each in endpoints()}
