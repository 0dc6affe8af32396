"""Personal data in texts of a log."""

import pytest
from growth import assert_linear

from rankgauge.production import scrub


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mail me at jo.doe+x@mail.example.org!", "mail me at [email]!"),
        ("see https://example.org/a?user=jo", "see [url]"),
        ("my iban is DE89 3704 0044 0532 0130 00", "my iban is [iban]"),
        ("card 4111 1111 1111 1111 refused", "card [number] refused"),
        ("call (020) 7946-0958 or +4420794", "call [number] or [number]"),
        ("customer 12345678", "customer [number]"),
        ("login from 192.168.0.17", "login from [ip address]"),
        ("password=hunter2hunter2 fails", "password=*** fails"),
    ],
)
def test_personal_data_with_a_form_is_replaced(text, expected):
    assert scrub(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "opening hours 2026-03-01",
        "events on 1.3.2026",
        "season 2025/2026",
        "error 404",
        "fine of 12.50",
        "iphone 15 pro max",
        "isbn prefix 978",
        "version 3.11.4",
        "room 1234567",
    ],
)
def test_dates_and_short_numbers_stay(text):
    assert scrub(text) == text


@pytest.mark.parametrize("piece", ["1 ", "a.", "a@", "1.", "AB12 ", "1:", "+(", "http://"])
def test_hostile_texts_take_linear_time(piece):
    assert_linear(lambda count: piece * count, scrub, 5000)
