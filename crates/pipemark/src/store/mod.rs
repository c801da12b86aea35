//! The history: every measurement of this user, in one SQLite database. A document is stored exactly as `--json`
//! writes it. The fields for lists are stored separately, so that lists never read a document.
//!
//! SQLite uses a rollback journal, not a write-ahead log. So between runs the history is a single file, works on
//! network file systems, and can be read in a read-only directory.

mod entry;
mod error;
mod path;
mod version;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags, Params, Row, TransactionBehavior, params};

use pipemark_model::{Document, Job};
use pipemark_tune::result::ExperimentResult;
use pipemark_watch::PipelineReport;

pub use entry::{Entry, EntryOutcome, Filter, Id};
pub use error::HistoryError;
pub use path::default_path;

/// How long a writer or reader waits for a lock on the database. Saving takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Columns of an [`Entry`], in the order in which [`entry()`] reads them.
const ENTRY_COLUMNS: &str =
    "id, started, suite, title, label, host, kernel, cpu, version, trials, measured, outcome, headline";

/// The SQL condition for a [`Filter`]: suite, label, host, time and trial. Fields that are `None` are ignored. The
/// suites of one run are joined by `, `. Labels and hosts are also compared literally, since they may contain a
/// bracket.
const FILTER_CONDITION: &str = "(?1 IS NULL OR instr(', ' || run.suite || ', ', ', ' || ?1 || ', ') > 0) \
                      AND (?2 IS NULL OR run.label = ?2 OR run.label GLOB ?2) \
                      AND (?3 IS NULL OR run.host = ?3 OR run.host GLOB ?3) \
                      AND (?4 IS NULL OR run.started >= ?4) \
                      AND (?5 IS NULL OR run.id IN \
                      (SELECT run FROM measured JOIN trial ON trial.id = measured.trial WHERE trial.key = ?5))";

/// An open history.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
    /// Whether the file system has locks.
    locks: bool,
}

/// A trial that a run of the history has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownTrial {
    /// The trial's stable key, as in [`pipemark_model::Record`].
    pub key: String,
    /// The job that the key identifies.
    pub job: Job,
    /// The number of selected runs that have measured it.
    pub runs: u32,
}

/// Parses a document, and checks the watched pipeline in it.
pub fn parse(json: &str) -> serde_json::Result<Document> {
    let document: Document = serde_json::from_str(json)?;
    if let Some(watched) = &document.watched {
        PipelineReport::from_record(watched)?;
    }
    if let Some(tuned) = &document.tuned {
        ExperimentResult::from_record(tuned)?;
    }
    Ok(document)
}

impl History {
    /// Opens the history at `path`, or at the default path, for writing. Creates it if there is none.
    ///
    /// # Errors
    /// If the file or its directory doesn't belong to the user or can't be written, or if the file isn't a history or
    /// has a newer format.
    pub fn create(path: Option<&Path>) -> Result<History, HistoryError> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => {
                let path = default_path()?;
                path::create_directory(&path)?;
                path
            }
        };
        History::connect(path::create(&path)?)
    }

    /// Opens the history at `path`, or at the default path, for reading; `None` if there is none yet.
    ///
    /// # Errors
    /// As [`History::create`].
    pub fn open(path: Option<&Path>) -> Result<Option<History>, HistoryError> {
        let path = path.map_or_else(default_path, |path| Ok(path.to_owned()))?;
        path::find(&path)?.map(History::connect).transpose()
    }

    fn connect(path: PathBuf) -> Result<History, HistoryError> {
        let locks = path::has_locks(&path);
        History::connect_with(path, locks)
    }

    /// On a file system without locks, writers and readers exclude each other with a directory next to the database,
    /// FILE.lock.
    fn connect_with(path: PathBuf, locks: bool) -> Result<History, HistoryError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connect = || -> Result<Connection, HistoryError> {
            let mut connection = match locks {
                true => Connection::open_with_flags(&path, flags)?,
                false => Connection::open_with_flags_and_vfs(&path, flags, c"unix-dotfile")?,
            };
            connection.busy_timeout(LOCK_TIMEOUT)?;
            // The schema of another user's file must not run any code.
            connection.pragma_update(None, "trusted_schema", false)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.pragma_update(None, "temp_store", "MEMORY")?;
            // The directory is synchronized too, so that a deleted journal doesn't reappear after a power cut.
            connection.pragma_update(None, "synchronous", "EXTRA")?;
            version::migrate(&mut connection)?;
            Ok(connection)
        };
        let connection = connect().map_err(|error| error.without_locks(locks, &path).at(&path))?;
        Ok(History { connection, path, locks })
    }

    /// All rows that a query returns.
    fn rows<T>(
        &self,
        query: &str,
        values: impl Params,
        row: impl FnMut(&Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, HistoryError> {
        let rows = || self.connection.prepare(query)?.query_map(values, row)?.collect::<rusqlite::Result<Vec<T>>>();
        rows().map_err(|error| HistoryError::from(error).at(&self.path))
    }

    /// Saves a document, completely or not at all. `json` is its text, which is stored unchanged. A document that is
    /// already stored is not saved again, and its number is returned.
    ///
    /// # Errors
    /// If it can't be written. The history is then unchanged.
    pub fn save(&mut self, document: &Document, json: &str) -> Result<Id, HistoryError> {
        let entry = Entry::of(document).map_err(|error| error.at(&self.path))?;
        let query = "SELECT id FROM run WHERE started = ?";
        for id in self.rows(query, [nanoseconds(entry.started)], |row| Ok(Id(row.get(0)?)))? {
            // A stored document that can't be read counts as a different one.
            if self.document(id).is_ok_and(|kept| kept.as_ref() == Some(document)) {
                return Ok(id);
            }
        }
        let saved = save(&mut self.connection, &entry, document, json);
        saved.map_err(|error| error.without_locks(self.locks, &self.path).at(&self.path))
    }

    /// The runs that match the filter, newest first.
    ///
    /// # Errors
    /// If the database can't be read, here and in the functions below.
    pub fn list(&self, filter: &Filter) -> Result<Vec<Entry>, HistoryError> {
        let Filter { suite, label, host, since, trial, limit } = filter;
        let limit = limit.map_or(-1, i64::from);
        let query =
            format!("SELECT {ENTRY_COLUMNS} FROM run WHERE {FILTER_CONDITION} ORDER BY started DESC, id DESC LIMIT ?6");
        self.rows(&query, params![suite, label, host, since.map(nanoseconds), trial, limit], entry)
    }

    /// The number of all runs.
    pub fn count(&self) -> Result<usize, HistoryError> {
        let count: Option<u32> = self.rows("SELECT count(*) FROM run", [], |row| row.get(0))?.pop();
        Ok(count.unwrap_or(0) as usize)
    }

    /// One run's entry.
    pub fn entry(&self, id: Id) -> Result<Option<Entry>, HistoryError> {
        Ok(self.rows(&format!("SELECT {ENTRY_COLUMNS} FROM run WHERE id = ?"), [id.0], entry)?.pop())
    }

    /// The text of one run's document, as `--json` writes it.
    pub fn json(&self, id: Id) -> Result<Option<String>, HistoryError> {
        Ok(self.rows("SELECT json FROM document WHERE run = ?", [id.0], |row| row.get(0))?.pop())
    }

    /// The document of one run.
    pub fn document(&self, id: Id) -> Result<Option<Document>, HistoryError> {
        let Some(json) = self.json(id)? else { return Ok(None) };
        parse(&json).map(Some).map_err(|error| {
            let what = format!(
                "has a run {id} that can't be read: {error}; 'pipemark history export {id}' writes the run unchanged"
            );
            HistoryError::of(&self.path, what)
        })
    }

    /// Deletes runs. If one of the ids is unknown, deletes none and returns that id.
    ///
    /// # Errors
    /// If the database can't be written.
    pub fn delete(&mut self, ids: &[Id]) -> Result<Option<Id>, HistoryError> {
        let mut delete = || -> rusqlite::Result<Option<Id>> {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for &id in ids {
                if transaction.execute("DELETE FROM run WHERE id = ?", [id.0])? == 0 {
                    return Ok(Some(id));
                }
            }
            transaction.execute("DELETE FROM trial WHERE id NOT IN (SELECT trial FROM measured)", [])?;
            transaction.commit()?;
            Ok(None)
        };
        delete().map_err(|error| HistoryError::from(error).at(&self.path))
    }

    /// All trials measured by runs that match the filter, the most often measured first. The filter's limit is
    /// ignored.
    pub fn trials(&self, filter: &Filter) -> Result<Vec<KnownTrial>, HistoryError> {
        let Filter { suite, label, host, since, trial, limit: _ } = filter;
        let query = format!(
            "SELECT trial.key, trial.params, count(*) AS runs FROM trial \
             JOIN measured ON measured.trial = trial.id JOIN run ON run.id = measured.run \
             WHERE {FILTER_CONDITION} GROUP BY trial.id ORDER BY runs DESC, trial.key"
        );
        // A trial with parameters that this version doesn't know is omitted, because it can't be requested either.
        let known = |row: &Row| match serde_json::from_str(&row.get::<_, String>(1)?) {
            Ok(job) => Ok(Some(KnownTrial { key: row.get(0)?, job, runs: row.get(2)? })),
            Err(_) => Ok(None),
        };
        let chosen = params![suite, label, host, since.map(nanoseconds), trial];
        Ok(self.rows(&query, chosen, known)?.into_iter().flatten().collect())
    }
}

fn save(connection: &mut Connection, entry: &Entry, document: &Document, json: &str) -> Result<Id, HistoryError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let insert = "INSERT INTO run (started, suite, title, label, host, kernel, cpu, version, trials, measured, outcome, \
                  headline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let Entry { started, suite, title, label, host, kernel, cpu, version, trials, measured, outcome, headline, .. } =
        entry;
    let started = nanoseconds(*started);
    let outcome = outcome.to_string();
    transaction.execute(
        insert,
        params![started, suite, title, label, host, kernel, cpu, version, trials, measured, outcome, headline],
    )?;
    let run = transaction.last_insert_rowid();
    transaction.execute("INSERT INTO document (run, json) VALUES (?, ?)", params![run, json])?;
    for record in document.trials.iter().filter(|record| record.estimate.is_some()) {
        let params = serde_json::to_string(&record.job).expect("parameters are text and whole numbers");
        let known = "INSERT INTO trial (key, params) VALUES (?, ?) ON CONFLICT (key) DO NOTHING";
        transaction.execute(known, [&record.id, &params])?;
        // Two experiments of a suite may have the same trial.
        let measured = "INSERT OR IGNORE INTO measured (trial, run) SELECT id, ? FROM trial WHERE key = ?";
        transaction.execute(measured, params![run, record.id])?;
    }
    transaction.commit()?;
    Ok(Id(run))
}

fn entry(row: &Row) -> rusqlite::Result<Entry> {
    let started = Timestamp::from_nanosecond(i128::from(row.get::<_, i64>(1)?)).unwrap_or(Timestamp::UNIX_EPOCH);
    Ok(Entry {
        id: Id(row.get(0)?),
        started,
        suite: row.get(2)?,
        title: row.get(3)?,
        label: row.get(4)?,
        host: row.get(5)?,
        kernel: row.get(6)?,
        cpu: row.get(7)?,
        version: row.get(8)?,
        trials: row.get(9)?,
        measured: row.get(10)?,
        outcome: row.get::<_, String>(11)?.parse().unwrap_or(EntryOutcome::Failed),
        headline: row.get(12)?,
    })
}

/// Nanoseconds since 1970, as in the database. [`Entry::of`] refuses times that don't fit.
fn nanoseconds(time: Timestamp) -> i64 {
    i64::try_from(time.as_nanosecond()).unwrap_or(if time < Timestamp::UNIX_EPOCH { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_file_locks_writers_exclude_each_other_by_a_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = path::create(&directory.path().join("history.db")).unwrap();
        let lock = directory.path().join("history.db.lock");
        let mut history = History::connect_with(path.clone(), false).unwrap();
        assert_eq!(history.count().unwrap(), 0);
        assert!(!lock.exists(), "the lock directory remains although nobody reads or writes");
        history.connection.busy_timeout(Duration::ZERO).unwrap();
        // Simulates another process that is writing, or was killed while writing.
        std::fs::create_dir(&lock).unwrap();
        let error = history.delete(&[Id(1)]).unwrap_err();
        assert!(error.to_string().contains("locked"), "{error}");
        std::fs::remove_dir(&lock).unwrap();
        assert_eq!(history.delete(&[Id(1)]).unwrap(), Some(Id(1)));
    }

    #[test]
    fn a_stale_lock_directory_is_named() {
        let error =
            HistoryError::of(Path::new("/x/h.db"), "was locked by another process for 10 seconds; end that process");
        let error = error.without_locks(false, Path::new("/x/h.db")).to_string();
        assert!(error.contains("/x/h.db.lock"), "{error}");
    }
}
