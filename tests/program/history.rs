//! A history for tests: its own database, measured documents, and the database's content as SQLite reads it.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::{ProgramOutput, pipemark, placement};

/// A temporary directory with a database.
pub struct TestHistory {
    directory: TempDir,
}

/// The words of a short measurement, five runs of one trial, followed by `more`.
pub fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = ["bw", "--block", "4k", "--place", placement(), "--runs", "5", "--time", "2ms", "--quiet"];
    [&words[..], more].concat()
}

impl TestHistory {
    pub fn new() -> TestHistory {
        TestHistory { directory: tempfile::tempdir().unwrap() }
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn db(&self) -> PathBuf {
        self.file("history.db")
    }

    /// `--db FILE` for this database.
    pub fn flag(&self) -> [String; 2] {
        ["--db".to_owned(), self.db().to_str().unwrap().to_owned()]
    }

    /// Runs `pipemark WORDS --db FILE`.
    pub fn run(&self, words: &[&str]) -> ProgramOutput {
        let flag = self.flag();
        let flag = [flag[0].as_str(), flag[1].as_str()];
        pipemark(&[words, &flag].concat())
    }

    /// Runs `pipemark history WORDS`, which must succeed; returns its output.
    pub fn history(&self, words: &[&str]) -> String {
        let ended = self.run(&[&["history"], words].concat());
        assert_eq!(ended.code(), Some(0), "{words:?}: {}", ended.stderr);
        ended.stdout
    }

    /// The list of runs, as JSON.
    pub fn list(&self, words: &[&str]) -> Vec<Value> {
        serde_json::from_str(&self.history(&[&["list", "--format", "json"], words].concat())).unwrap()
    }

    /// The ids in the list.
    pub fn ids(&self, words: &[&str]) -> Vec<u64> {
        self.list(words).iter().map(|run| run["id"].as_u64().unwrap()).collect()
    }

    /// Makes a short measurement and saves it.
    pub fn measure(&self, more: &[&str]) {
        let ended = self.run(&small(more));
        assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    }

    /// Imports a document.
    pub fn import(&self, document: &Value) {
        let path = self.file("import.json");
        fs::write(&path, document.to_string()).unwrap();
        self.history(&["import", path.to_str().unwrap()]);
    }

    /// Opens the database with SQLite, which repairs what a kill left. Checks that the database is whole and that each
    /// run has a document. Returns the labels of the runs, oldest first.
    pub fn checked_labels(&self) -> Vec<Option<String>> {
        let database = Connection::open(self.db()).unwrap();
        let check: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        let query =
            "SELECT run.label, document.json FROM run LEFT JOIN document ON document.run = run.id ORDER BY run.id";
        let mut statement = database.prepare(query).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).unwrap();
        let rows: Vec<(Option<String>, String)> = rows.map(|row| row.expect("each run has a document")).collect();
        let labels = rows.into_iter().map(|(label, json)| {
            let document: Value = serde_json::from_str(&json).expect("each document is whole");
            assert_eq!(document["label"].as_str(), label.as_deref());
            label
        });
        labels.collect()
    }
}

/// A document measured just now.
pub fn document() -> Value {
    let ended = pipemark(&small(&["--no-save", "--json", "-"]));
    ended.measured()
}

/// The document as if measured at `started`, with every run at `speed` times 1 GiB/s.
pub fn at(document: &Value, started: &str, speed: f64) -> Value {
    let mut document = document.clone();
    document["started"] = started.into();
    for trial in document["trials"].as_array_mut().unwrap() {
        let mut figures = Vec::new();
        for (index, sample) in trial["samples"].as_array_mut().unwrap().iter_mut().enumerate() {
            // Runs differ by a per mille; the median is exactly 1 GiB/s times `speed`.
            let figure = speed * (1.0 + (index as f64 - 2.0) / 1000.0);
            sample["ns"] = 1_000_000_000u64.into();
            sample["bytes"] = ((figure * f64::from(1 << 30)) as u64).into();
            figures.push(figure * f64::from(1 << 30));
        }
        let throughput = &mut trial["estimate"]["throughput"];
        throughput["median"] = figures[figures.len() / 2].into();
        throughput["low"] = figures[0].into();
        throughput["high"] = figures[figures.len() - 1].into();
    }
    document
}
