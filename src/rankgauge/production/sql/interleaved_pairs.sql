-- Pairs of interleaved retrievers; $a and $b select one, unless they are NULL.
SELECT DISTINCT map_extract(attributes, 'interleaving.a')[1] AS a,
  map_extract(attributes, 'interleaving.b')[1] AS b
FROM events
WHERE kind = 'impression' AND map_extract(attributes, 'interleaving')[1] IS NOT NULL
  AND ($a IS NULL OR map_extract(attributes, 'interleaving.a')[1] = $a)
  AND ($b IS NULL OR map_extract(attributes, 'interleaving.b')[1] = $b)
ORDER BY ALL
