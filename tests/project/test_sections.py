"""Settings of judging and of language models in a project file."""

import os

import pytest

from rankgauge import InputError, UnknownName
from rankgauge.core import ProjectFile
from rankgauge.judging import Settings
from rankgauge.project import judging_settings, model_settings

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


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
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
