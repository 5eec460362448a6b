//! `--explain`: rank 0's choices of protocols and rails, reported by our own launcher.

use std::io::{Write, stdout};

use anyhow::{Context, Result, bail};
use results::MemoryFile;

use crate::library::Library;

/// The explanations of the measured libraries: labels, and the files to which launchers write.
#[derive(Default)]
pub(crate) struct Explained {
    files: Vec<(String, MemoryFile)>,
    json: bool,
}

impl Explained {
    /// Adds an option to the launchers of our own library by which they write explanations.
    pub(crate) fn by(libraries: &mut [Library], json: bool) -> Result<Explained> {
        let mut files = Vec::new();
        for library in libraries {
            let file = MemoryFile::new()?;
            if library.explain(&file.path(), json) {
                files.push((library.label.clone(), file));
            }
        }
        if files.is_empty() {
            bail!("--explain: none of these libraries is our own, and others cannot explain");
        }
        Ok(Explained { files, json })
    }

    /// Prints the explanations after the results.
    pub(crate) fn show(&self) -> Result<()> {
        for (label, file) in &self.files {
            let text = file.text().context("--explain")?;
            let text = match self.json {
                true => {
                    let label = serde_json::to_string(label)?;
                    let object = text.trim_end();
                    format!("{{\"library\":{label},\"explained\":{object}}}\n")
                }
                false if self.files.len() > 1 => format!("\n{label}:\n{text}"),
                false => format!("\n{text}"),
            };
            stdout()
                .write_all(text.as_bytes())
                .context("cannot write the explanation")?;
        }
        Ok(())
    }
}
