"""The page of reference names every type of entity with its operations and attributes."""

import re
from pathlib import Path
from typing import Final

import pytest

from broker.management.acl import AclEntity
from broker.management.audit_records import AuditRecords
from broker.management.backups import Backups
from broker.management.bridges import BridgeEntity
from broker.management.configuration import Configuration
from broker.management.connections import Connections, Links
from broker.management.definitions import Definitions
from broker.management.drains import DrainEntity
from broker.management.entity import Entity
from broker.management.events import Events
from broker.management.leases import LeaseEntity
from broker.management.login_sources import LoginSources
from broker.management.members import Members
from broker.management.messages import Messages
from broker.management.nodes import Nodes
from broker.management.overview import Overview
from broker.management.roles import RoleEntity
from broker.management.sinks import Sinks
from broker.management.stores import DamagedMessages, Stores
from broker.management.subscriptions import SubscriptionEntities
from broker.management.suspended_links import SuspendedLinks
from broker.management.tokens import TokenEntity
from broker.management.transactions import TransactionEntity
from broker.management.users import UserEntity

PAGE: Final = (
    Path(__file__).resolve().parents[3] / "docs" / "reference" / "management.md"
).read_text()

COMMON: Final = {"name", "identity", "type"}

SECTIONS: Final[dict[str, list[type[Entity]]]] = {
    "Queues and topics": [Nodes],
    "Messages": [Messages],
    "Subscriptions": [SubscriptionEntities],
    "Connections and links": [Connections, Links, SuspendedLinks, TransactionEntity],
    "The store": [Stores, DamagedMessages, Backups],
    "Users": [UserEntity],
    "Failed logins": [LoginSources],
    "API tokens": [TokenEntity],
    "Drains": [DrainEntity],
    "Members of a group": [Members],
    "Settings": [Configuration],
    "Access rules": [AclEntity, RoleEntity],
    "Definitions": [Definitions],
    "The broker": [Overview],
    "The audit": [AuditRecords],
    "Bridges": [BridgeEntity],
    "Sinks": [Sinks],
    "Leases": [LeaseEntity],
}


def section(title: str) -> str:
    """Return the text below a heading of the page."""
    return re.split(r"^## ", PAGE.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]


@pytest.mark.parametrize("title", SECTIONS)
def test_the_page_names_every_attribute(title: str) -> None:
    words = set(re.findall(r"`(\w+)`", section(title)))
    for entity in SECTIONS[title]:
        assert set(entity.attributes) - COMMON - words == set(), entity


@pytest.mark.parametrize("title", SECTIONS)
def test_the_page_names_every_operation(title: str) -> None:
    words = set(re.findall(r"`([A-Z-]+)`", section(title)))
    for entity in SECTIONS[title]:
        # an operation's execution needs the entity's parts; its name does not
        named = entity.operations(entity.__new__(entity))
        assert set(named) - words == set(), entity


def test_the_page_has_every_entity() -> None:
    covered = {entity for entities in SECTIONS.values() for entity in entities} | {Events}
    assert covered == set(Entity.__subclasses__())
