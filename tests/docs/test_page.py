"""Blocks, commands and outputs are read from a page as its writer means them."""

import pytest

from tests.docs.page import blocks, commands, faults, first_commands, matches

PAGE = """\
<!-- run first: jms-broker serve -->

```console
$ jms-broker send hello \\
    world
sent 1

$ jms-broker receive nothing  # status 3
```

<!-- not run: it needs a daemon -->

```console
$ docker ps
```

    ```python title="a/one.py"
    if True:
        pass
    ```
"""


def test_the_blocks_of_a_page() -> None:
    first, second, third = blocks(PAGE)
    assert (first.line, first.language, first.reason) == (3, "console", "")
    assert (second.reason, second.is_read_only) == ("it needs a daemon", True)
    assert (third.title, third.text) == ("a/one.py", "if True:\n    pass\n")


def test_the_commands_that_run_first() -> None:
    (serve,) = first_commands(PAGE)
    assert (serve.line, serve.text) == (1, "jms-broker serve")


def test_the_commands_of_a_console() -> None:
    send, receive = commands(next(blocks(PAGE)))
    assert (send.text, send.output, send.status) == (
        "jms-broker send hello world",
        ["sent 1", ""],
        0,
    )
    assert (receive.line, receive.status) == (8, 3)


@pytest.mark.parametrize(
    ("expected", "printed", "is_match"),
    [
        (["sent 1"], ["sent 1"], True),
        (["sent 1"], ["sent 2"], False),
        (["sent 1"], ["sent 1", "more"], False),
        (["ready … pid=…"], ["ready x pid=7"], True),
        (["a", "…", "z"], ["a", "b", "c", "z"], True),
        (["a", "…", "z"], ["a", "z"], True),
        (["a", "…"], ["b"], False),
        (["name  kind"], ["name     kind"], True),
        (["(a.b)*"], ["(axb)*"], False),
    ],
)
def test_an_output_is_compared(expected: list[str], printed: list[str], is_match: bool) -> None:
    assert matches(expected, printed) is is_match


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```java\nclass A {}\n```\n", "a block of java that does not run"),
        ("```sh\nls\n```\n", "a block of sh that does not run"),
        ('```python title="one.py"\npass\n```\n', "nothing uses one.py"),
        ("```console\nls\n```\n", "a console without a command"),
        ('```java\n--8<-- "tests/interop/A.java:part"\n```\n', ""),
        ("```text\nanything\n```\n", ""),
        ("<!-- not run: no JDK -->\n```java\nclass A {}\n```\n", ""),
        ('```python title="one.py"\npass\n```\n\n```console\n$ python one.py\n```\n', ""),
    ],
)
def test_a_block_that_does_not_run_says_why(text: str, fault: str) -> None:
    found = " ".join(faults(text))
    assert fault in found if fault else found == ""
