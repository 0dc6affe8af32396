-- The clicks on documents that are credited to a retriever, by question.
WITH shown AS (
  SELECT question_id, unnest(documents) AS document, unnest(teams) AS team,
    unnest(coalesce(shares, [NULL::VARCHAR FOR t IN teams])) AS share
  FROM usable
  WHERE fits
), clicked AS (
  SELECT question_id, documents[1] AS document,
    bool_or(kind = 'click') AS by_result, bool_or(kind = 'citation click') AS by_citation
  FROM events
  WHERE kind IN ('click', 'citation click')
  GROUP BY ALL
), credited AS (
  -- A document that was shown twice is credited once.
  SELECT question_id, document, any_value(by_result) AS by_result,
    any_value(by_citation) AS by_citation,
    min(coalesce(try_cast(share AS DOUBLE), (team = 'A')::INTEGER)) AS share
  FROM shown JOIN clicked USING (question_id, document)
  WHERE team IN ('A', 'B')
  GROUP BY question_id, document
)
SELECT "cluster", list_sort(list(share)), sum(by_result::INTEGER), sum(by_citation::INTEGER)
FROM credited JOIN questions USING (question_id)
GROUP BY question_id, "cluster"
ORDER BY "cluster", question_id
