//! The layout of the code is what docs/architecture.md says: every module is named there, and each uses only those above it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap()
}

/// The modules in the order of the page's table.
fn described() -> Vec<String> {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let (_, table) = page.split_once("| module | what it holds |").expect("the table of modules");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
    rows.map(|row| row.split('`').nth(1).unwrap().to_owned()).collect()
}

fn modules() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("crates/pipemark/src")).unwrap().map(|entry| entry.unwrap().path());
    let stem = |path: PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    entries.map(stem).filter(|name| name != "main").collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            false => {}
        }
    }
}

/// The words after `crate::` in the part of a file that is no test.
fn used(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let after = code.split("crate::").skip(1).map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
    after.flatten().map(str::to_owned).collect()
}

#[test]
fn every_module_is_described() {
    assert_eq!(described().into_iter().collect::<BTreeSet<_>>(), modules());
}

#[test]
fn modules_use_only_those_above_them() {
    let order = described();
    let place = |name: &str| order.iter().position(|module| module == name);
    let source = root().join("crates/pipemark/src");
    let mut wrong = Vec::new();
    for module in &order {
        let mut files = Vec::new();
        let folder = source.join(module);
        match folder.is_dir() {
            true => sources(&folder, &mut files),
            false => files.push(source.join(format!("{module}.rs"))),
        }
        let tests =
            |path: &PathBuf| ["tests.rs", "fixture.rs", "simulations.rs"].iter().any(|name| path.ends_with(name));
        for file in files.iter().filter(|path| !tests(path)) {
            let below = |name: &String| place(name) > place(module);
            let used = used(&fs::read_to_string(file).unwrap());
            wrong.extend(used.into_iter().filter(below).map(|name| format!("{} uses {name}", file.display())));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
