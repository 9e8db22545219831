"""The users file with a line for each user, as earlier versions wrote it."""

import pytest

from broker.security.account import UsersError
from broker.security.users_lines import comments_and_names, is_of_lines, read_lines

HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"
OTHER = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$b3RoZXI"

FORMS = [
    pytest.param("", False, id="nothing"),
    pytest.param("# ours\n\n", False, id="comments alone"),
    pytest.param(f"alice:{HASH}\n", True, id="a user"),
    pytest.param(f"# ours\n\n  alice:{HASH}\n", True, id="a user below a comment"),
    pytest.param(f"[[user]]:{HASH}\n", True, id="a user with a name like a table"),
    pytest.param(f"a = b:{HASH}\n", True, id="a user with a name like a key"),
    pytest.param("nonsense\n", True, id="neither: earlier versions said so, too"),
    pytest.param('[[user]]\nname = "alice"\n', False, id="a table"),
    pytest.param('# ours\nsalt_secret = "x"\n', False, id="a key"),
    pytest.param('"salt_secret" = "x"\n', False, id="a key in quotes"),
    pytest.param("[user\n", False, id="invalid TOML"),
]


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_which_form_a_file_has(text: str, expected: bool) -> None:
    assert is_of_lines(text) is expected


def test_a_mark_is_the_role_admin_and_none_is_application() -> None:
    users = read_lines(f"alice:{HASH}:administrator\nbob:{HASH}\n")
    assert {name: user.roles for name, user in users.items()} == {
        "alice": ("admin",),
        "bob": ("application",),
    }
    assert all(user.enabled and user.verifiers.password == HASH for user in users.values())


def test_the_last_line_of_a_user_counts() -> None:
    assert read_lines(f"a:{HASH}\na:{OTHER}\n")["a"].verifiers.password == OTHER


def test_a_version_depends_on_the_hash() -> None:
    versions = [
        read_lines(f"{name}:{known}\n")[name].credential_version
        for name, known in (("a", HASH), ("a", HASH), ("a", OTHER))
    ]
    assert versions[0] == versions[1] != versions[2]
    assert max(versions) < 1_100_000_000_000, "any time in ms is later"


BAD_LINES = [
    pytest.param("alice\n", 1, id="no hash"),
    pytest.param("# fine\nalice:secret\n", 2, id="a password in the clear"),
    pytest.param(f":{HASH}\n", 1, id="no name"),
    pytest.param(f"alice:{HASH}:admin\n", 1, id="another mark"),
    pytest.param(f"alice:{HASH}:administrator:x\n", 1, id="something behind the mark"),
    pytest.param(f"a\x07:{HASH}\n", 1, id="a control character"),
]


@pytest.mark.parametrize(("text", "line"), BAD_LINES)
def test_a_bad_line_is_named(text: str, line: int) -> None:
    with pytest.raises(UsersError, match=f"^line {line}: not `name:hash`"):
        read_lines(text)


def test_comments_are_kept_as_toml_allows_them() -> None:
    text = f"# ours\n\na:{HASH}\n # b\x07ob\nb:{HASH}\na:{OTHER}\n"
    assert list(comments_and_names(text)) == [
        ("# ours", None),
        ("", None),
        ("# b\N{REPLACEMENT CHARACTER}ob", None),
        ("", "b"),
        ("", "a"),
    ]
