-- Cosine similarity of the word sets of two texts, from 0 to 1; NULL without words.
CREATE MACRO words_of(question) AS
  list_distinct(regexp_extract_all(lower(question), '[\pL\pN]+'));
CREATE MACRO word_similarity(one, other) AS
  len(list_intersect(words_of(one), words_of(other)))
  / nullif(sqrt(len(words_of(one)) * len(words_of(other))), 0);
