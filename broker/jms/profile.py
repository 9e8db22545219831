"""The two editions of the mapping that are supported."""

from __future__ import annotations

from enum import Enum


class Profile(Enum):
    """An edition of the mapping: Working Draft 10, which Qpid JMS uses, or EARLY, the one before.

    They differ in identifiers, JMSType, vendor properties, the annotations of destinations
    and of the delivery time, and in how the kind of a message without annotation is determined.
    """

    WD10 = "wd10"
    EARLY = "early"
