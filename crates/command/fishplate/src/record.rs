//! `--record FILE`: the trace of a job, written after it from the parts of its ranks.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use trace::{Builder, parts};

use crate::output::Output;

/// The recording of a job's MPI calls.
pub(crate) struct Recording {
    output: Output,
    parts: Arc<OwnedFd>,
    program: String,
    ranks: usize,
    /// True if the job runs on this host, whose times are measured.
    is_measured: bool,
}

impl Recording {
    /// Prepares the recording of a job of `ranks` ranks in `file`, if there is one. Reports every
    /// error that can be found before the job starts.
    pub(crate) fn begin(
        file: Option<&Path>,
        program: &str,
        ranks: usize,
        hosts: &[launch::JobHost],
        is_measured: bool,
    ) -> Result<Option<Recording>, String> {
        let Some(file) = file else {
            return Ok(None);
        };
        if !hosts.is_empty() {
            return Err("--record works for jobs on one host, and on modelled machines".into());
        }
        let parts = memory_file::of_length("fishplate-record", 0)
            .map_err(|why| format!("cannot create the memory of the recording: {why}"))?;
        Ok(Some(Recording {
            output: Output::create("--record", file)?,
            parts: Arc::new(parts),
            program: program.into(),
            ranks,
            is_measured,
        }))
    }

    /// The file to which the ranks append their parts.
    pub(crate) fn parts(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.parts)
    }

    /// Drops the recording of a job that has failed.
    pub(crate) fn drop_file(self) {
        self.output.remove();
    }

    /// Writes the trace of the job, which has ended. `work`: the recorded times of work inside MPI,
    /// each a line. `notes`: sentences about the run.
    pub(crate) fn finish(self, work: &str, notes: &[String]) -> Result<(), String> {
        let mut builder = Builder::new(self.program);
        builder.work(work);
        notes.iter().for_each(|note| builder.note(note));
        let (ranks, is_measured) = (self.ranks, self.is_measured);
        let read = || -> std::io::Result<Vec<u8>> {
            let file = File::from(self.parts.try_clone()?);
            let mut bytes = vec![0; file.metadata()?.len() as usize];
            file.read_exact_at(&mut bytes, 0)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|why| format!("--record: its parts cannot be read: {why}"))?;
        if bytes.is_empty() {
            eprintln!("fishplate: --record: the program made no MPI call, so there is no trace");
            self.output.remove();
            return Ok(());
        }
        self.output.fill(|to| {
            let written =
                written(&bytes, builder, ranks, is_measured).map_err(std::io::Error::other)?;
            to.write_all(&written)?;
            Ok(None)
        })
    }
}

/// The contents of the trace of a job whose ranks have written these bytes.
/// Measured times are rounded: their last digits are chance.
fn written(
    bytes: &[u8],
    mut builder: Builder,
    ranks: usize,
    is_measured: bool,
) -> Result<Vec<u8>, String> {
    for (rank, part) in parts(bytes, ranks)?.iter().enumerate() {
        let added = part.add_to(&mut builder);
        added.map_err(|why| format!("rank {rank}: {why}"))?;
    }
    let trace = builder.finish();
    Ok(match is_measured {
        true => trace.with_rounded_times().write(),
        false => trace.write(),
    })
}
