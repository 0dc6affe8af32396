-- Events of the table `draft`, with their lines and problems.
-- $source is the name of the file, $timezone the time zone of naive times: without one, they are
-- refused. The ranks of the groups $groups are shifted by $shifts.
WITH numbers AS (
  SELECT * REPLACE (lower(trim(value)) AS value),
    coalesce(($shifts::INTEGER[])[list_position($groups::VARCHAR[], rank_group)], 0) AS shift,
    -- ISO 8601 allows times without seconds or with a comma, which some versions of DuckDB reject.
    regexp_replace(
      replace(time, ',', '.'), '^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d)([^:\d].*)?$', '\1:00\2'
    ) AS time_text,
    TRY_CAST(time AS DOUBLE) AS epoch,
    regexp_extract(time_text, '[A-Za-z]+/[A-Za-z_/]+$') AS zone,
    TRY_CAST(value AS DOUBLE) AS number,
    TRY_CAST(ranks AS DOUBLE[]) AS rank_numbers,
    TRY_CAST(scores AS DOUBLE[]) AS score_numbers,
    TRY_CAST(latency_ms AS DOUBLE) AS latency,
    -- DuckDB ignores unknown zones, or raises an error even in TRY_CAST, and accepts offsets of
    -- days.
    regexp_matches(
      time_text,
      '^\d{4}[-/].*:\d{2}([.]\d+)?\s*(Z|z|UTC|GMT|[+-]([01]\d|2[0-3])(:?[0-5]\d)?|[A-Za-z]+/[A-Za-z_/]+)$'
    ) AND (zone = '' OR zone IN (SELECT name FROM pg_timezone_names())) AS zoned,
    CASE
      WHEN regexp_matches(
        time_text, '^\d{4}[-/]\d\d?[-/]\d\d?([T ]\d\d?:\d\d(:\d\d([.]\d+)?)?)?$'
      ) THEN TRY_CAST(time_text AS TIMESTAMP)
    END AS naive
  FROM draft
), read AS (
  SELECT *,
    CASE
      -- Seconds, milliseconds, microseconds, or nanoseconds between 1990 and 2100.
      WHEN epoch IS NOT NULL THEN make_timestamp((CASE
        WHEN epoch BETWEEN 6.3e8 AND 4.1e9 THEN epoch * 1e6
        WHEN epoch BETWEEN 6.3e11 AND 4.1e12 THEN epoch * 1e3
        WHEN epoch BETWEEN 6.3e14 AND 4.1e15 THEN epoch
        WHEN epoch BETWEEN 6.3e17 AND 4.1e18 THEN epoch / 1e3 END)::BIGINT)
      WHEN zoned THEN TRY_CAST(time_text AS TIMESTAMPTZ)::TIMESTAMP
      ELSE (naive AT TIME ZONE $timezone::VARCHAR)::TIMESTAMP
    END AS moment,
    CASE kind
      WHEN 'thumbs' THEN CASE
        WHEN number = 1 OR value IN (
          'up', 'thumbs_up', 'thumbs-up', 'thumbs up', 'positive', 'helpful', 'like', 'true', 'yes'
        ) THEN 1
        WHEN number IN (0, -1) OR value IN (
          'down', 'thumbs_down', 'thumbs-down', 'thumbs down', 'negative', 'not helpful',
          'unhelpful', 'dislike', 'false', 'no'
        ) THEN -1 END
      WHEN 'preference' THEN CASE
        WHEN number IN (-1, 0, 1) THEN number
        WHEN value IN ('a', 'first', 'left', '1') THEN 1
        WHEN value IN ('b', 'second', 'right', '2') THEN -1
        WHEN value IN ('tie', 'equal', 'both', 'same') THEN 0 END
      WHEN 'label' THEN CASE
        WHEN number = 1 OR value IN ('answerable', 'true', 'yes') THEN 1
        WHEN number = 0 OR value IN ('unanswerable', 'not answerable', 'false', 'no') THEN 0 END
      ELSE CASE WHEN isfinite(number) THEN number END
    END AS meant,
    kind = 'preference' AND value IN ('both bad', 'both_bad', 'neither', 'none') AS neither
  FROM numbers
), events_with_problems AS (
  SELECT *,
    CASE
      WHEN fault IS NOT NULL THEN fault
      WHEN time_text IS NULL THEN 'no time'
      WHEN moment IS NULL AND naive IS NOT NULL THEN 'a time without a zone'
      WHEN moment IS NULL THEN 'a time that cannot be read'
      WHEN moment NOT BETWEEN TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'
        THEN 'a time outside the years 1 to 9999 in UTC'
      WHEN kind IS NULL THEN 'no kind'
      WHEN kind = 'other' THEN NULL
      WHEN kind IN ('thumbs', 'label') AND meant IS NULL THEN 'a value that cannot be read'
      WHEN kind = 'preference' AND meant IS NULL AND coalesce(value, lower(label), '')
        NOT IN ('both bad', 'both_bad', 'neither', 'none') THEN 'a value that cannot be read'
      WHEN ranks IS NOT NULL AND (
        list_count(rank_numbers) < len(ranks)
        OR len([r FOR r IN rank_numbers IF r <> floor(r) OR r + shift < 1 OR r > 2e9]) > 0
      ) THEN 'an invalid rank'
      WHEN ranks IS NOT NULL AND len(ranks) <> coalesce(len(documents), 0)
        THEN 'the numbers of ranks and documents differ'
      WHEN scores IS NOT NULL AND (
        list_count(score_numbers) < len(scores)
        OR len([s FOR s IN score_numbers IF NOT isfinite(s)]) > 0
        OR len(scores) <> coalesce(len(documents), 0)
      ) THEN 'scores that cannot be read'
      WHEN latency_ms IS NOT NULL AND (latency IS NULL OR NOT isfinite(latency) OR latency < 0)
        THEN 'a latency that cannot be read'
    END AS problem
  FROM read
), plain AS (
  SELECT line, part, lost, problem, event_id, kind, moment AS time, question_id, session_id, user_id,
    arm, text, documents,
    CASE
      WHEN problem IS NOT NULL OR kind = 'other' THEN NULL
      WHEN ranks IS NOT NULL THEN [(r + shift)::INTEGER FOR r IN rank_numbers]
      WHEN kind = 'retrieval' THEN range(1, len(documents) + 1)::INTEGER[]
    END AS ranks,
    CASE WHEN problem IS NULL AND kind <> 'other' THEN score_numbers END AS scores,
    meant AS value,
    coalesce(label, CASE WHEN neither THEN 'both bad' END) AS label,
    CASE WHEN isfinite(latency) THEN latency END AS latency_ms,
    CASE WHEN cardinality(attributes) > 0 THEN attributes END AS attributes,
    -- What the columns above drop still distinguishes events.
    json_array(
      CASE WHEN meant IS NULL THEN value END,
      CASE WHEN isfinite(latency) IS NOT TRUE THEN latency_ms END,
      CASE WHEN kind = 'other' THEN ranks END,
      CASE WHEN kind = 'other' THEN scores END
    ) AS dropped
  FROM events_with_problems
)
SELECT * EXCLUDE (dropped, lost) REPLACE (
    coalesce(event_id, md5(concat(json_array(
      kind, epoch_us(time), question_id, session_id, user_id, arm, text, documents, ranks, scores,
      value, label, latency_ms, list_sort(map_entries(attributes)), dropped
    )::VARCHAR, lost))) AS event_id
  ),
  event_id IS NOT NULL AS identified,
  $source || ':' || line AS source
FROM plain
ORDER BY line, part
