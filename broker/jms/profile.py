"""The two editions of the mapping that are spoken here."""

from __future__ import annotations

from enum import Enum


class Profile(Enum):
    """WD10 is Working Draft 10, what Qpid JMS speaks; EARLY is the draft before it.

    They differ in identifiers, JMSType, vendor properties, the annotations of destinations
    and of the delivery time, and in what tells the kind of a message that does not say it.
    """

    WD10 = "wd10"
    EARLY = "early"
