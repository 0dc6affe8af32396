"""JSON in replies: alone, in code fences, with surrounding prose, and malformed."""

import json

import pytest
from growth import assert_linear
from hypothesis import example, given, strategies as st
from jsonschema import Draft202012Validator

from rankgauge.llm import ChatRequest
from rankgauge.llm.replies import InvalidReply, read_reply, request_body

SCHEMA = {
    "type": "object",
    "properties": {"grade": {"type": "integer"}, "quote": {"type": "string"}},
    "required": ["grade"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "text",
    [
        '{"grade": 2}',
        '\n {"grade": 2}\n',
        '```json\n{"grade": 2}\n```',
        '```\n{\n  "grade": 2\n}\n```',
        'Here it is:\n```json\n{"grade": 2}\n```\nThe document [1] is {relevant}.',
        'By the set {a, b} and \\frac{1}{2}: {"grade": 2}. I am sure.',
        'First {"relevance": 1}, no: {"grade": 2}',
        '{"grade": 2}\n\nAgain: {"grade": 2}',
        "{} {} {" + '{"grade": 2}',
    ],
)
def test_one_valid_object_is_found(text):
    assert read_reply(text, SCHEMA) == {"grade": 2}


def test_braces_in_a_string_are_part_of_it():
    value = {"grade": 1, "quote": 'a {"grade": 3} ``` }'}
    assert read_reply(f"```json\n{json.dumps(value)}\n```", SCHEMA) == value


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "it has no JSON object"),
        ("relevant", "it has no JSON object"),
        ("[2]", "it has no JSON object"),
        ('{"grade": 1} or {"grade": 2}', "2 different JSON objects"),
        ('{"grade": 1, "quote": {"grade": 2}', "cannot be read"),
        ('{"grade": 2,}', "cannot be read"),
        ("{'grade': 2}", "cannot be read"),
        ('{"grade": 1, "grade": 2}', "a key twice"),
        ('{"grade": NaN}', "NaN, which is not a JSON number"),
        ('{"grade": 1e999}', "1e999, which is not a JSON number"),
        ('{"grade": ' + "9" * 5000 + "}", "too large"),
        ('{"grade": ' * 100_000, "too large"),
        ('{"grade": "2"}', r"\$\.grade: '2' is not of type 'integer'"),
        ('{"grade": 2.5}', r"\$\.grade: 2\.5 is not of type 'integer'"),
        ('{"grade": true}', r"\$\.grade: True is not of type 'integer'"),
        ('{"relevance": 2}', "relevance"),
        ('[{"grade": 1}, {"grade": 2}]', "2 different JSON objects"),
    ],
    ids=lambda value: value[:40] or "empty",
)
def test_anything_else_is_invalid_and_says_why(text, fault):
    with pytest.raises(InvalidReply, match=fault):
        read_reply(text, SCHEMA)


def test_a_long_invalid_value_is_not_quoted_whole():
    with pytest.raises(InvalidReply) as caught:
        read_reply(json.dumps({"grade": "x" * 10_000}), SCHEMA)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("unit", ["{", '{"', "{}", "{a", '{"a": ', '{"grade": "x"} '])
def test_a_hostile_text_takes_linear_time(unit):
    def read(text):
        with pytest.raises(InvalidReply):
            read_reply(text, SCHEMA)

    assert_linear(lambda length: unit * (length // len(unit)), read, 40_000)


def test_the_format_names_the_schema():
    request = ChatRequest("How relevant?", SCHEMA | {"title": "relevance grade, 0-3"})
    sent = request_body(request.messages, request, {}, frozenset())["response_format"]
    assert sent["json_schema"]["name"] == "relevance_grade__0_3"
    assert sent["json_schema"]["schema"]["required"] == ["grade"]
    sent = request_body(request.messages, request, {}, frozenset({"json_schema"}))["response_format"]
    assert sent == {"type": "json_object"}


LISTED = {
    "type": "object",
    "required": ["entries"],
    "additionalProperties": False,
    "properties": {
        "entries": {
            "type": "array",
            "minItems": 1,
            "maxItems": 2,
            "items": {
                "type": "object",
                "required": ["id", "vital"],
                "additionalProperties": False,
                "properties": {"id": {"type": "string", "enum": ["1", "2"]}, "vital": {"type": "boolean"}},
            },
        }
    },
}
ENTRY = st.fixed_dictionaries(
    {"id": st.sampled_from(["1", "2", "3", 1, None])},
    optional={"vital": st.sampled_from([True, False, 0, "true"]), "more": st.just(1)},
)
VALUES = st.fixed_dictionaries(
    {}, optional={"entries": st.lists(ENTRY, max_size=3) | ENTRY | st.text(max_size=2), "other": st.none()}
)


@given(value=VALUES)
@example(value={"entries": [{"id": "1", "vital": True}, {"id": "2", "vital": False}]})
@example(value={"entries": [{"id": "1", "vital": 1}]})
def test_a_reply_is_valid_where_jsonschema_says_so(value):
    text = json.dumps(value)
    # With another keyword, only jsonschema validates.
    for schema in (LISTED, LISTED | {"title": "listed"}):
        if Draft202012Validator(schema).is_valid(value):
            assert read_reply(text, schema) == value
        else:
            with pytest.raises(InvalidReply):
                read_reply(text, schema)


@pytest.mark.parametrize("part", [True, {"type": ["string", "null"]}, {"type": "integer"}, {}])
def test_schemas_of_any_kind_are_checked(part):
    schema = {
        "type": "object",
        "properties": {"a": part, "b": {"type": "array", "items": part}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert read_reply('{"a": 1, "b": []}', schema | {"properties": {"a": True, "b": True}})
    with pytest.raises(InvalidReply):
        read_reply('{"a": 1, "b": 2}', schema)
