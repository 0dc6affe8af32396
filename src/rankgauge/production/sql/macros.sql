-- Macros of the statements that translate rows of a source to drafts of events.
-- A text, or NULL if it is blank.
CREATE OR REPLACE TEMP MACRO known(cell) AS nullif(trim(cell), '');
-- The texts of a JSON list, of a separated text, or (with an empty separator) of a single text.
CREATE OR REPLACE TEMP MACRO items(cell, separator) AS
  CASE
    WHEN known(cell) IS NULL THEN NULL
    WHEN starts_with(ltrim(cell), '[') AND json_valid(cell) THEN from_json(cell, '["VARCHAR"]')
    WHEN separator = '' THEN [cell]
    ELSE string_split(cell, separator)
  END;
-- The meaning of a word, or another one if it has none.
CREATE OR REPLACE TEMP MACRO meaning(word, words, meanings, other) AS
  coalesce((meanings::VARCHAR[])[list_position(words::VARCHAR[], word)], other);
-- The kind of an event; a blank word has none.
CREATE OR REPLACE TEMP MACRO kind_of(word, words, kinds) AS
  CASE WHEN known(word) IS NOT NULL THEN meaning(word, words, kinds, 'other') END;
-- A map of the names that have a value.
CREATE OR REPLACE TEMP MACRO attributes_of(names, cells) AS
  map_from_entries(
    [pair FOR pair IN list_zip(names::VARCHAR[], cells::VARCHAR[]) IF pair[2] IS NOT NULL]
  );
-- The map in a text with a JSON object, or an empty map.
CREATE OR REPLACE TEMP MACRO map_in(cell) AS
  CASE WHEN starts_with(cell, '{') AND json_valid(cell)
    THEN from_json(cell, '"MAP(VARCHAR, VARCHAR)"') ELSE MAP {}::MAP(VARCHAR, VARCHAR) END;
