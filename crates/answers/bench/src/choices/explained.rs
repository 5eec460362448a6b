//! Parser of a library's explanation of its choices: the protocols, rail policies and algorithms
//! that it takes by message size, and the settings that force other ones. `--every-choice` measures
//! these alternatives.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use results::{Console, MemoryFile};
use serde::Deserialize;

use crate::benchmark::Benchmark;
use crate::form::Form;
use crate::job::Job;
use crate::library::Library;
use crate::operation::Collective;
use crate::plan::WorkerPlan;
use crate::rounds::Case;

/// The number of iterations of a job that only explains its choices, in real time: enough for
/// members of a communicator to agree, and for ranks to learn whether receives are posted before
/// their messages arrive.
const ITERATIONS: usize = 100;
/// The most time that the iterations of one size take, in seconds.
const SECONDS: f64 = 0.1;
/// The procedure whose alternatives apply to each benchmark without alternatives of its own.
const MESSAGE: &str = "MPI_Send";

/// The part of a library's explanation (JSON) that lists alternatives: the choices that the library
/// makes, and those that settings can force.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Alternatives {
    #[serde(default)]
    alternatives: Vec<Group>,
}

/// A group of alternatives of one kind: protocols, rail policies or algorithms.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Group {
    /// The blocking procedures whose time depends on the choice among these alternatives.
    procedures: Vec<String>,
    /// The kind of the alternatives: `protocol`, `rails` or `algorithm`.
    pub(super) kind: String,
    /// True if the choices depend on the messages of the job, so that each size needs a job of its
    /// own.
    is_learned: bool,
    /// The choices that the library makes, each with the number of bytes from which on it is made,
    /// in ascending order.
    taken: Vec<(usize, String)>,
    /// The alternatives that settings can force.
    pub(super) forced: Vec<Alternative>,
}

/// A protocol, rail policy or algorithm, and the settings that force it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Alternative {
    pub(super) choice: String,
    pub(super) settings: BTreeMap<String, String>,
}

impl Group {
    /// The choice that the library makes for this number of bytes. `None`: it lists none.
    pub(super) fn taken(&self, bytes: usize) -> Option<&str> {
        let found = self.taken.iter().rfind(|(from, _)| *from <= bytes)?;
        Some(&found.1)
    }
}

impl Alternatives {
    /// The groups of alternatives that matter to a benchmark: those of its procedure, or else those
    /// of messages.
    pub(super) fn of(&self, benchmark: Benchmark) -> Vec<&Group> {
        let of = |name: &str| -> Vec<&Group> {
            let all = self.alternatives.iter();
            all.filter(|group| group.procedures.iter().any(|one| one == name))
                .collect()
        };
        let own = match benchmark {
            Benchmark::Collective(Collective { operation, .. }) => {
                let form = Form::Blocking;
                of(&Collective { operation, form }.procedure())
            }
            _ => Vec::new(),
        };
        match own.is_empty() {
            true => of(MESSAGE),
            false => own,
        }
    }

    /// True if the choices for a benchmark depend on the messages of the job.
    fn are_learned(&self, benchmark: Benchmark) -> bool {
        self.of(benchmark).iter().any(|group| group.is_learned)
    }

    /// The choice of a kind that the library makes for a benchmark with this number of bytes.
    /// `None`: it lists none.
    pub(super) fn taken(&self, benchmark: Benchmark, kind: &str, bytes: usize) -> Option<&str> {
        let groups = self.of(benchmark);
        let group = groups.into_iter().find(|group| group.kind == kind)?;
        group.taken(bytes)
    }
}

/// Runs short jobs of a case (a plan with a number of ranks), in which libraries report their
/// alternatives.
pub(super) struct Explainer<'a> {
    pub(super) command: &'a Path,
    pub(super) timeout: Duration,
    pub(super) case: &'a Case,
}

impl Explainer<'_> {
    /// The alternatives of a library under its settings, for each size.
    pub(super) fn by_size(
        &self,
        library: &Library,
        console: &mut Console,
    ) -> Result<Vec<Alternatives>> {
        let sizes = &self.case.plan.sizes;
        let mut all = vec![self.ask(library, sizes[0], console)?];
        for &size in &sizes[1..] {
            all.push(match all[0].are_learned(self.case.plan.benchmark) {
                true => self.ask(library, size, console)?,
                false => all[0].clone(),
            });
        }
        Ok(all)
    }

    fn ask(&self, library: &Library, size: usize, console: &mut Console) -> Result<Alternatives> {
        let answer = self.answer(library, size, console);
        answer.with_context(|| format!("--every-choice: the settings of `{}`", library.label))
    }

    fn answer(
        &self,
        library: &Library,
        size: usize,
        console: &mut Console,
    ) -> Result<Alternatives> {
        let mut library = library.clone();
        let file = MemoryFile::new()?;
        if !library.explain(&file.path(), true) {
            bail!("the library is not our own, and others cannot list their choices");
        }
        let whole = &self.case.plan;
        let mut plan = WorkerPlan {
            sizes: vec![size],
            ..whole.clone()
        };
        // In virtual time the job must equal the one that is measured, so that its choices do too.
        if !whole.modelled {
            plan.iterations = Some(ITERATIONS);
            plan.seconds_per_size = Some(SECONDS);
        }
        let job = Job {
            command: self.command,
            library: &library,
            ranks: self.case.ranks,
            plan: &plan,
            timeout: self.timeout,
        };
        job.run(console)?;
        serde_json::from_str(&file.text()?).context("the explanation is damaged")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"rank":0,"peers":[],"alternatives":[
        {"procedures":["MPI_Send"],"kind":"protocol","is_learned":true,"taken":[[0,"eager"],[16385,"packets"]],
         "forced":[{"choice":"eager","settings":{"A":"64M"}},{"choice":"packets","settings":{"A":"0"}}]},
        {"procedures":["MPI_Send"],"kind":"rails","is_learned":false,"taken":[[0,"stripe"]],"forced":[]},
        {"procedures":["MPI_Allgather","MPI_Allgatherv"],"kind":"algorithm","is_learned":false,"taken":[[0,"ring"]],"forced":[]}]}"#;

    #[test]
    fn a_benchmark_depends_on_its_procedure_or_on_messages() {
        let all: Alternatives = serde_json::from_str(TEXT).unwrap();
        let kinds = |benchmark| {
            let groups = all.of(benchmark);
            groups
                .into_iter()
                .map(|group| group.kind.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds(Benchmark::Bw), ["protocol", "rails"]);
        assert_eq!(kinds(Benchmark::collective("iallgatherv")), ["algorithm"]);
        assert_eq!(
            kinds(Benchmark::collective("neighbor-alltoall")),
            ["protocol", "rails"]
        );
        let taken = |bytes| all.taken(Benchmark::Latency, "protocol", bytes);
        assert_eq!(
            (taken(16384), taken(16385)),
            (Some("eager"), Some("packets"))
        );
        assert_eq!(all.taken(Benchmark::Latency, "algorithm", 8), None);
        assert!(all.are_learned(Benchmark::Bw));
        assert!(!all.are_learned(Benchmark::collective("allgather")));
        let forced = &all.of(Benchmark::Bw)[0].forced[1];
        assert_eq!((&*forced.choice, &*forced.settings["A"]), ("packets", "0"));
    }
}
