"""`serve`: the link, the port, and ending with Ctrl-C."""

import signal
import subprocess
import sys
import urllib.request

import httpx
import pytest
from judging_pages import filled

import rankgauge
from rankgauge.judging import JudgingProject
from rankgauge.web import serve

PROGRAM = """
import sys
from rankgauge.judging import JudgingProject
from rankgauge.web import serve
with JudgingProject(sys.argv[1]) as project:
    serve(project, port=0, echo=lambda link: print(link, flush=True))
"""


@pytest.mark.slow
def test_the_link_signs_in_and_an_interrupt_ends_the_server(tmp_path):
    JudgingProject.create(tmp_path / "judging.db", author="Ann Lee").close()
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path / "judging.db")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        link = server.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(link, timeout=20) as page:
            text = page.read().decode()
            assert "Sign in" in text
            assert "Ann Lee" in text
        # A proxy on this computer says that the browser uses HTTPS, as the documentation configures it.
        answer = httpx.post(link, headers={"X-Forwarded-Proto": "https"})
        assert "Secure" in answer.headers["set-cookie"]
        server.send_signal(signal.SIGINT)
        assert server.wait(20) in {0, 130}
        assert "Traceback" not in server.stderr.read()


def test_a_port_in_use_is_reported(tmp_path):
    import socket

    with (
        filled(tmp_path / "judging.db", 1, 2) as project,
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(rankgauge.InputError, match="cannot listen"),
    ):
        serve(project, port=taken.getsockname()[1], echo=lambda link: None)


def test_an_impossible_port_is_reported(tmp_path):
    with filled(tmp_path / "judging.db", 1, 2) as project, pytest.raises(rankgauge.InputError, match="cannot listen"):
        serve(project, port=99_999, echo=lambda link: None)
