//! The tables, their versions (`user_version`), and the migrations.

use rusqlite::{Connection, TransactionBehavior};

use crate::store::HistoryError;

/// The application id, "pipe", which distinguishes the history from databases of other programs.
const APPLICATION: i64 = 0x7069_7065;

/// The migrations from version N to N + 1. A migration must not change once it is released, because databases of every
/// version exist.
const MIGRATIONS: [&str; 2] = [
    // Lists read only the table `run`. If it held the documents, its rows would be far apart.
    "CREATE TABLE run (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started INTEGER NOT NULL, -- nanoseconds since 1970 in UTC
        suite TEXT NOT NULL,
        title TEXT NOT NULL,
        label TEXT,
        host TEXT NOT NULL,
        kernel TEXT NOT NULL,
        cpu TEXT NOT NULL,
        version TEXT NOT NULL,
        trials INTEGER NOT NULL,
        measured INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        headline TEXT NOT NULL
    ) STRICT;
    CREATE INDEX run_by_time ON run (started, id);
    CREATE TABLE document (
        run INTEGER PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
        json TEXT NOT NULL -- as --json wrote it, byte for byte
    ) STRICT;",
    // This table finds the runs of a trial without reading all documents.
    "CREATE TABLE trial (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, params TEXT NOT NULL) STRICT;
    CREATE TABLE measured (
        trial INTEGER NOT NULL REFERENCES trial (id) ON DELETE CASCADE,
        run INTEGER NOT NULL REFERENCES run (id) ON DELETE CASCADE,
        PRIMARY KEY (trial, run)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX measured_by_run ON measured (run);
    CREATE TEMPORARY TABLE seen AS
        SELECT document.run, each.value ->> 'id' AS key, each.value -> 'params' AS params
        FROM document, json_each(document.json, '$.trials') AS each
        WHERE each.value ->> 'estimate' IS NOT NULL;
    INSERT OR IGNORE INTO trial (key, params) SELECT key, params FROM seen ORDER BY run;
    INSERT OR IGNORE INTO measured (trial, run) SELECT trial.id, seen.run FROM seen JOIN trial USING (key);
    DROP TABLE seen;",
];

/// The version that this program reads and writes.
const CURRENT: i64 = MIGRATIONS.len() as i64;

/// Migrates an older version, or a new empty file, to the current version. Changes nothing if the version is current.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), HistoryError> {
    // One transaction, so that all values are read at the same moment.
    let transaction = connection.transaction()?;
    if checked_version(&transaction)? == CURRENT {
        return Ok(());
    }
    drop(transaction);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have migrated the database meanwhile.
    let version = checked_version(&transaction)?;
    for step in MIGRATIONS.iter().skip(version as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", CURRENT)?;
    Ok(transaction.commit()?)
}

/// The version, 0 to [`CURRENT`], or the reason not to use the database.
fn checked_version(connection: &Connection) -> Result<i64, HistoryError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version) {
        (0, 0) if tables == 0 => Ok(0),
        (APPLICATION, 1..=CURRENT) => Ok(version),
        (APPLICATION, found) if found > CURRENT => Err(HistoryError::new(format!(
            "was written by a newer pipemark (format {found}; this one knows {CURRENT}); it is unchanged: update \
             pipemark, or use another --db FILE"
        ))),
        _ => Err(HistoryError::new("is a database of another program; use another --db FILE")),
    }
}
