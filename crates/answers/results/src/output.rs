//! Output files that are opened before the measurement, so that a name that cannot be written does
//! not cost the results of minutes.

use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// An open output file. It stays empty until results are written, and is removed if that never
/// happens.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    is_new: bool,
    is_written: bool,
}

impl OutputFile {
    /// Opens the file that the user named with `option`, without changing its contents.
    pub fn open(option: &str, path: &Path) -> Result<OutputFile, String> {
        let is_new = !path.exists();
        // An existing file keeps its contents until there are results.
        let opened = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path);
        match opened {
            Ok(_) => Ok(OutputFile {
                path: path.into(),
                is_new,
                is_written: false,
            }),
            Err(why) => Err(format!(
                "{option} {}: cannot write this file: {}",
                path.display(),
                reason(path, &why)
            )),
        }
    }

    /// The path of the output file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records that the file has its contents, so that it is not removed.
    pub fn written(mut self) {
        self.is_written = true;
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if self.is_new && !self.is_written && self.path.is_file() {
            // Errors are ignored: an empty file that remains does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The reason why a file cannot be written, in plain words.
pub fn reason(path: &Path, why: &Error) -> String {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder.display().to_string(),
        _ => "the current folder".into(),
    };
    match why.kind() {
        ErrorKind::NotFound => format!("{folder} does not exist; make the folder first"),
        ErrorKind::NotADirectory => format!("{folder} is not a folder"),
        ErrorKind::PermissionDenied => {
            format!("this user may not write in {folder}; choose another folder")
        }
        ErrorKind::IsADirectory => "it is a folder; name a file in it".into(),
        ErrorKind::ReadOnlyFilesystem => format!("{folder} is read-only; choose another folder"),
        ErrorKind::StorageFull => format!("no space is left in {folder}"),
        _ => crate::arguments::without_error_numbers(&why.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("results-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_name_that_cannot_be_written_is_refused_in_plain_words() {
        let folder = folder("refused");
        for (path, words) in [
            (
                folder.join("none/x.svg"),
                "none does not exist; make the folder first",
            ),
            (folder.clone(), "it is a folder; name a file in it"),
            (
                PathBuf::from("/dev/null/x.svg"),
                "/dev/null is not a folder",
            ),
        ] {
            let error = OutputFile::open("--plot", &path).unwrap_err();
            assert!(
                error.starts_with("--plot ") && error.ends_with(words),
                "{error}"
            );
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_file_without_results_vanishes_and_an_older_one_stays() {
        let folder = folder("kept");
        let (new, old) = (folder.join("new"), folder.join("old"));
        fs::write(&old, "before").unwrap();
        drop(OutputFile::open("--plot", &new).unwrap());
        drop(OutputFile::open("--plot", &old).unwrap());
        assert!(!new.exists());
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
        OutputFile::open("--plot", &new).unwrap().written();
        assert!(new.exists());
        fs::remove_dir_all(folder).unwrap();
    }
}
