"""Settings of alerts, of judging, and of language models in a project file."""

import os

import pytest

from rankgauge import InputError, UnknownName
from rankgauge.core import ProjectFile
from rankgauge.judging import Settings
from rankgauge.production import Threshold
from rankgauge.project import alert_thresholds, judging_settings, model_settings

MODEL = '[models.judge]\nurl = "http://localhost:8000/v1"\nmodel = "small"\n'


@pytest.fixture
def read(tmp_path):
    def written(text):
        path = tmp_path / "rankgauge.toml"
        path.write_text(text)
        return ProjectFile.read(path)

    return written


def test_judging_begins_with_the_settings_of_the_project(read):
    assert judging_settings(read("")) == Settings()
    file = read('[judging]\nmode = "graded"\ngrades = ["off topic", "answers it"]\nbudget = 5\n')
    assert judging_settings(file) == Settings(mode="graded", grades=("off topic", "answers it"), budget=5)


def test_a_model_has_the_arguments_of_its_table(read):
    file = read(MODEL + 'key_env = "A_KEY"\nmax_cost = 5\ncache = "replies.db"\n')
    assert model_settings(file, "judge") == {
        "url": "http://localhost:8000/v1",
        "model": "small",
        "key_env": "A_KEY",
        "max_cost": 5,
        "cache": str(file.folder / "replies.db"),
    }


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_a_key_is_not_sent_to_a_server_that_another_user_chose(read):
    file = read(MODEL)
    os.chown(file.path, 12345, -1)
    with pytest.raises(InputError, match="belongs to another user"):
        model_settings(file, "judge")


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[judging]\nmodes = 'graded'", UnknownName, "line 2, judging.modes: unknown key of judging 'modes'"),
        ("[judging]\njudges = '2'", InputError, "line 2, judging.judges: got '2'\nfix: use a whole number"),
        ("[judging]\nmode = 'grade'", UnknownName, "line 1, judging"),
        ("[judging]\nshown = 9", InputError, "line 1, judging: shown: shown=9 is not valid"),
        ("", InputError, "models.judge: url is missing\nfix: write [models.judge] with url"),
        ("[models.judge]\nurl = 'http://x'", InputError, "line 1, models.judge: model is missing"),
        (
            f"{MODEL}key = 'abc'",
            UnknownName,
            "line 4, models.judge.key: unknown key of a model 'key'\nfix: did you mean",
        ),
        (f"{MODEL}max_cost = true", InputError, "line 4, models.judge.max_cost: got True\nfix: use a number"),
    ],
)
def test_a_mistake_is_reported_with_its_line(read, text, error, message):
    file = read(text)
    with pytest.raises(error) as caught:
        (judging_settings(file), model_settings(file, "judge"))
    assert message in str(caught.value)


def test_thresholds_of_alerts_are_those_of_the_table(read):
    file = read(
        '[alerts]\nwebhook = "https://example.org"\nidk_rate = { max = 0.2 }\nlatency_p95 = { min = 1, max = 2000 }'
    )
    texts = ["idk_rate > 0.2", "latency_p95 < 1", "latency_p95 > 2000"]
    assert alert_thresholds(file) == tuple(map(Threshold.of, texts))
    assert alert_thresholds(read("")) == ()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (
            "idk = { max = 0.2 }",
            UnknownName,
            "line 2, alerts.idk: unknown key of alerts 'idk'\nfix: did you mean idk_rate",
        ),
        ("idk_rate = 0.2", InputError, "line 2, alerts.idk_rate: got 0.2\nfix: use a table"),
        ("idk_rate = {}", InputError, "line 2, alerts.idk_rate: there is no limit\nfix: write idk_rate = { max = NUM"),
        ("idk_rate = { most = 1 }", UnknownName, "line 2, alerts.idk_rate.most: unknown key of a threshold 'most'"),
        ("idk_rate = { max = '1' }", InputError, "line 2, alerts.idk_rate.max: got '1'\nfix: use a number"),
        ("idk_rate = { max = 20 }", InputError, "line 2, alerts.idk_rate.max: max: max=20 is not valid\nfix: pass a"),
        ("idk_rate = { max = nan }", InputError, "line 2, alerts.idk_rate.max"),
        ("webhook = 1", InputError, "line 2, alerts.webhook: got 1\nfix: use text in quotes"),
    ],
)
def test_faults_of_thresholds_name_line_and_fix(read, text, error, message):
    with pytest.raises(error) as raised:
        alert_thresholds(read(f"[alerts]\n{text}"))
    assert message in str(raised.value)
