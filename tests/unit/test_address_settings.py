"""The table of address settings, and everything that is derived from it."""

from __future__ import annotations

import inspect

import pytest

from broker.address_settings import NAMES, default_of, text_of
from broker.routing.addresses.policy import AddressPolicy
from broker.settings import Settings
from config import settings_texts


def test_each_setting_has_a_text() -> None:
    assert [name for name in NAMES if not text_of(name)] == []


def test_all_addresses_have_the_defaults_of_the_table() -> None:
    values = Settings().model_dump()
    assert {name: values[name] for name in NAMES} == {name: default_of(name) for name in NAMES}


@pytest.mark.incompatible_with_mypyc
def test_a_policy_has_the_settings_of_the_table_and_their_defaults() -> None:
    """Compiled code has no signature to inspect."""
    parameters = inspect.signature(AddressPolicy).parameters
    assert {name: each.default for name, each in parameters.items()} == {
        name: default_of(name) for name in NAMES
    }


def test_the_settings_file_is_as_the_table_makes_it() -> None:
    text = settings_texts.FILE.read_text()
    assert settings_texts.file_text(text) == text, "run `make references`"


def test_the_reference_page_is_as_the_table_makes_it() -> None:
    assert settings_texts.PAGE.read_text() == settings_texts.page(), "run `make references`"
