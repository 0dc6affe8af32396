-- The events of a user ($ids: the identifier, and its hash), and events without a user of the same questions and sessions.
CREATE OR REPLACE TEMP TABLE removed AS
WITH own AS (
  SELECT event_id, question_id, session_id FROM events WHERE list_contains($ids, user_id)
), other AS (
  SELECT DISTINCT question_id FROM events
  WHERE user_id IS NOT NULL AND NOT list_contains($ids, user_id)
)
SELECT event_id, question_id FROM own
UNION ALL
SELECT event_id, question_id FROM events
WHERE user_id IS NULL
  AND (
    question_id IN (SELECT question_id FROM own)
    OR (
      session_id IN (SELECT session_id FROM own)
      AND NOT EXISTS (SELECT 1 FROM other WHERE other.question_id = events.question_id)
    )
  )
