//! Links by programs other than pipemark: each is a directory with a link.toml.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use pipemark_host::child::RunError;
use pipemark_model::{LinkKind, OutsideLink, did_you_mean};

use crate::form::read_text;
use crate::link_file::LinkFile;
use crate::project::Project;
use crate::{Rebuild, Step};

/// The default directory of links.
const DIRECTORY: &str = "links";
/// The file that describes a link.
const FILE: &str = "link.toml";
/// The directory below `build/links` for the reference code. No link has this name, because `=` is not allowed in one.
const CONTRACT: &str = "contract=1";

/// The links found, and the result of preparing each.
#[derive(Default)]
pub struct Links {
    known: BTreeMap<String, (LinkFile, Project)>,
    /// The directory that was searched; `None` if it doesn't exist.
    root: Option<PathBuf>,
}

/// A link that can be run.
#[derive(Debug, Clone)]
pub struct RunnableLink {
    /// The link with its options.
    pub link: OutsideLink,
    /// The description.
    pub file: LinkFile,
    /// The options, with defaults.
    pub options: Vec<(String, String)>,
    /// The commands, by role: sender, receiver, both, broker.
    pub commands: BTreeMap<String, Vec<String>>,
    /// The directory of the description, in which the programs run.
    pub directory: PathBuf,
}

impl Links {
    /// Reads the descriptions in `directory` (default: `links` in the working directory).
    ///
    /// # Errors
    /// A message, if the named directory is unusable or a description is wrong.
    pub fn find(directory: Option<&Path>) -> Result<Links, String> {
        let root = match (fs::canonicalize(directory.unwrap_or(Path::new(DIRECTORY))), directory) {
            (Err(error), Some(directory)) => {
                return Err(format!("the directory of links {} cannot be used: {error}", directory.display()));
            }
            (Err(_), None) => return Ok(Links::default()),
            (Ok(root), _) => root,
        };
        let build = root.parent().unwrap_or(Path::new(".")).join("build").join(DIRECTORY);
        let unreadable = |error| format!("the directory of links {} cannot be read: {error}", root.display());
        let mut known = BTreeMap::new();
        for entry in fs::read_dir(&root).map_err(unreadable)? {
            let directory = entry.map_err(unreadable)?.path();
            let (file, name) = (directory.join(FILE), directory.file_name().unwrap_or_default().to_string_lossy());
            if !file.is_file() {
                continue;
            }
            let link: LinkKind = name.parse().map_err(|error| format!("{}: {error}", directory.display()))?;
            if link.outside().is_none_or(|link| link.name() != name) {
                return Err(format!("{}: pipemark has a link '{name}'; rename the directory", directory.display()));
            }
            let form = LinkFile::parse(&file.display().to_string(), &read_text(&file)?)?;
            let (out, contract) = (build.join(&*name), build.join(CONTRACT));
            let project = Project::of_link(&name, &form, directory.clone(), out, contract);
            known.insert(name.into_owned(), (form, project));
        }
        if known.is_empty() && directory.is_some() {
            return Err(format!("the directory {} holds no links: no NAME/{FILE}", root.display()));
        }
        Ok(Links { known, root: Some(root) })
    }

    /// The links by name, with their descriptions and whether their tools are here.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &LinkFile, &Project)> {
        self.known.iter().map(|(name, (file, project))| (name.as_str(), file, project))
    }

    /// Checks that these links exist and have these options.
    ///
    /// # Errors
    /// The first unknown link or option, with the closest known one.
    pub fn check<'a>(&self, links: impl IntoIterator<Item = &'a OutsideLink>) -> Result<(), String> {
        links.into_iter().try_for_each(|link| match self.known.get(link.name()) {
            Some((file, _)) => file.options(*link).map(drop),
            None => Err(self.unknown(link.name())),
        })
    }

    fn unknown(&self, name: &str) -> String {
        let own: Vec<&str> = LinkKind::iter().map(LinkKind::name).collect();
        let hint = did_you_mean(name, own.iter().copied().chain(self.known.keys().map(String::as_str)));
        let outside = match &self.root {
            Some(root) => {
                let all: Vec<&str> = self.known.keys().map(String::as_str).collect();
                format!("; {} has {}", root.display(), all.join(", "))
            }
            None => format!(", or name a directory of links with --links (there is no ./{DIRECTORY})"),
        };
        format!("'{name}' is not a link; use {}{outside}{hint}", own.join(", "))
    }

    /// Detects the tools of these links, builds what needs building, and passes progress to `report`. A failure isn't
    /// returned but stored, and becomes the outcome of the trials that need the link.
    pub fn prepare(&mut self, links: &BTreeSet<OutsideLink>, when: Rebuild, mut report: impl FnMut(Step<'_>)) {
        let wanted = |name: &str| links.iter().any(|link| link.name() == name);
        for (name, (_, project)) in self.known.iter_mut().filter(|(name, _)| wanted(name)) {
            report(Step::Begun(name));
            match project.prepare(when) {
                Ok(built) => report(Step::Ready { name, built }),
                Err(error) => report(Step::Absent(name, error)),
            }
        }
    }

    /// The commands of a link.
    ///
    /// # Errors
    /// If it is missing or could not be built.
    pub fn link(&self, link: OutsideLink) -> Result<RunnableLink, RunError> {
        let (file, project) =
            self.known.get(link.name()).ok_or_else(|| RunError::NotHere(self.unknown(link.name())))?;
        let options = file.options(link).map_err(RunError::NotHere)?;
        let mut commands = BTreeMap::new();
        let mut directory = PathBuf::new();
        for role in project.programs.keys() {
            let runnable = project.command(role)?;
            directory = runnable.directory;
            commands.insert(role.clone(), runnable.words);
        }
        Ok(RunnableLink { link, file: file.clone(), options, commands, directory })
    }
}
