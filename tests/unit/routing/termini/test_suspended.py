"""All suspended termini of a broker: their number, their room, their users and their ends."""

import pytest

from broker.routing.termini.suspended import TAG_BYTES, TERMINUS_BYTES, SuspendedTermini
from tests.support.broker import Broker, Client, Doorman, log_in
from tests.support.resuming import LASTING, come_back, counts, holding, resting, tags_of


def rest_of(broker: Broker, name: str) -> Client:
    """Return a client that has left one delivery of `q` to a link `name` that may come back."""
    client = broker.session()
    client.attach_receiver(source=LASTING, name=name, credit=1)
    client.frames()
    resting(client)
    return client


def names(broker: Broker) -> list[str]:
    return [each.key[1] for each in broker.router.termini.all()]


def test_beyond_their_number_the_longest_suspended_ends() -> None:
    broker = Broker()
    broker.router.termini = SuspendedTermini(broker.router, termini_max=2)
    broker.fill(count=3)
    for name in ("one", "two", "three"):
        rest_of(broker, name)
    assert names(broker) == ["two", "three"]
    assert broker.router.termini.dropped == 1
    assert int(broker.queue().backlogs.waiting) == 1
    (line,) = [each for each in broker.watcher.events if "can no longer be resumed" in each]
    assert "link one of client" in line


def test_beyond_an_eighth_of_the_memory_the_longest_suspended_ends() -> None:
    broker = Broker(memory_max=8 * 6000)
    broker.fill(count=5)
    for name in ("one", "two", "three", "four", "five"):
        rest_of(broker, name)
    assert names(broker) == ["three", "four", "five"]
    assert broker.router.termini.dropped == 2


def test_tags_count_as_memory_until_the_terminus_ends() -> None:
    client = holding(3)
    memory = client.broker.router.memory
    before = memory.total()
    resting(client)
    assert memory.termini == TERMINUS_BYTES + 3 * TAG_BYTES
    assert memory.total() == before + memory.termini
    come_back(client, dict.fromkeys(tags_of(3)), credit=0)
    assert (memory.termini, memory.total()) == (0, before)


CLAIMS = [
    # owner, user, whether the user resumes it
    ("ada", "ada", True),
    ("ada", "bob", False),
    ("ada", "", False),
    ("", "", True),
    ("", "ada", True),
]


@pytest.mark.parametrize(("owner", "user", "resumes"), CLAIMS)
def test_only_its_user_resumes_a_terminus_that_has_one(
    owner: str, user: str, resumes: bool
) -> None:
    """Whether another user may end it, is asked before (`links/test_access_termini.py`)."""
    client = holding(1, broker=Broker(authenticator=Doorman()))
    log_in(client, owner)
    resting(client)
    termini = client.broker.router.termini
    (terminus,) = termini.all()
    assert termini.count_of(owner) == 1
    found = termini.claim(terminus.key, user, client.broker.journal.batch)
    assert (found is terminus) is resumes
    assert (termini.count(), termini.count_of(owner)) == (0, 0)
    assert counts(client) == (int(not resumes), int(resumes))


def test_all_end_when_the_broker_stops() -> None:
    client = holding(2)
    resting(client)
    client.broker.container.end_termini()
    assert (client.broker.router.termini.count(), counts(client)) == (0, (2, 0))


def test_an_end_that_comes_twice_is_nothing() -> None:
    client = holding(1)
    resting(client)
    termini, batch = client.broker.router.termini, client.broker.journal.batch
    (terminus,) = termini.all()
    termini.end(terminus, batch)
    termini.end(terminus, batch)
    client.broker.advance(100_000)
    assert counts(client) == (1, 0)
