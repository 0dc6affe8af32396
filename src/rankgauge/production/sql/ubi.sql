-- Drafts of the UBI events in `fields`: a query is a question and, with hits, a retrieval; an event
-- has the kind of its action. $actions have the kinds $kinds, `extra` has the values of $names.
INSERT INTO draft BY NAME
WITH kinds AS (
  SELECT *, known(application) AS app,
    CASE WHEN action_name IS NULL THEN 'question'
      ELSE kind_of(action_name, $actions, $kinds) END AS kind,
    known("event_attributes.object.object_id") IS NOT NULL AS is_shown,
    "event_attributes.documents" IS NULL AS is_single
  FROM fields
), events AS (
  SELECT line, 0 AS part, kind,
    known("timestamp") AS time,
    known(query_id) AS question_id,
    coalesce(known(session_id), known("event_attributes.session_id")) AS session_id,
    coalesce(known(user_id), known(client_id)) AS user_id,
    coalesce(
      known("query_attributes.arm"), known("query_attributes.experiment_arm"),
      known("query_attributes.variant"), known("event_attributes.arm"),
      known("event_attributes.experiment_arm"), known("event_attributes.variant")
    ) AS arm,
    known(event_id) AS event_id,
    CASE
      WHEN action_name IS NULL OR action_name = 'impression' THEN known(user_query)
      WHEN action_name IN ('answer_shown', 'feedback', 'preference')
        THEN coalesce(known("event_attributes.text"), known(message))
    END AS text,
    CASE
      WHEN action_name IS NULL THEN NULL
      WHEN NOT is_single THEN items("event_attributes.documents", '')
      WHEN is_shown THEN ["event_attributes.object.object_id"]
    END AS documents,
    CASE
      WHEN action_name IS NOT NULL AND is_single AND is_shown
        AND "event_attributes.position.ordinal" IS NOT NULL
      THEN ["event_attributes.position.ordinal"]
    END AS ranks,
    "event_attributes.value" AS value,
    CASE kind WHEN 'other' THEN action_name WHEN 'preference' THEN "event_attributes.value" END
      AS label,
    "event_attributes.latency_ms" AS latency_ms,
    map_concat(
      attributes_of(['application'], [app]), attributes_of($names, extra), map_in(query_attributes)
    ) AS attributes,
    coalesce(app, '') AS rank_group,
    CASE
      WHEN invalid THEN 'not a JSON object'
      WHEN action_name IS NULL
        AND (query_id IS NULL OR coalesce(user_query, query_response_hit_ids) IS NULL)
        THEN 'neither a query nor an event of UBI'
    END AS fault,
    action_name IS NULL AND query_id IS NOT NULL AND query_response_hit_ids IS NOT NULL AS is_search,
    items(query_response_hit_ids, '') AS hits
  FROM kinds
)
SELECT * EXCLUDE (is_search, hits) FROM events
UNION ALL BY NAME
SELECT line, 1 AS part, 'retrieval' AS kind, time, question_id, session_id, user_id, arm,
  hits AS documents
FROM events
WHERE is_search
