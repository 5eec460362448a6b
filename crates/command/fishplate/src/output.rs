//! Output files that are created before a job, so that errors are found early, and written after
//! it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An output file, created before the job and written after it.
pub(crate) struct Output {
    option: &'static str,
    path: PathBuf,
    file: File,
}

impl Output {
    /// Creates the file that an option names.
    pub(crate) fn create(option: &'static str, path: &Path) -> Result<Output, String> {
        let file =
            File::create(path).map_err(|why| format!("{option} {}: {why}", path.display()))?;
        Ok(Output {
            option,
            path: path.into(),
            file,
        })
    }

    /// Writes the contents of the file. `write` may return a warning, which is printed.
    pub(crate) fn fill(
        self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<Option<String>>,
    ) -> Result<(), String> {
        let outcome = {
            let mut to = BufWriter::new(&self.file);
            write(&mut to).and_then(|words| to.flush().map(|()| words))
        };
        let wrong = |what: &dyn std::fmt::Display| {
            format!("{} {}: {what}", self.option, self.path.display())
        };
        match outcome {
            Ok(Some(words)) => {
                eprintln!("fishplate: {}", terminal_text::lines(&wrong(&words)));
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(why) => {
                let why = wrong(&why);
                self.remove();
                Err(why)
            }
        }
    }

    /// Removes the file, in which nothing or half of the contents is; a device such as /dev/null
    /// stays.
    pub(crate) fn remove(self) {
        if self.path.is_file() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
