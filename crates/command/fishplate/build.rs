//! Names the commit of the sources in `fishplate --version`, with its date.
//!
//! The first of these that names one: the variable `SOURCE_COMMIT`, the file `commit`, which `git
//! archive` completes, and git itself. Without any of them the version says that the commit is not
//! known.

use std::path::Path;
use std::process::Command;

/// The characters of a commit that are shown.
const SHOWN: usize = 10;

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo names the folder of the crate");
    let version = std::env::var("CARGO_PKG_VERSION").expect("cargo names the version");
    println!("cargo::rerun-if-env-changed=SOURCE_COMMIT");
    println!("cargo::rerun-if-changed=commit");
    let folder = Path::new(&folder);
    let commit = std::env::var("SOURCE_COMMIT").ok();
    let commit = commit
        .filter(|given| !given.is_empty())
        .or_else(|| archived(&folder.join("commit")))
        .or_else(|| of_git(&folder.join("../../..")));
    let commit = match commit.as_deref().map(|named| named.split_once(' ')) {
        Some(Some((commit, date))) => format!("commit {} of {date}", short(commit)),
        Some(None) => format!("commit {}", short(&commit.unwrap_or_default())),
        None => "commit not known".into(),
    };
    println!("cargo::rustc-env=VERSION_AND_COMMIT={version}, {commit}");
}

/// The commit in a file of the form `COMMIT DATE`, unless the file is that of a work tree.
fn archived(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    (!text.contains('$')).then(|| text.trim().to_owned())
}

/// The commit of a work tree. A work tree around an unpacked archive is another's.
fn of_git(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    // HEAD's log changes with each commit, also where another file holds the branch.
    for name in ["HEAD", "logs/HEAD"] {
        let file = root.join(git(root, &["rev-parse", "--git-path", name])?);
        if file.exists() {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    git(root, &["log", "-1", "--format=%H %cs"])
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let ran = Command::new("git").arg("-C").arg(root).args(words).output();
    let ran = ran.ok().filter(|ran| ran.status.success())?;
    Some(String::from_utf8(ran.stdout).ok()?.trim().to_owned())
}

fn short(commit: &str) -> String {
    commit.chars().take(SHOWN).collect()
}
