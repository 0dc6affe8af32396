"""`demo_project`: a judging project on the bundled sample."""

from __future__ import annotations

import os
from pathlib import Path

from rankgauge.judging.events import Settings
from rankgauge.judging.pools import build_pool
from rankgauge.judging.project import JudgingProject
from rankgauge.judging.questions import load_questions
from rankgauge.sample import sample_path


def demo_project(where: str | os.PathLike[str]) -> JudgingProject:
    """Create a project on the bundled sample, or open it if the file is there already.

    It has the 30 questions of the sample; their candidates are the first five documents of both
    runs and a random document outside of them.

    Args:
        where: The file.

    Raises:
        InputError: If the file is no judging project.

    Example:
        >>> import tempfile
        >>> len(demo_project(tempfile.mkdtemp() + "/demo.db").questions)
        30
    """
    if Path(where).exists():
        return JudgingProject(where)
    project = JudgingProject.create(where, Settings(title="Library help center"), author="demo")
    project.add_questions(load_questions(sample_path("queries.jsonl"), author="sample"))
    runs = [sample_path("runs/bm25.run"), sample_path("runs/keyword.run")]
    build_pool(project, sample_path("corpus.jsonl"), runs, k=5, random=1)
    return project
