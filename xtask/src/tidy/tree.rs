//! The repository as values: every text file with its path, read once.
//!
//! Checks see only this, never the disk, so their tests can hand in files that do not exist. Paths
//! are relative to the workspace and use `/` on every system.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::Finding;
use super::rust_source::RustSource;

pub(super) struct Tree {
    pub(super) files: Vec<SourceFile>,
    /// Every file and folder, also those that hold no text.
    paths: BTreeSet<String>,
}

pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
    /// Present for `.rs` files.
    pub(super) rust: Option<RustSource>,
}

impl Tree {
    pub(super) fn load(root: &Path) -> io::Result<Self> {
        let mut tree = Self { files: Vec::new(), paths: BTreeSet::new() };
        tree.load_folder(root, "")?;
        Ok(tree)
    }

    #[cfg(test)]
    pub(super) fn from_texts(files: &[(&str, &str)]) -> Self {
        let mut tree = Self { files: Vec::new(), paths: BTreeSet::new() };
        for (path, text) in files {
            for (end, _) in path.match_indices('/') {
                tree.paths.insert(path[..end].to_owned());
            }
            tree.add_file((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    pub(super) fn holds(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    pub(super) fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    pub(super) fn rust_files(&self) -> impl Iterator<Item = (&SourceFile, &RustSource)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    fn load_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && !is_ours(&entry.path(), &name) {
                continue;
            }
            if kind.is_dir() {
                self.paths.insert(path.clone());
                self.load_folder(&entry.path(), &path)?;
            } else if kind.is_file() {
                self.load_file(&entry.path(), path)?;
            }
        }
        Ok(())
    }

    fn load_file(&mut self, file: &Path, path: String) -> io::Result<()> {
        match fs::read_to_string(file) {
            Ok(text) => self.add_file(path, text),
            // An image or a database: it exists, but there is nothing to read in it.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                self.paths.insert(path);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn add_file(&mut self, path: String, text: String) {
        let rust = is_kind(&path, "rs").then(|| RustSource::new(&path, &text));
        self.paths.insert(path.clone());
        self.files.push(SourceFile { path, text, rust });
    }
}

impl SourceFile {
    pub(super) fn is_kind(&self, extension: &str) -> bool {
        is_kind(&self.path, extension)
    }

    pub(super) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, message: message.into() }
    }

    /// A finding at a byte of the text.
    pub(super) fn finding_at(&self, offset: usize, message: impl Into<String>) -> Finding {
        self.finding(self.line_of(offset), message)
    }

    pub(super) fn line_of(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

fn is_kind(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == extension)
}

/// Cargo and other tools mark their output folders with this file, whatever the folder is called.
fn is_ours(folder: &Path, name: &str) -> bool {
    name != ".git" && !folder.join("CACHEDIR.TAG").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_itself_loads_without_build_output() {
        let tree = Tree::load(crate::workspace_root()).unwrap();
        assert!(tree.file("xtask/src/tidy/tree.rs").is_some());
        assert!(tree.holds("xtask/src"));
        assert!(!tree.holds(".git"));
        assert!(!tree.holds("target/debug"));
    }

    #[test]
    fn offsets_turn_into_lines() {
        let tree = Tree::from_texts(&[("a.txt", "one\ntwo\n")]);
        assert_eq!(tree.files[0].line_of(0), 1);
        assert_eq!(tree.files[0].line_of(4), 2);
    }
}
