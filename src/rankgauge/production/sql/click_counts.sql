-- Impressions and clicks of each text, document, and rank; numbered pairs of text and document.
CREATE TEMP TABLE counted AS
WITH shown AS (
  SELECT question_id, unnest(documents) AS document, unnest(ranks) AS rank, time
  FROM events
  WHERE kind = 'impression' AND question_id IS NOT NULL AND len(ranks) = len(documents)
), placed AS (
  -- Shown again to the same question, a document counts once, where it was shown first.
  SELECT question_id, document, arg_min(rank, time) AS rank
  FROM shown
  WHERE rank >= 1 AND document IS NOT NULL
  GROUP BY ALL
), clicked AS (
  SELECT DISTINCT question_id, documents[1] AS document FROM events WHERE kind = 'click'
), asked AS (
  SELECT question_id, trim(lower(regexp_replace(coalesce(
    min(text) FILTER (kind = 'question'), min(text) FILTER (kind IN ('retrieval', 'impression'))
  ), '\s+', ' ', 'g'))) AS text
  FROM events
  WHERE kind IN ('question', 'retrieval', 'impression')
  GROUP BY question_id
)
SELECT text, document, rank, count(*) AS shown, count(clicked.question_id) AS clicked
FROM placed LEFT JOIN asked USING (question_id)
LEFT JOIN clicked USING (question_id, document)
GROUP BY ALL;

CREATE TEMP TABLE pairs AS
SELECT text, document, row_number() OVER (ORDER BY text, document) - 1 AS pair
FROM (SELECT DISTINCT text, document FROM counted WHERE text <> '');
