//! `--explain`: rank 0's choices of protocols and rails, as our own launcher reports them.

use std::fs;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::library::Library;

/// The explanations of the measured libraries: labels, and the files to which launchers write.
#[derive(Default)]
pub(crate) struct Explained {
    files: Vec<(String, PathBuf)>,
    json: bool,
}

impl Explained {
    /// Asks the launchers of our own library for explanations.
    pub(crate) fn by(libraries: &mut [Library], json: bool) -> Result<Explained> {
        let mut files = Vec::new();
        for (number, library) in libraries.iter_mut().enumerate() {
            let name = format!("fishplate-explain-{}-{number}", std::process::id());
            let file = std::env::temp_dir().join(name);
            if library.explain(&file, json) {
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
            let text = fs::read_to_string(file)
                .with_context(|| format!("--explain: cannot read {}", file.display()))?;
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

impl Drop for Explained {
    fn drop(&mut self) {
        for (_, file) in &self.files {
            // A launcher that failed has written none.
            let _ = fs::remove_file(file);
        }
    }
}
