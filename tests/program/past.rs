//! A history to test with: a database of one's own, a document that was really measured, and what is in the database by
//! SQLite's own account.

use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::{Ended, pipemark};

/// A folder with a database in it that goes away with the test.
pub struct Past {
    folder: TempDir,
}

/// A measurement of a moment: five runs of one trial.
pub const SMALL: [&str; 8] = ["bw", "--block", "4k", "--place", "free", "--runs", "5", "--time"];

/// The rest of [`SMALL`] and what a test adds.
pub fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SMALL[..], &["2ms", "--quiet"], more].concat()
}

impl Past {
    pub fn new() -> Past {
        Past { folder: tempfile::tempdir().unwrap() }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn db(&self) -> PathBuf {
        self.file("history.db")
    }

    /// `--db FILE` for this database.
    pub fn flag(&self) -> [String; 2] {
        ["--db".to_owned(), self.db().to_str().unwrap().to_owned()]
    }

    /// Runs `pipemark WORDS --db FILE`.
    pub fn run(&self, words: &[&str]) -> Ended {
        let flag = self.flag();
        let flag = [flag[0].as_str(), flag[1].as_str()];
        pipemark(&[words, &flag].concat())
    }

    /// Runs `pipemark history WORDS`, which has to go well; returns what it printed.
    pub fn history(&self, words: &[&str]) -> String {
        let ended = self.run(&[&["history"], words].concat());
        assert_eq!(ended.code(), Some(0), "{words:?}: {}", ended.stderr);
        ended.stdout
    }

    /// The list for programs.
    pub fn list(&self, words: &[&str]) -> Vec<Value> {
        serde_json::from_str(&self.history(&[&["list", "--format", "json"], words].concat())).unwrap()
    }

    /// The ids in the list.
    pub fn ids(&self, words: &[&str]) -> Vec<u64> {
        self.list(words).iter().map(|run| run["id"].as_u64().unwrap()).collect()
    }

    /// Measures and keeps a moment.
    pub fn measure(&self, more: &[&str]) {
        let ended = self.run(&small(more));
        assert_eq!((ended.code(), ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    }

    /// Takes a document in.
    pub fn import(&self, document: &Value) {
        let path = self.file("import.json");
        fs::write(&path, document.to_string()).unwrap();
        self.history(&["import", path.to_str().unwrap()]);
    }

    /// The database as it is after the next one who opens it has put in order what a kill left behind: whole, with a
    /// document for each run. Returns the runs' labels in the order in which they were kept.
    pub fn intact(&self) -> Vec<Option<String>> {
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

/// A document that was measured a moment ago.
pub fn document() -> Value {
    let ended = pipemark(&small(&["--no-save", "--json", "-"]));
    ended.measured()
}

/// The document as it would be from another time: began then, and every run `speed` times as fast.
pub fn at(document: &Value, started: &str, speed: f64) -> Value {
    let mut document = document.clone();
    document["started"] = started.into();
    for trial in document["trials"].as_array_mut().unwrap() {
        let mut figures = Vec::new();
        for (index, sample) in trial["samples"].as_array_mut().unwrap().iter_mut().enumerate() {
            // Runs differ by some per mille; exactly 1 GiB/s times the speed in the middle.
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
