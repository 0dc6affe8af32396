-- The pairs of a text and a document that were shown at least $least times.
SELECT pair, text, document
FROM pairs
WHERE pair IN (
  SELECT pair FROM counted JOIN pairs USING (text, document)
  GROUP BY pair HAVING sum(shown) >= $least
)
ORDER BY pair
