CREATE TABLE rankgauge_answers_claims (
	text VARCHAR(64) NOT NULL, 
	extractor VARCHAR(200) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (text, extractor)
);
CREATE TABLE rankgauge_answers_verdicts (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	"key" VARCHAR(64) NOT NULL, 
	judge VARCHAR(200) NOT NULL, 
	prompt VARCHAR(100) NOT NULL, 
	replicate INTEGER NOT NULL, 
	label VARCHAR(20) NOT NULL, 
	body TEXT NOT NULL
);
CREATE TABLE rankgauge_artifacts (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name VARCHAR(64) NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	size BIGINT NOT NULL, 
	UNIQUE (name)
);
CREATE TABLE rankgauge_blocks (
	artifact VARCHAR(64) NOT NULL, 
	number INTEGER NOT NULL, 
	time BIGINT NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (artifact, number)
);
CREATE TABLE rankgauge_gates (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	time VARCHAR(32) NOT NULL, 
	author TEXT NOT NULL, 
	verdict VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL
);
CREATE TABLE rankgauge_jobs (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	time VARCHAR(32) NOT NULL, 
	author TEXT NOT NULL, 
	arguments TEXT NOT NULL, 
	state VARCHAR(12) NOT NULL, 
	attempt INTEGER NOT NULL, 
	beat INTEGER NOT NULL, 
	share FLOAT, 
	message TEXT NOT NULL, 
	ended VARCHAR(32)
);
CREATE TABLE rankgauge_judging_answers (
	id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE rankgauge_judging_candidates (
	question TEXT NOT NULL, 
	document TEXT NOT NULL, 
	source TEXT NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	rank INTEGER, 
	score FLOAT, 
	probability FLOAT, 
	time VARCHAR(32) NOT NULL, 
	PRIMARY KEY (question, document, source, kind)
);
CREATE TABLE rankgauge_judging_documents (
	id TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE rankgauge_judging_gold (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	question TEXT NOT NULL, 
	body TEXT NOT NULL
);
CREATE TABLE rankgauge_judging_judges (
	id TEXT NOT NULL, 
	secret TEXT, 
	revoked VARCHAR(32), 
	time VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (secret)
);
CREATE TABLE rankgauge_judging_presentations (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(36) NOT NULL, 
	question TEXT NOT NULL, 
	judge TEXT NOT NULL, 
	time VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	UNIQUE (id)
);
CREATE TABLE rankgauge_judging_questions (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id TEXT NOT NULL, 
	time VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL
);
CREATE TABLE rankgauge_judging_versions (
	kind VARCHAR(12) NOT NULL, 
	number INTEGER NOT NULL, 
	time VARCHAR(32) NOT NULL, 
	author TEXT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (kind, number)
);
CREATE TABLE rankgauge_queries (
	hash VARCHAR(64) NOT NULL, 
	ids BLOB NOT NULL, 
	PRIMARY KEY (hash)
);
CREATE TABLE rankgauge_version (
	version_num VARCHAR(32) NOT NULL
);
CREATE TABLE rankgauge_evaluations (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	time VARCHAR(32) NOT NULL, 
	run TEXT NOT NULL, 
	queries VARCHAR(64) NOT NULL, 
	head TEXT NOT NULL, 
	seal VARCHAR(64) NOT NULL, 
	FOREIGN KEY(queries) REFERENCES rankgauge_queries (hash)
);
CREATE TABLE rankgauge_judging_choices (
	sequence INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id VARCHAR(36) NOT NULL, 
	presentation VARCHAR(36) NOT NULL, 
	judge TEXT NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	time VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	UNIQUE (id), 
	FOREIGN KEY(presentation) REFERENCES rankgauge_judging_presentations (id)
);
CREATE TABLE rankgauge_judging_sessions (
	token VARCHAR(64) NOT NULL, 
	judge TEXT NOT NULL, 
	expires VARCHAR(32) NOT NULL, 
	PRIMARY KEY (token), 
	FOREIGN KEY(judge) REFERENCES rankgauge_judging_judges (id)
);
CREATE TABLE rankgauge_uses (
	evaluation INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	artifact VARCHAR(64) NOT NULL, 
	PRIMARY KEY (evaluation, number), 
	FOREIGN KEY(evaluation) REFERENCES rankgauge_evaluations (id), 
	FOREIGN KEY(artifact) REFERENCES rankgauge_artifacts (name)
);
CREATE TABLE rankgauge_values (
	evaluation INTEGER NOT NULL, 
	kind VARCHAR(12) NOT NULL, 
	name VARCHAR(500) NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (evaluation, kind, name), 
	FOREIGN KEY(evaluation) REFERENCES rankgauge_evaluations (id)
);
CREATE INDEX rankgauge_judging_presentations_judge ON rankgauge_judging_presentations (judge);
CREATE INDEX rankgauge_judging_presentations_question ON rankgauge_judging_presentations (question);
CREATE INDEX rankgauge_judging_choices_presentation ON rankgauge_judging_choices (presentation);
