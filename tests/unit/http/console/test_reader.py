"""Lists that are a part of a page: it is shown without them, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.access import ADA
from tests.support.api import api_of
from tests.support.console import Browser

pytestmark = pytest.mark.requirement("OPS-06")


async def test_a_part_that_a_client_may_not_see_is_explained(tmp_path: Path) -> None:
    async with api_of(tmp_path, "view management:queues") as api:
        api.broker.fill("orders")
        browser = Browser(api)
        await browser.log_in(ADA)
        page = await browser.page("/queues/orders")
        assert "not allowed to view management:connections" in page
        assert "<dt>messages</dt><dd>1</dd>" in page
