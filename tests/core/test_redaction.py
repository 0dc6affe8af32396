"""Secrets in texts, in all forms in which servers and libraries repeat them."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from growth import assert_linear

from rankgauge.core.redaction import SECRET_NAME, Secrets, redact
from rankgauge.errors import RankgaugeError

VALUES = ["sk-live-0123456789", 'a"b\\c/d+e=f&g h', "pässwörter-im-Test", "first-half\nsecond-half"]
FORMS = {
    "raw": str,
    "in a sentence": lambda value: f"no access with {value}, sorry",
    "percent": lambda value: quote(value, safe=""),
    "percent, small letters": lambda value: quote(value, safe="").lower() if value.islower() else quote(value),
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
    "upper case": str.upper,
    "lower case": str.lower,
    "percent, upper case": lambda value: quote(value.upper(), safe=""),
    "JSON, upper case": lambda value: json.dumps(value).upper(),
    "HTML, upper case": lambda value: html.escape(value).upper(),
    "base64, lower case": lambda value: base64.b64encode(value.encode()).decode().lower(),
    "hex": lambda value: value.encode().hex(),
    "hex, upper case": lambda value: value.encode().hex(" ").upper(),
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
    assert redact(f"Authorization: Basic {sent}") == "Authorization: Basic ***"
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
        ("X-TEAM: ABC", "X-TEAM: ***"),
        ("x-team: 616263", "x-team: ***"),
        ("bad key abc", "bad key ***"),
        ("password: abc", "password: ***"),
        ("Bearer abc", "Bearer ***"),
        ("'abc' is not known", "'***' is not known"),
        ("abc is the alphabet", "abc is the alphabet"),
        ("abcdef", "abcdef"),
    ],
)
def test_a_short_secret_is_found_in_the_position_of_a_value(text, wanted):
    secrets = known("abc", "x-team")
    assert redact(text) == wanted
    assert secrets.redact(text) == wanted


def test_known_secrets_are_redacted_as_whole_words_in_server_messages():
    secrets = known("pin7", "x-pin")
    assert redact("we know pin7 well, pin77 not") == "we know pin7 well, pin77 not"
    assert secrets.redact("we know pin7 well, pin77 not") == "we know *** well, pin77 not"


def test_the_padding_of_a_registered_login_is_replaced_with_it():
    secrets = Secrets()
    secrets.add_login("me", "word")
    assert redact("sent Basic bWU6d29yZA==, bWU6d29yZA refused") == "sent Basic ***, *** refused"


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
        ("{'Authorization': 'Bearer abc'}", "{'Authorization': '***'}"),
        ("Authorization: ApiKey abc==", "Authorization: ApiKey ***"),
        ("sent Bearer abc-123-def", "sent Bearer ***"),
        ("sent Basic bWU6d29yZA==, refused", "sent Basic ***, refused"),
        ('{"password": "abc"}', '{"password": "***"}'),
        (r'{"password": "a\"b c", "k": 3}', '{"password": "***", "k": 3}'),
        (r'"{\"password\": \"abc\", \"k\": 3}"', r'"{\"password\": \"***\", \"k\": 3}"'),
        ("{&quot;password&quot;: &quot;abc&quot;}", "{&quot;password&quot;: &quot;***&quot;}"),
        ("(b'x-api-key', b'abc')", "(b'x-api-key', b'***')"),
        ("('Authorization', 'Bearer abc')", "('Authorization', '***')"),
        ("Client(api_key=SecretStr('abc'), k=3)", "Client(api_key=***, k=3)"),
        ("get(url, auth=('me', 'abc'))", "get(url, auth=***)"),
        ("-H 'api-key: abc' -X POST", "-H 'api-key: ***' -X POST"),
        ('"api_key=abc"', '"api_key=***"'),
        ("password='p a s s' of me", "password='***' of me"),
        ("AWS_SECRET_ACCESS_KEY=abc", "AWS_SECRET_ACCESS_KEY=***"),
        ("api_key=abc, k=3", "api_key=***, k=3"),
        ("apiKey: abc", "apiKey: ***"),
        ("AccountName=me;AccountKey=abc==", "AccountName=me;AccountKey=***"),
        ("/x#access_token=abc", "/x#access_token=***"),
        ("/x?code=abc&sid=def", "/x?code=***&sid=***"),
        ("Cookie: sid=abc; session=def", "Cookie: ***; session=***"),
        ("no sk-live-0123456789", "no ***"),
        ("no ghp_0123456789abcdef here", "no *** here"),
        ("no AKIAIOSFODNN7EXAMPLE", "no ***"),
        ("no xoxb-0123456789-abc", "no ***"),
        ("no eyJhbGciOiJIUzI1.eyJzdWIiOiIx.SflKxwRJSM here", "no *** here"),
    ],
)
def test_what_looks_like_a_secret_is_replaced(text, wanted):
    assert redact(text) == wanted
    assert redact(wanted) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "the keyword=abc of b?",
        "keyword=3",
        "q1: 0.5 = 1/2",
        "token 5 is unknown",
        "max_tokens=512, next_token=5",
        "unexpected token: '}'",
        "tokenizer: standard",
        "the key 'relevant' is missing",
        "duplicate key: q1",
        "sort_key=score",
        "author: Smith",
        "got 5 for k",
        "password=None",
        "Bearer authentication failed",
        "the basic configuration of BM25",
        "token by token",
        "set the key: name its environment variable in key_env",
        "task-0123456789 and risk-adjusted-2",
        "sk-00001234",
        "Collection(pwd=/home)",
    ],
)
def test_ordinary_messages_stay_as_they_are(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    "part",
    [
        "token=",
        "password='",
        'secret="\\"',
        "sk-",
        "-eyJhbGciOi",
        ":/a:",
        "bearer ",
        "?a;",
        "\\",
        "key",
        "token=a(",
        "token=[",
        "&quot;",
        "api_key=,",
        "http://a@",
        "cookie: ",
    ],
)
def test_a_long_text_takes_time_in_proportion_to_its_length(part):
    assert_linear(lambda length: part * (length // len(part)), redact, 8_000)


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
    secrets = known("live-0123456789")
    assert redact("live-0123456789") == "***"
    del secrets
    assert redact("live-0123456789") == "live-0123456789"


def test_empty_text_is_no_secret():
    secrets = known("")
    secrets.add("  ")
    secrets.add_login("", "")
    assert secrets.redact("a : b ''") == "a : b ''"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("token", True),
        ("X-Api-Key", True),
        ("apikey", True),
        ("password", True),
        ("auth", True),
        ("sig", True),
        ("client_secret", True),
        ("pass", True),
        ("x-functions-key", True),
        ("userkey", True),
        ("x-pin", True),
        ("sid", True),
        ("keywords", False),
        ("author", False),
        ("lang", False),
        ("k", False),
        ("monkey", False),
        ("inside", False),
        ("language_code", False),
    ],
)
def test_names_of_secrets(name, secret):
    assert bool(SECRET_NAME.search(name)) is secret
