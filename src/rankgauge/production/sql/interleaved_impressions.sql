-- Interleaved impressions of $a and $b, and whether each document has a team and a share.
CREATE TEMP TABLE usable AS
SELECT *, coalesce(
  len(teams) = len(documents) AND len(coalesce(shares, teams)) = len(documents), false
) AS fits
FROM (
  SELECT question_id, map_extract(attributes, 'interleaving')[1] AS method, documents,
    string_split(map_extract(attributes, 'interleaving.teams')[1], '') AS teams,
    string_split(map_extract(attributes, 'interleaving.shares')[1], ',') AS shares
  FROM events
  WHERE kind = 'impression' AND question_id IS NOT NULL
    AND map_extract(attributes, 'interleaving')[1] IS NOT NULL
    AND map_extract(attributes, 'interleaving.a')[1] = $a
    AND map_extract(attributes, 'interleaving.b')[1] = $b
)
