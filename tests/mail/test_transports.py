"""What an environment says of a transport, and what it cannot say."""

from pathlib import Path

import pytest

from tenure import ConfigurationError
from tenure.ext.mail.transports import Transport, transport

KEY = "TENURE_MAIL_MAIN_URL"


def read(url: str) -> Transport:
    return transport("main", {KEY: url})


def test_a_url_tells_everything() -> None:
    found = read("smtps://us%40er:p%2Fw@mail.test:4650?timeout=3&data_timeout=9&connections=2&ca=/a.pem&helo=w.test")
    assert (found.host, found.port, found.tls, found.starttls) == ("mail.test", 4650, True, "never")
    assert (found.username, found.password) == ("us@er", "p/w")
    assert (found.timeout, found.data_timeout, found.connections) == (3, 9, 2)
    assert (found.ca, found.helo) == ("/a.pem", "w.test")
    assert (read("smtp://mail.test").port, read("smtps://[::1]").port) == (25, 465)


@pytest.mark.parametrize(
    ("url", "starttls"),
    [
        ("smtp://mail.test", "auto"),
        ("smtp://u:p@mail.test", "required"),  # a password does not go out in the clear
        ("smtp://u:p@127.0.0.1", "auto"),
        ("smtp://u:p@mail.test?starttls=never", "never"),
        ("smtp://mail.test?starttls=required", "required"),
    ],
)
def test_a_login_wants_tls_unless_it_is_told_not_to(url: str, starttls: str) -> None:
    assert read(url).starttls == starttls


def test_a_password_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("canary\n")
    assert read(f"smtp://u@mail.test?password_file={file}").password == "canary"
    with pytest.raises(ConfigurationError, match="which one counts"):
        read(f"smtp://u:p@mail.test?password_file={file}")
    with pytest.raises(ConfigurationError, match=r"cannot be read \(FileNotFoundError\)"):
        read(f"smtp://u@mail.test?password_file={tmp_path}/none")


@pytest.mark.parametrize(
    "url",
    [
        "http://canary",
        "smtp://",
        "smtp://u:canary#@mail.test",
        "smtp://u:can/ary@mail.test",
        "smtp://mail.test:canary",
        "smtp://[canary",
        "smtp://mail.test/canary",
        "smtp://:canary@mail.test",
        "smtp://mail.test?canary=1",
        "smtp://mail.test?timeout=canary",
        "smtp://mail.test?timeout=0",
        "smtp://mail.test?connections=1.5",
        "smtp://mail.test?starttls=canary",
        "smtps://mail.test?starttls=required",
        "smtp://mail.test?canary",
    ],
)
def test_a_wrong_url_is_refused_by_its_key_and_never_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(url)
    assert str(caught.value).startswith(KEY)
    assert "canary" not in str(caught.value)


def test_its_repr_shows_its_name() -> None:
    found = read("smtp://user:canary@mail.test")
    assert repr(found) == "<transport main>"
    assert "canary" not in repr(found.__rich_repr__())
