-- Counts of events, of known questions, and of clicks with an impression.
WITH clicks AS (
  SELECT event_id, question_id, documents[1] AS document
  FROM events
  WHERE kind = 'click' AND len(documents) > 0
), shown AS (
  SELECT question_id, unnest(documents) AS document
  FROM events
  WHERE kind = 'impression'
), asked AS (
  SELECT kind = 'click' AS is_click, q IS NOT NULL AS known
  FROM (SELECT question_id, kind FROM events WHERE question_id IS NOT NULL)
  LEFT JOIN (SELECT question_id AS q FROM questions) ON question_id = q
), seen AS (
  SELECT count(DISTINCT event_id) AS number FROM shown JOIN clicks USING (question_id, document)
)
SELECT count(*) AS total, min(time) AS "first", max(time) AS "last",
  (SELECT count(*) FROM questions) AS questions,
  (SELECT count(*) FROM asked WHERE known) AS joined,
  (SELECT count(*) FROM asked WHERE NOT known) AS orphans,
  (SELECT count(*) FROM asked WHERE NOT known AND is_click) AS orphan_clicks,
  (SELECT count(*) FROM clicks) AS clicks,
  (SELECT count(*) FROM clicks) - (SELECT number FROM seen) AS unseen_clicks
FROM events
