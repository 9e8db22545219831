"""The number of streams that are sent at the same time."""

import pytest

from broker.http.streams import Streams
from broker.management.request import BUSY, Refused
from tests.support.broker import RecordingWatcher


def test_a_stream_takes_a_place_until_its_end() -> None:
    streams = Streams(1, RecordingWatcher())
    streams.begin()
    with pytest.raises(Refused, match="1 streams are under way") as refused:
        streams.begin()
    assert refused.value.status == BUSY
    streams.end()
    streams.begin()
    assert streams.under_way == 1
