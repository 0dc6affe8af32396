"""Secrets in texts: in all the forms in which servers and libraries repeat them."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from rankgauge.errors import RankgaugeError
from rankgauge.redaction import SECRET_NAME, Secrets, redact

VALUES = ["sk-live-0123456789", 'a"b\\c/d+e=f&g h', "pässwörter-im-Test", "first-half\nsecond-half"]
FORMS = {
    "raw": str,
    "in a sentence": lambda value: f"no access with {value}, sorry",
    "percent": lambda value: quote(value, safe=""),
    "percent, small letters": lambda value: (
        quote(value, safe="").lower() if value.islower() else quote(value)
    ),
    "query": quote_plus,
    "twice percent": lambda value: quote(quote(value, safe=""), safe=""),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "JSON": json.dumps,
    "JSON in JSON": lambda value: json.dumps(json.dumps({"key": value})),
    "JSON with slashes": lambda value: json.dumps(value).replace("/", "\\/"),
    "repr": repr,
    "repr of bytes": lambda value: repr(value.encode()),
    "ascii": ascii,
    "HTML": html.escape,
    "broken": lambda value: value[:7] + "\n" + value[7:],
    "broken and indented": lambda value: value[:7] + "\r\n    " + value[7:],
    "break escaped": lambda value: repr(value[:7] + "\n" + value[7:]),
}


def known(value, *names):
    secrets = Secrets()
    secrets.add(value, *names)
    return secrets


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_found_in_every_form(form, value):
    secrets = known(value)
    text = f"before {FORMS[form](value)} after"
    for found in (redact(text), secrets.redact(text)):
        assert "***" in found
        assert found.startswith("before ")
        assert found.endswith(" after")
        for part in (value, value[:7], value[-7:], quote(value, safe="")[:9]):
            assert part not in found


def test_a_login_is_found_as_basic_sends_it():
    secrets = Secrets()
    secrets.add_login("me", "pa:ss-word")
    sent = base64.b64encode(b"me:pa:ss-word").decode()
    assert redact(f"Authorization: Basic {sent}") == "Authorization: Basic ***=="
    assert redact("me:pa:ss-word") == "***"
    assert redact("pa:ss-word") == "***"
    assert secrets.redact("me") == "me"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x-team: abc", "x-team: ***"),
        ('{"X-Team": "abc"}', '{"X-Team": "***"}'),
        ("(b'x-team', b'abc')", "(b'x-team', b'***')"),
        ("?x-team=abc&k=3", "?x-team=***&k=3"),
        ("bad key abc", "bad key ***"),
        ("password: abc", "password: ***"),
        ("Bearer abc", "Bearer ***"),
        ("'abc' is not known", "'***' is not known"),
        ("abc is the alphabet", "abc is the alphabet"),
        ("abcdef", "abcdef"),
    ],
)
def test_a_short_secret_is_found_where_a_value_stands(text, wanted):
    secrets = known("abc", "x-team")
    assert redact(text) == wanted
    assert secrets.redact(text) == wanted


def test_what_the_server_itself_says_is_searched_for_words():
    secrets = known("pin7", "x-pin")
    assert redact("we know pin7 well, pin77 not") == "we know pin7 well, pin77 not"
    assert secrets.redact("we know pin7 well, pin77 not") == "we know *** well, pin77 not"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("https://me:word@example.org/a", "https://me:***@example.org/a"),
        ("https://me:w@rd@example.org/a", "https://me:***@example.org/a"),
        ("postgresql://me:w/r#d@host/db", "postgresql://me:***@host/db"),
        ("postgresql:/me:word@host/db", "postgresql:/me:***@host/db"),
        ("https://token-of-mine@example.org", "https://***@example.org"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("http://localhost:8000/a@b", "http://localhost:8000/a@b"),
        ("http://localhost:8000/?user=a@b", "http://localhost:8000/?user=a@b"),
        ("/x?token=abc&lang=en", "/x?token=***&lang=en"),
        ("/x?a=1&X-Amz-Signature=abc#b", "/x?a=1&X-Amz-Signature=***#b"),
        ("/x?sig=...&k=1", "/x?sig=...&k=1"),
        ("host=h password=abc user=me", "host=h password=*** user=me"),
        ("the keyword=abc of b?", "the keyword=abc of b?"),
        ("q1: 0.5 = 1/2", "q1: 0.5 = 1/2"),
    ],
)
def test_what_looks_like_a_secret_is_replaced(text, wanted):
    assert redact(text) == wanted
    assert redact(wanted) == wanted


def test_messages_of_errors_are_without_secrets_but_show_how_to_write_a_url():
    secrets = known("sk-live-0123456789")
    fix = "write postgresql://user:password@host"
    error = RankgaugeError("no sk-live-0123456789", where="http://a:b@c?token=d", fix=fix)
    assert str(error) == f"http://a:***@c?token=***: no ***\nfix: {fix}"
    assert error.args == ("no ***",)
    assert "sk-live" not in repr(secrets)


def test_a_long_message_is_cut_behind_its_secrets():
    secrets = known("sk-live-0123456789")
    text = "x" * 1290 + "sk-live-0123456789" + "y" * 1000
    assert "sk-live" not in str(RankgaugeError(text))
    del secrets


def test_secrets_are_forgotten_with_their_client():
    secrets = known("sk-live-0123456789")
    assert redact("sk-live-0123456789") == "***"
    del secrets
    assert redact("sk-live-0123456789") == "sk-live-0123456789"


def test_nothing_is_no_secret():
    secrets = known("")
    secrets.add("  ")
    secrets.add_login("", "")
    assert secrets.redact("a : b ''") == "a : b ''"


@pytest.mark.parametrize(
    ("name", "secret"),
    [("token", True), ("X-Api-Key", True), ("apikey", True), ("password", True), ("auth", True),
     ("sig", True), ("client_secret", True), ("pass", True), ("keywords", False), ("author", False),
     ("lang", False), ("k", False), ("monkey", False)],
)  # fmt: skip
def test_names_of_secrets(name, secret):
    assert bool(SECRET_NAME.search(name)) is secret
