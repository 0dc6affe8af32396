-- Counts of impressions and clicks: all, with a rank, and without the text of their question.
SELECT
  (SELECT coalesce(sum(len(documents)), 0) FROM events WHERE kind = 'impression'),
  (SELECT coalesce(sum(shown), 0) FROM counted),
  (SELECT coalesce(sum(shown) FILTER (coalesce(text, '') = ''), 0) FROM counted),
  (SELECT count(*) FROM (SELECT DISTINCT question_id, documents[1] FROM events
                         WHERE kind = 'click')),
  (SELECT coalesce(sum(clicked), 0) FROM counted)
