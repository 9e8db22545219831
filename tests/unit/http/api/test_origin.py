"""Pages of other sites make a browser change nothing."""

import pytest

from broker.http.api.origin import check_origin
from broker.http.api.problems import Failure

HOST = "localhost:8161"


@pytest.mark.requirement("OPS-01")
@pytest.mark.attack("S7")
@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        pytest.param({}, True, id="a program"),
        pytest.param({"sec-fetch-site": "same-origin"}, True, id="a page of the broker"),
        pytest.param({"sec-fetch-site": "none"}, True, id="the address bar"),
        pytest.param({"sec-fetch-site": "same-site"}, False, id="another port"),
        pytest.param({"sec-fetch-site": "cross-site"}, False, id="another site"),
        pytest.param({"origin": f"http://{HOST}"}, True, id="the own origin"),
        pytest.param({"origin": f"http://{HOST.upper()}"}, True, id="in other letters"),
        pytest.param({"origin": "http://evil.example"}, False, id="another origin"),
        pytest.param({"origin": "null"}, False, id="no origin, of a frame"),
        pytest.param({"origin": "http://[x"}, False, id="nonsense"),
    ],
)
def test_who_may_change_something(headers: dict[str, str], passes: bool) -> None:
    given = {"host": HOST, **headers}
    if passes:
        check_origin(given)
    else:
        with pytest.raises(Failure) as caught:
            check_origin(given)
        assert caught.value.status == 403


def test_no_host_is_no_origin() -> None:
    with pytest.raises(Failure):
        check_origin({"origin": "http://"})
