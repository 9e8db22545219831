"""Bodies are checked by their models; what is wrong is told by JSON pointers."""

import pytest
from pydantic import BaseModel

from broker.http.api.bodies import ERRORS_MAX, parsed
from broker.http.api.models import BackupBody, MessageActionBody
from broker.http.api.problems import Failure

pytestmark = pytest.mark.requirement("OPS-01")


def test_a_body() -> None:
    assert parsed(b'{"file": "/x"}', BackupBody) == BackupBody(file="/x")


@pytest.mark.parametrize(
    ("body", "model", "status", "pointers"),
    [
        pytest.param(b"", BackupBody, 400, [], id="nothing"),
        pytest.param(b'{"file": "/x"', BackupBody, 400, [], id="half of it"),
        pytest.param(b'{"file": "\xff"}', BackupBody, 400, [], id="not UTF-8"),
        pytest.param(b'{"file": "\\ud800"}', BackupBody, 400, [], id="half a character"),
        pytest.param(b"[" * 500_000, BackupBody, 400, [], id="nested"),
        pytest.param(b"7", BackupBody, 422, [""], id="no object"),
        pytest.param(b"{}", BackupBody, 422, ["/file"], id="a field is missing"),
        pytest.param(b'{"file": 7}', BackupBody, 422, ["/file"], id="a wrong type"),
        pytest.param(b'{"file": "/x", "~/": 1}', BackupBody, 422, ["/~0~1"], id="an odd name"),
        pytest.param(
            b'{"action": "delete", "from": {}, "all": true}',
            *(MessageActionBody, 422, ["/from"]),
            id="a rule of the model",
        ),
    ],
)
@pytest.mark.attack("S9")
def test_wrong_bodies(
    body: bytes, model: type[BaseModel], status: int, pointers: list[str]
) -> None:
    with pytest.raises(Failure) as caught:
        parsed(body, model)
    assert caught.value.status == status
    assert [each.pointer for each in caught.value.errors] == pointers


def test_not_every_error_is_told() -> None:
    body = b"{" + b",".join(b'"x%d": 1' % number for number in range(1000)) + b"}"
    with pytest.raises(Failure) as caught:
        parsed(body, BackupBody)
    assert len(caught.value.errors) == ERRORS_MAX
