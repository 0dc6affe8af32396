"""A production log as a Parquet file, written by DuckDB."""

import os

# Questions about a library, some of them asked often; answers, ratings, and abstentions.
_LOG = """
COPY (
    WITH asked AS (
        SELECT i, 'q' || i AS question_id, 'u' || (i % 37) AS user_id,
            TIMESTAMPTZ '2026-05-04 08:00:00+00'
                + INTERVAL (i * 7 * {weeks} * 1440 / 620) MINUTE AS time,
            ['renew', 'return', 'reserve', 'find', 'lose', 'buy', 'copy', 'print'][i % 8 + 1]
                || ' my ' ||
            ['book', 'card', 'film', 'map', 'game', 'disc', 'key'][(i // 8) % 7 + 1] || ' ' ||
            ['today', 'online', 'abroad', 'for a friend'][(i * i) % 4 + 1] AS text
        FROM range(600) t(i)
    ), events AS (
        SELECT 'question' AS kind, *, NULL::DOUBLE AS value FROM asked
        UNION ALL SELECT 'answer', * REPLACE ('An answer' AS text), NULL FROM asked
        UNION ALL SELECT 'abstention', * REPLACE (NULL AS text), NULL FROM asked
            WHERE i % 10 = 0 OR (i > 400 AND i % 3 = 0)
        UNION ALL SELECT 'thumbs', * REPLACE (NULL AS text), CASE WHEN i % 5 = 0 THEN -1 ELSE 1 END
            FROM asked WHERE i % 4 = 0
    )
    SELECT kind || i AS event_id, * EXCLUDE (i), user_id || date_trunc('day', time) AS session_id
    FROM events
) TO '{path}' (FORMAT parquet)
"""

# Interleaved results in two arms; most users click the document of A.
_CLICKS = """
COPY (
    WITH q AS (SELECT i, 'q' || i AS question_id, 'u' || (i // 2) AS user_id,
      TIMESTAMPTZ '2026-05-01 12:00:00+00' + i * INTERVAL 1 MINUTE AS time,
      if(i % 4 < 2, 'old', 'new') AS arm
      FROM range(40) t(i))
    SELECT 'a' || i AS event_id, 'question' AS kind, time, question_id, user_id, arm,
      'late fees' AS text, NULL::VARCHAR[] AS documents, NULL::INTEGER[] AS ranks,
      MAP()::MAP(VARCHAR, VARCHAR) AS attributes FROM q
    UNION ALL SELECT 'b' || i, 'impression', time, question_id, user_id, arm, NULL,
      if(i % 2 = 0, ['d1', 'd2'], ['d2', 'd1']), [1, 2],
      MAP {{'interleaving': 'team-draft', 'interleaving.a': 'bm25',
           'interleaving.b': 'dense', 'interleaving.teams': if(i % 2 = 0, 'AB', 'BA')}} FROM q
    UNION ALL SELECT 'c' || i, 'click', time, question_id, user_id, arm, NULL,
      [if(i % 10 < 8, 'd1', 'd2')], NULL, MAP()::MAP(VARCHAR, VARCHAR) FROM q
) TO '{path}' (FORMAT parquet)
"""


def write_clicks(path):
    """Write 40 questions of 20 users with interleaved results and clicks; return the path."""
    import duckdb

    duckdb.execute(_CLICKS.format(path=os.fspath(path)))
    return path


def write_log(path, weeks=6):
    """Write 600 questions with their events; return the path."""
    import duckdb

    duckdb.execute(_LOG.format(path=os.fspath(path), weeks=weeks))
    return os.fspath(path)
