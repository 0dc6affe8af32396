"""Drafts of mappings: what is guessed, with which reason, and that the draft runs."""

import json
import tomllib

import pytest
from command import run

from rankgauge.production import EventLog, draft_mapping, import_log

_SHOP = """\
ts,customer_id,search_id,search_term,results,clicked_doc,rating,response_ms,device
01.05.2026 12:00,u1,s1,late fees,d1|d2|d3,d2,👍,120,mobile
01.05.2026 12:05,u2,s2,"opening hours, today",d4|d5,,,90,desktop
13.05.2026 13:05,u1,s3,renew a loan,d9,d9,bad,200,desktop
"""
_CHAT = [
    {"id": "m1", "created_at": "2026-05-01T12:00:00Z", "user": {"id": "u1", "lang": "de"}, "question": "late fees?",
     "answer": "2 euros", "sources": ["d1", "d2"], "feedback": 1},
    {"id": "m2", "created_at": "2026-05-01T12:01:00Z", "user": {"id": "u2", "lang": "en"}, "question": "hours?",
     "answer": "9 to 5", "sources": [], "feedback": 0},
]  # fmt: skip
_EVENTS = """\
timestamp,event,user_id,session,request_id,query,doc
1777636800,search,u1,c1,r1,late fees,
1777636805,click,u1,c1,r1,,d1
"""


def _kinds(log):
    with EventLog(log).connection() as connection:
        return dict(connection.execute("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())


@pytest.mark.parametrize(
    ("name", "text", "zone", "kinds"),
    [
        ("shop.csv", _SHOP, ("--timezone", "Europe/Berlin"),
         {"question": 3, "retrieval": 3, "click": 2, "answer": 3, "thumbs": 2}),
        ("chat.jsonl", "".join(json.dumps(row) + "\n" for row in _CHAT), (),
         {"question": 2, "answer": 2, "retrieval": 2, "thumbs": 2}),
        ("events.csv", _EVENTS, (), {"question": 1, "click": 1}),
    ],
)  # fmt: skip
def test_an_unknown_log_gets_a_draft_that_runs(name, text, zone, kinds, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    done = run("logs", "import", name, "log", cwd=tmp_path)
    assert done.returncode == 2
    assert not (tmp_path / "log").exists()
    target = f"{name.partition('.')[0]}.mapping.toml"
    assert f"nothing was imported, and {target} is a draft mapping" in done.stderr
    command = done.stderr.partition("then run rankgauge ")[2].split()
    options = ["--mapping", target, *zone[:1], *["ZONE"] * bool(zone)]
    assert command == ["logs", "import", "--dry-run", *options, name, "log"]
    assert (tmp_path / target).read_text(encoding="utf-8") == done.stdout
    done = run(*(zone[1] if word == "ZONE" else word for word in command if word != "--dry-run"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert _kinds(tmp_path / "log") == kinds
    with EventLog(tmp_path / "log").connection() as connection:
        assert connection.execute("SELECT count(*) FROM questions WHERE text IS NOT NULL").fetchall() != [(0,)]


def _draft(tmp_path, text):
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    draft = draft_mapping(tmp_path / "a.csv")
    return draft, tomllib.loads(draft)


def test_each_guess_has_a_reason_and_the_other_columns_are_listed(tmp_path):
    draft, mapping = _draft(tmp_path, _SHOP)
    assert '# not used: device (mobile, desktop)\n# attributes = ["device"]' in draft
    assert mapping["columns"] == {"time": "ts", "user_id": "customer_id", "question_id": "search_id"}
    assert mapping["separator"] == "|"
    assert mapping["values"] == {"👍": 1, "bad": -1}
    for line in draft.splitlines():
        if " = " in line and line[0] != "#" and not line.startswith(("kind", "time_format", '"')):
            assert "  # " in line


@pytest.mark.parametrize(
    ("times", "form", "zoned"),
    [
        (("2026-05-01T12:00:00Z", "2026-05-01 12:00:00+02:00"), None, True),
        (("1777636800", "1777636801.5"), None, True),
        (("1777636800000", "1777636801000"), None, True),
        (("2026-05-01 12:00", "2026-05-02"), None, False),
        (("13/05/2026 12:00", "01/05/2026 12:00"), "%d/%m/%Y %H:%M", False),
        (("05/13/2026 12:00:01", "05/01/2026 12:00:02"), "%m/%d/%Y %H:%M:%S", False),
        (("1.5.2026 12:00", "31.12.2026 8:05"), "%d.%m.%Y %H:%M", False),
    ],
)
def test_times_are_recognized_by_their_values(times, form, zoned, tmp_path):
    draft, mapping = _draft(tmp_path, "when_created,query,x\n" + "".join(f"{time},a,b\n" for time in times))
    assert mapping["columns"]["time"] == "when_created"
    assert mapping.get("time_format") == form
    assert ("--timezone" in draft) is not zoned
    done = run("logs", "import", "a.csv", "log", cwd=tmp_path)
    command = done.stderr.partition("then run rankgauge ")[2].replace("ZONE", "UTC").replace("--dry-run ", "").split()
    done = run(*command, "--as", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["refused"] == []


def test_a_day_that_may_be_a_month_is_pointed_out(tmp_path):
    draft, mapping = _draft(tmp_path, "time,query\n05/01/2026 12:00,a\n")
    assert mapping["time_format"] == "%m/%d/%Y %H:%M"
    assert "# times also fit %d/%m/%Y %H:%M" in draft


def test_what_is_missing_is_said(tmp_path):
    draft, mapping = _draft(tmp_path, "query,stars\nlate fees,4\n")
    assert 'time = ""  # name the column with times: none was recognized' in draft
    assert "# no column identifies a question: each row is one" in draft
    # Stars are no thumbs.
    assert "# not used: stars (4)" in draft
    assert mapping["events"] == [{"kind": "question", "text": "query"}]


def test_a_corrected_draft_is_not_overwritten(tmp_path):
    (tmp_path / "events.csv").write_text(_EVENTS, encoding="utf-8")
    (tmp_path / "events.mapping.toml").write_text("# mine\n", encoding="utf-8")
    assert run("logs", "import", "events.csv", "log", cwd=tmp_path).returncode == 2
    assert (tmp_path / "events.mapping.toml").read_text(encoding="utf-8") == "# mine\n"


def test_a_known_format_needs_no_draft(tmp_path):
    draft, _ = _draft(tmp_path, "event_id,kind,time\n1,question,2026-05-01T12:00:00Z\n")
    assert draft == ""


def test_a_draft_of_hostile_rows_is_valid_and_escaped(tmp_path):
    rows = ['{"time": "\\u001b[2J", "query\\u007f": "a\\u009b"}', "7", '{"query": {"a": ["\\u0000"]}}', "[1]"]
    (tmp_path / "a.jsonl").write_text("\n".join(rows), encoding="utf-8")
    tomllib.loads(draft_mapping(tmp_path / "a.jsonl"))
    done = run("logs", "import", "a.jsonl", "log", cwd=tmp_path)
    assert done.returncode == 2
    assert not {"\x1b", "\x7f", "\x9b", "\x00"} & {*done.stdout, *done.stderr}


def test_opposites_later_times_seconds_and_numbers_are_not_guessed(tmp_path):
    (tmp_path / "log.csv").write_text(
        "updated_at,created_at,question,downvote,latency_s,num_results\n"
        "2026-05-03T11:00:00Z,2026-05-03T10:00:00Z,late fees,1,0.5,3\n"
    )
    draft = tomllib.loads(draft_mapping(tmp_path / "log.csv"))
    assert draft == {"columns": {"time": "created_at"}, "events": [{"kind": "question", "text": "question"}]}


def test_every_word_for_thumbs_has_its_sign(tmp_path):
    up = ["👍", "good", "liked", "up", "yes", "true", "1", "positive", "helpful", "thumbs_up"]
    down = ["👎", "bad", "disliked", "down", "no", "false", "0", "-1", "negative", "not helpful", "thumbs_down"]
    rows = [
        f"2026-05-01T12:00:00Z,{question},{word}" for question, words in (("up", up), ("down", down)) for word in words
    ]
    _, mapping = _draft(tmp_path, "\n".join(["asked_at,question,rating", *rows, ""]))
    import_log(tmp_path / "a.csv", tmp_path / "log", mapping=mapping)
    with EventLog(tmp_path / "log").connection() as connection:
        found = connection.execute(
            """SELECT asked.text, thumbs.value, count(*) FROM events asked JOIN events thumbs USING (question_id)
            WHERE asked.kind = 'question' AND thumbs.kind = 'thumbs' GROUP BY ALL ORDER BY ALL"""
        ).fetchall()
    assert found == [("down", -1.0, len(down)), ("up", 1.0, len(up))]


@pytest.mark.parametrize(("latency", "guessed"), [("120.5", True), ("120 ms", False), ("0,5", False)])
def test_only_plain_numbers_are_milliseconds(latency, guessed, tmp_path):
    _, mapping = _draft(tmp_path, f'asked_at,question,latency,docs\n2026-05-01T12:00:00Z,a,"{latency}","a, b|c; d"\n')
    assert ("latency_ms" in [key for event in mapping["events"] for key in event]) is guessed
    # Commas and semicolons are more frequent within names.
    assert mapping["separator"] == "|"
