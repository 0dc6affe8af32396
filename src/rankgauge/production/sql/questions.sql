-- The questions of a log: one row for each, from its events.
WITH grouped AS (
  SELECT
    question_id,
    min(user_id) AS user_id,
    min(session_id) AS session_id,
    coalesce(min(time) FILTER (kind = 'question'), min(time)) AS time,
    min(arm) AS arm,
    coalesce(
      min(text) FILTER (kind = 'question'),
      min(text) FILTER (kind IN ('retrieval', 'impression'))
    ) AS text,
    coalesce(
      arg_min(attributes, time) FILTER (kind = 'question'), arg_min(attributes, time)
    ) AS attributes,
    max(len(documents)) FILTER (kind = 'retrieval') AS retrieved,
    coalesce(sum(len(documents)) FILTER (kind = 'impression'), 0)::BIGINT AS impressions,
    count(*) FILTER (kind = 'click') AS clicks,
    coalesce(len(list_distinct(list(documents[1]) FILTER (kind = 'click'))), 0) AS clicked_results,
    arg_min(ranks[1], time) FILTER (kind = 'click') AS first_click_rank,
    max(1 / ranks[1]) FILTER (kind = 'click' AND ranks[1] > 0) AS click_rr,
    bool_or(kind = 'answer') AS answered,
    bool_or(kind = 'abstention') AS abstained,
    arg_max(text, time) FILTER (kind = 'answer') AS answer_text,
    arg_max(value, time) FILTER (kind = 'label') > 0 AS answerable,
    coalesce(sum(greatest(len(documents), 1)) FILTER (kind = 'citation'), 0)::BIGINT
      AS citations_shown,
    coalesce(len(list_distinct(list(documents[1]) FILTER (kind = 'citation click'))), 0)
      AS citations_clicked,
    arg_max(value, time) FILTER (kind = 'thumbs') AS thumbs,
    bool_or(kind = 'handover') AS handed_over,
    arg_max_null(value, time) FILTER (kind = 'preference') AS preference,
    arg_max(label, time) FILTER (kind = 'preference') AS preference_label,
    coalesce(
      max(latency_ms) FILTER (kind = 'answer'), max(latency_ms) FILTER (kind = 'retrieval')
    ) AS latency_ms
  FROM events
  WHERE question_id IS NOT NULL
  GROUP BY question_id
  -- A click alone does not show that a question was asked.
  HAVING bool_or(
    kind IN ('question', 'retrieval', 'impression', 'answer', 'citation', 'abstention')
  )
), followed AS (
  SELECT
    *,
    CASE WHEN session_id IS NOT NULL THEN lead(time) OVER following END AS next_time,
    CASE WHEN session_id IS NOT NULL THEN lead(text) OVER following END AS next_text
  FROM grouped
  WINDOW following AS (PARTITION BY session_id ORDER BY time, question_id)
)
SELECT
  question_id, user_id, session_id, coalesce(user_id, session_id, question_id) AS "cluster",
  time, time::DATE AS day, arm, text, attributes, retrieved, impressions, clicks, clicked_results,
  first_click_rank, click_rr, answered, abstained, answer_text, answerable, citations_shown,
  citations_clicked, coalesce(thumbs > 0, false)::INTEGER AS thumbs_up,
  coalesce(thumbs < 0, false)::INTEGER AS thumbs_down, handed_over, preference, preference_label,
  latency_ms, epoch(next_time) - epoch(time) AS next_question_seconds, next_text
FROM followed
