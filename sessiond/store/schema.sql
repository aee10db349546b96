-- The index. `sessions` and the views are public (docs/sql.md); everything else may change with the schema version.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per file that is read.
CREATE TABLE sources (
    source_id      INTEGER PRIMARY KEY,
    path           ANY NOT NULL,              -- text, or bytes where the name is no UTF-8
    app            TEXT NOT NULL,
    home           TEXT NOT NULL,
    kind           TEXT NOT NULL,
    dev            INTEGER NOT NULL,
    ino            INTEGER NOT NULL,
    size           INTEGER NOT NULL,
    mtime_ns       INTEGER NOT NULL,
    ctime_ns       INTEGER NOT NULL,
    racy           INTEGER NOT NULL,          -- 1: changed so shortly before it was read that its times prove nothing
    reader_version INTEGER NOT NULL,
    gap_bytes      INTEGER NOT NULL,          -- bytes between head and tail that nobody has looked at
    state          BLOB NOT NULL,             -- where reading continues; the provider's own encoding
    problem        TEXT
) STRICT;

CREATE INDEX sources_with_gap ON sources (mtime_ns) WHERE gap_bytes > 0;

-- What one source says about one session.
CREATE TABLE observations (
    source_id INTEGER NOT NULL,
    id        TEXT NOT NULL,
    facts     BLOB NOT NULL,                  -- a JSON object in the provider's own keys, compressed (facts.py)
    PRIMARY KEY (source_id, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX observations_by_id ON observations (id);

-- One row per session: what all observations of one id amount to.
CREATE TABLE sessions (
    session_no INTEGER PRIMARY KEY,           -- links the search tables; means nothing outside
    -- the public columns
    UNIQUE (id, app)
) STRICT;

CREATE INDEX sessions_by_update ON sessions (updated_ms);
CREATE INDEX sessions_by_app ON sessions (app, updated_ms);

-- The rows of the default list, newest first: keeps searching it fast when most rows are hidden.
CREATE INDEX sessions_listed ON sessions (updated_ms)
    WHERE interactive = 1 AND resumable = 1 AND archived = 0 AND gone_ms IS NULL;
-- All others, so that they can be counted without looking at the whole table.
CREATE INDEX sessions_hidden ON sessions (updated_ms)
    WHERE NOT (interactive = 1 AND resumable = 1 AND archived = 0 AND gone_ms IS NULL);

-- Sessions whose last source vanished: they become gone at a second look.
CREATE TABLE missing (
    session_no INTEGER PRIMARY KEY,
    since_ms   INTEGER NOT NULL
) STRICT;

-- Folded copies (NFKD, casefold, marks removed) of what is searched.
CREATE TABLE search_text (
    session_no INTEGER PRIMARY KEY,
    title      TEXT NOT NULL,
    cwd        TEXT NOT NULL,
    branch     TEXT NOT NULL
) STRICT;

CREATE VIRTUAL TABLE sessions_fts USING fts5(
    title, cwd, branch,
    content = 'search_text', content_rowid = 'session_no',
    tokenize = 'trigram case_sensitive 1', columnsize = 0
);

-- Parts of ids. Without positions, so small; what it finds is looked at again.
CREATE VIRTUAL TABLE ids_fts USING fts5(
    id,
    content = 'sessions', content_rowid = 'session_no',
    tokenize = 'trigram', columnsize = 0, detail = none
);

-- Views for people.
CREATE VIEW session_list AS
SELECT app, id, title, cwd, branch,
       strftime('%Y-%m-%dT%H:%M:%fZ', updated_ms / 1000.0, 'unixepoch') AS updated,
       strftime('%Y-%m-%dT%H:%M:%fZ', created_ms / 1000.0, 'unixepoch') AS created,
       model, effort, bytes, repo, home, path, archived, interactive, resumable, gone_ms IS NOT NULL AS gone
FROM sessions
ORDER BY updated_ms DESC, id;

CREATE VIEW project_list AS
SELECT coalesce(repo, cwd) AS project, count(*) AS sessions, sum(bytes) AS bytes,
       strftime('%Y-%m-%dT%H:%M:%fZ', max(updated_ms) / 1000.0, 'unixepoch') AS updated,
       count(DISTINCT branch) AS branches
FROM sessions
WHERE gone_ms IS NULL AND coalesce(repo, cwd) IS NOT NULL
GROUP BY coalesce(repo, cwd)
ORDER BY max(updated_ms) DESC;

CREATE VIEW scan_problems AS
SELECT app, path, problem FROM sources WHERE problem IS NOT NULL ORDER BY path;
