//! Rules for the layout of the source tree that the compiler doesn't check: docs/architecture.md names every crate and
//! module, no crate depends on the program, modules have no cyclic dependencies, unsafe code is in three crates only, and each
//! type name has one meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap()
}

fn crates() -> Vec<PathBuf> {
    let mut crates: Vec<PathBuf> =
        fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    crates.sort();
    crates
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

/// A module's path within its crate; the root's is empty.
type Module = Vec<String>;

/// The modules of a crate with their code, without comments and tests.
fn modules(source: &Path) -> BTreeMap<Module, String> {
    fn add(directory: &Path, module: &Module, found: &mut BTreeMap<Module, String>) {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let mut own = module.clone();
            match name(&path).as_str() {
                // Used by tests only.
                "tests" | "fixture" | "simulations" => continue,
                "lib" | "main" | "mod" => {}
                name => own.push(name.to_owned()),
            }
            if path.is_dir() {
                add(&path, &own, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.insert(own, code(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = BTreeMap::new();
    add(source, &Vec::new(), &mut found);
    found
}

/// A file's code without comments and tests.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    text.lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// The paths of a `use` tree: `a::{b, c::{self, d as e}}` is a::b, a::c, a::c::d.
fn paths(tree: &str) -> Vec<Vec<String>> {
    let (head, group) = match tree.split_once('{') {
        Some((head, rest)) => (head, Some(rest.trim_end().strip_suffix('}').unwrap_or(rest))),
        None => (tree, None),
    };
    let words = head.split("::").map(|word| word.split(" as ").next().unwrap().trim());
    let head: Vec<String> =
        words.filter(|word| !word.is_empty() && *word != "self" || head.trim() == "self").map(str::to_owned).collect();
    let Some(group) = group else { return vec![head] };
    let (mut depth, mut parts, mut part) = (0, Vec::new(), String::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match c {
            ',' if depth == 0 => parts.push(std::mem::take(&mut part)),
            _ => part.push(c),
        }
    }
    parts.push(part);
    let whole = |part: &String| match part.trim() {
        "self" => vec![head.clone()],
        part => paths(part).into_iter().map(|rest| [head.clone(), rest].concat()).collect(),
    };
    parts.iter().filter(|part| !part.trim().is_empty()).flat_map(whole).collect()
}

/// The paths that a file uses, in `use` trees and elsewhere, each with `true` if it is a re-export (`pub use`).
fn used(code: &str) -> Vec<(Vec<String>, bool)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some((before, after)) = rest.split_once("use ") {
        let (tree, next) = after.split_once(';').unwrap_or((after, ""));
        let line = before.rsplit('\n').next().unwrap().trim();
        if line.is_empty() || line.starts_with("pub") {
            found.extend(paths(tree).into_iter().map(|path| (path, line.starts_with("pub"))));
            rest = next;
        } else {
            rest = after;
        }
    }
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with(|c: char| word(c) || c == '$') {
                continue;
            }
            let path = code[at..].split(|c| !word(c)).next().unwrap();
            found.push((path.split("::").filter(|word| !word.is_empty()).map(str::to_owned).collect(), false));
        }
    }
    found
}

/// The path within the crate, or `None` if the path leads outside.
fn absolute(module: &Module, path: &[String], modules: &BTreeMap<Module, String>) -> Option<Module> {
    let supers = path.iter().take_while(|word| *word == "super").count();
    match path.first()?.as_str() {
        "crate" => Some(path[1..].to_vec()),
        "self" => Some([module, &path[1..]].concat()),
        "super" => Some([&module[..module.len().checked_sub(supers)?], &path[supers..]].concat()),
        first => {
            let child = [&module[..], &[first.to_owned()]].concat();
            modules.contains_key(&child).then(|| [module, path].concat())
        }
    }
}

/// The modules that each module uses: the modules that define the names, not those that re-export them.
fn uses(modules: &BTreeMap<Module, String>) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut passed_on = BTreeMap::new();
    for (module, code) in modules {
        for (path, _) in used(code).into_iter().filter(|(_, passes_on)| *passes_on) {
            if let Some(from) = absolute(module, &path, modules)
                && let Some(name) = from.last()
            {
                passed_on.insert([&module[..], std::slice::from_ref(name)].concat(), from.clone());
            }
        }
    }
    let defined = |path: Module| {
        let mut path = path;
        for _ in 0..4 {
            // A path may begin with a module that has the name of a re-exported function.
            let of_module = |length: usize| length < path.len() && modules.contains_key(&path[..length]);
            let known = (1..=path.len()).rev().filter(|length| !of_module(*length));
            let known = known.into_iter().find_map(|length| Some((length, passed_on.get(&path[..length])?)));
            let Some((length, from)) = known else { break };
            path = [&from[..], &path[length..]].concat();
        }
        (0..=path.len()).rev().map(|length| path[..length].to_vec()).find(|module| modules.contains_key(module))
    };
    let of = |(module, code): (&Module, &String)| {
        let paths = used(code).into_iter().filter(|(_, passes_on)| !passes_on);
        let targets = paths.filter_map(|(path, _)| defined(absolute(module, &path, modules)?));
        (module.clone(), targets.filter(|target| target != module).collect())
    };
    modules.iter().map(of).collect()
}

/// All modules reachable from `from`.
fn reach(from: &Module, uses: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut found, mut left) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = left.pop() {
        for next in uses.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                left.push(next.clone());
            }
        }
    }
    found
}

/// The cycles of a crate: sets of modules that use each other, directly or through others. A module is a file. A parent
/// that calls its own submodules by their path only (`child::f()`) doesn't use them in this sense.
fn cycles(modules: &BTreeMap<Module, String>) -> BTreeSet<Vec<String>> {
    let uses = uses(modules);
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        modules.keys().map(|module| (module, reach(module, &uses))).collect();
    let cycle = |module: &Module| {
        let others = reach[module].iter().filter(|other| reach[other].contains(module));
        let names: Vec<String> = others.map(|module| module.join("::")).collect();
        (!names.is_empty()).then_some(names)
    };
    modules.keys().filter_map(cycle).collect()
}

#[test]
fn every_crate_and_module_is_described() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let mut missing = Vec::new();
    for directory in crates() {
        let own = directory.file_name().unwrap().to_string_lossy().into_owned();
        let section = page.split("\n### ").find(|section| section.starts_with(&format!("`{own}`")));
        let Some(section) = section else {
            missing.push(own);
            continue;
        };
        let top: BTreeSet<String> =
            modules(&directory.join("src")).into_keys().filter_map(|module| module.first().cloned()).collect();
        missing.extend(
            top.into_iter().filter(|top| !section.contains(&format!("`{top}`"))).map(|top| format!("{own}: {top}")),
        );
    }
    assert_eq!(missing, [""; 0], "docs/architecture.md does not name them");
}

#[test]
fn no_crate_depends_on_the_program() {
    for directory in crates().into_iter().filter(|directory| !directory.ends_with("pipemark")) {
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        assert!(
            !manifest.lines().any(|line| line.starts_with("pipemark.") || line.starts_with("pipemark ")),
            "{directory:?}"
        );
    }
}

/// All files of Rust in a directory.
fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.is_symlink() && !path.ends_with("node_modules") {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// `make test-long` and `make soak` select tests by name, so a test with another name would never run.
#[test]
fn long_and_soak_tests_are_named_so() {
    let mut counts = BTreeMap::from([("long", 0), ("soak", 0)]);
    for path in ["crates", "tests"].iter().flat_map(|directory| rust_files(&root().join(directory))) {
        let text = fs::read_to_string(&path).unwrap();
        for (kind, count) in &mut counts {
            let prefix = format!("fn {kind}_");
            for (at, _) in text.match_indices(&format!("#[ignore = \"{kind}")) {
                let name = text[at..].lines().find(|line| line.contains("fn ")).unwrap_or_default().trim_start();
                // A macro's test has its name elsewhere.
                let is_named_elsewhere = name.starts_with("fn $");
                assert!(
                    is_named_elsewhere || name.starts_with(&prefix),
                    "{}: {name}: name it {kind}_…",
                    path.display()
                );
                *count += 1;
            }
        }
    }
    assert!(counts.values().all(|count| *count > 0), "{counts:?}");
}

/// The name of the type that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').map_or(rest, |(_, rest)| rest));
    let rest = ["struct ", "enum ", "trait ", "union "].iter().find_map(|keyword| line.strip_prefix(keyword))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

#[test]
fn each_type_name_has_one_meaning() {
    // These mean the same in each place; the last runs the examples of a page as tests.
    const SAME: [&str; 4] = ["Direction", "HyperfineResult", "Pipe", "Safety"];
    let mut places: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for directory in crates() {
        for (module, code) in modules(&directory.join("src")) {
            let place = format!("{} {}", name(&directory), module.join("::"));
            for defined in code.lines().filter_map(defined) {
                places.entry(defined.to_owned()).or_default().insert(place.clone());
            }
        }
    }
    assert_eq!(places["PipelineReport"], BTreeSet::from(["pipemark-causes report".to_owned()]));
    places.retain(|name, places| places.len() > 1 && !SAME.contains(&name.as_str()));
    assert_eq!(places, BTreeMap::new());
}

#[test]
fn no_modules_use_each_other_in_a_cycle() {
    let mut found = BTreeSet::new();
    for directory in crates() {
        let cycles = cycles(&modules(&directory.join("src")));
        found.extend(cycles.into_iter().map(|cycle| (name(&directory), cycle)));
    }
    assert_eq!(
        found,
        BTreeSet::new(),
        "these modules use each other in a cycle; move what both need to a module of its own"
    );
}

#[test]
fn unsafe_code_is_in_three_crates_only() {
    for directory in crates() {
        let has_unsafe_code = ["pipeio", "pipeio-harness", "pipemark-sys"].iter().any(|name| directory.ends_with(name));
        let roots = ["src/lib.rs", "src/main.rs"].map(|root| directory.join(root));
        for root in roots.iter().filter(|root| root.exists()) {
            let forbids = fs::read_to_string(root).unwrap().contains("#![forbid(unsafe_code)]");
            assert_eq!(forbids, !has_unsafe_code, "{}", root.display());
        }
    }
}

/// The checks above recognize every form of use.
#[test]
fn each_form_of_use_is_seen() {
    let seen = |tree: &str| paths(tree).iter().map(|path| path.join("::")).collect::<Vec<_>>().join(" ");
    assert_eq!(seen("crate::{a, b::{self, C as D}}"), "crate::a crate::b crate::b::C");
    assert_eq!(seen("super::super::x::{Y, z::*}"), "super::super::x::Y super::super::x::z::*");
    let file = |path: &str, text: &str| (path.split("::").map(str::to_owned).collect::<Module>(), code(text));
    let count = |a: &str, b: &str| cycles(&BTreeMap::from([file("one::a", a), file("two::b", b)])).len();
    // Files in one directory count too, and cycles of more than two.
    let three = [("a", "use crate::b::B;"), ("b", "use super::c;"), ("c", "use crate::{a::A, d::D};"), ("d", "")];
    let three = BTreeMap::from(three.map(|(path, text)| file(path, text)));
    assert_eq!(cycles(&three), BTreeSet::from([["a", "b", "c"].map(str::to_owned).to_vec()]));
    for (a, b) in [
        ("use crate::two::b;", "use crate::one::a::A;"),
        ("use crate::{two::b::B, other};", "use super::super::one::a;"),
        ("fn f() { crate::two::b::g() }", "pub use self::x;\nuse crate::{\n    one::a::{self, A},\n};"),
        ("fn f() { super::super::two::b::g() }", "use crate::one::a as other;"),
    ] {
        assert_eq!(count(a, b), 1, "{a}\n{b}");
        assert_eq!(count(a, "// use crate::one::a;"), 0, "{a}");
    }
}
