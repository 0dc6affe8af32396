-- The values at $paths of the JSON objects of a batch, as texts; NULL for other rows.
-- $null is the text of a JSON null in old versions of DuckDB, else NULL.
CREATE OR REPLACE TEMP TABLE parsed AS
WITH checked AS (
  SELECT line, raw, json_valid(raw) AND starts_with(ltrim(raw), '{') AS valid
  FROM batch
  WHERE trim(raw, E' \t\r\n') <> ''
    -- Request lines of the bulk API are not events.
    AND NOT (
      (starts_with(ltrim(raw), '{"index"') OR starts_with(ltrim(raw), '{"create"'))
      AND regexp_full_match(raw, '\s*\{\s*"(index|create|update)"\s*:\s*\{[^{}]*\}\s*\}\s*')
    )
), sources AS (
  SELECT line, valid,
    CASE WHEN valid AND starts_with(raw, '{"_index"')
      THEN coalesce(json_extract(raw, '$._source')::VARCHAR, raw) ELSE raw END AS raw
  FROM checked
)
SELECT line,
  CASE WHEN valid THEN
    [nullif(v, $null::VARCHAR) FOR v IN json_extract_string(raw, $paths::VARCHAR[])]
  END AS f
FROM sources
