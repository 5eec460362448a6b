//! The summary of a run: `fishplate run --summary` and `--profile`.

mod text;

pub(crate) use text::duration;

use std::fs::File;
use std::io::{self, Write, stderr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use model::{ProcessorWork, Resource, Usage};
use profile::{JobFacts, RankRecord, ResourceUse, Summary};

use crate::modelled::ModelledJob;
use crate::output::Output;

/// The most resources that a summary contains.
const MOST_RESOURCES: usize = 16;

#[derive(Args)]
pub(crate) struct SummaryArguments {
    /// After the job, show its times, procedures, messages and busiest resources: `text`, `matrix`
    /// (text, with the messages of each pair of ranks), `json`, `json=FILE`, `none`
    /// [default: text on a modelled machine, otherwise none]
    #[arg(long, value_name = "FORM", conflicts_with = "profile")]
    summary: Option<Form>,

    /// The summary of a job on this machine, as text on standard error, or as JSON in FILE
    #[arg(long, value_name = "FILE.json", num_args = 0..=1, require_equals = true)]
    profile: Option<Option<PathBuf>>,
}

/// The format of a summary, and its destination.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    None,
    Text,
    Matrix,
    Json,
    JsonFile(PathBuf),
}

impl FromStr for Form {
    type Err = String;

    fn from_str(text: &str) -> Result<Form, String> {
        match text {
            "none" => Ok(Form::None),
            "text" => Ok(Form::Text),
            "matrix" => Ok(Form::Matrix),
            "json" => Ok(Form::Json),
            _ => match text.strip_prefix("json=") {
                Some("") => Err("json= needs a file: json=FILE".into()),
                Some(file) => Ok(Form::JsonFile(file.into())),
                None => Err("valid are text, matrix, json, json=FILE and none".into()),
            },
        }
    }
}

impl SummaryArguments {
    /// The requested form, the option that requests it, and true if the user has given that option.
    fn form(&self, is_modelled: bool) -> (Form, &'static str, bool) {
        match (&self.summary, &self.profile) {
            (Some(form), _) => (form.clone(), "--summary json", true),
            (None, Some(None)) => (Form::Text, "--profile", true),
            (None, Some(Some(file))) => (Form::JsonFile(file.clone()), "--profile", true),
            (None, None) if is_modelled => (Form::Text, "", false),
            (None, None) => (Form::None, "", false),
        }
    }

    /// Prepares the summary of a job if it is requested, or if `times` says that the time of the
    /// job's end is needed. Reports every error that can be found before the job starts.
    pub(crate) fn prepare(
        &self,
        ranks: usize,
        facts: JobFacts,
        times: bool,
    ) -> Result<WantedSummary, String> {
        let (form, option, asked) = self.form(facts.fabric.is_some());
        let file = match &form {
            Form::None if !times => return Ok(WantedSummary(None)),
            Form::JsonFile(path) => Some(Output::create(option, path)?),
            Form::None | Form::Text | Form::Matrix | Form::Json => None,
        };
        let counts = profile::create(ranks)
            .map_err(|why| format!("cannot create the memory of the job's profile: {why}"))?;
        Ok(WantedSummary(Some(Wanted {
            form,
            file,
            asked,
            facts,
            counts: Arc::new(counts),
            ranks,
            start: Instant::now(),
        })))
    }
}

/// The summary that is to be made after the job; `None` in it if none is needed.
pub(crate) struct WantedSummary(Option<Wanted>);

struct Wanted {
    form: Form,
    file: Option<Output>,
    /// True if the user has requested the summary; then a job that failed has one, too.
    asked: bool,
    facts: JobFacts,
    /// The file in which ranks record the profile.
    counts: Arc<OwnedFd>,
    ranks: usize,
    start: Instant,
}

impl WantedSummary {
    /// The file in which ranks record the profile.
    pub(crate) fn counts(&self) -> Option<Arc<OwnedFd>> {
        self.0.as_ref().map(|wanted| wanted.counts.clone())
    }

    /// Sums up the profile of the job, which has just ended.
    pub(crate) fn sum_up(self, modelled: &ModelledJob) -> Result<ReadySummary, String> {
        let Some(wanted) = self.0 else {
            return Ok(ReadySummary(None));
        };
        let summary = wanted.sum_up(modelled);
        let summary = summary.map_err(|why| format!("the job's profile cannot be read: {why}"))?;
        Ok(ReadySummary(Some((wanted, summary))))
    }
}

impl WantedSummary {
    /// Sets the number of choices of a replay that time decided otherwise than in the recorded run.
    pub(crate) fn other_choices(&mut self, number: u64) {
        if let Some(wanted) = &mut self.0 {
            wanted.facts.other_choices = Some(number).filter(|number| *number > 0);
        }
    }

    /// The summary of a replay the fast way, whose ranks record nothing themselves.
    pub(crate) fn of_fast(self, records: &[RankRecord], steps: Vec<Vec<f64>>) -> ReadySummary {
        let ready = self.0.map(|wanted| {
            let facts = JobFacts {
                wall_s: wanted.start.elapsed().as_secs_f64(),
                steps,
                ..wanted.facts.clone()
            };
            let summary = Summary {
                fast: true,
                ..Summary::of(facts, records)
            };
            (wanted, summary)
        });
        ReadySummary(ready)
    }
}

impl Wanted {
    fn sum_up(&self, modelled: &ModelledJob) -> io::Result<Summary> {
        let wall_s = self.start.elapsed().as_secs_f64();
        let records = profile::read(&File::from(self.counts.try_clone()?), self.ranks)?;
        let end = records.iter().map(|record| record.time).max().unwrap_or(0);
        let usage = modelled.usage()?;
        let facts = JobFacts {
            wall_s,
            resources: resources(&usage, end),
            fullest_link: fullest_link(&usage, end, modelled),
            steps: modelled.steps()?,
            ..self.facts.clone()
        };
        Ok(Summary::of(facts, &records))
    }
}

/// The summary of a job that has ended. `None` inside: none is needed.
pub(crate) struct ReadySummary(Option<(Wanted, Summary)>);

impl ReadySummary {
    /// The virtual time of the job's end, in seconds. `None` for a job on this machine, or without
    /// MPI.
    pub(crate) fn virtual_seconds(&self) -> Option<f64> {
        self.0.as_ref()?.1.virtual_s
    }

    /// A sentence about each effect that is left out of the run of the program itself.
    pub(crate) fn left_out_of_program(&self) -> Vec<String> {
        let summary = self.0.as_ref().map(|(_, summary)| summary);
        summary.map_or_else(Vec::new, |summary| {
            summary.left_out.of_program().sentences("")
        })
    }

    /// Shows the summary. For a job that failed it is shown only if the user has requested it.
    pub(crate) fn show(self, failed: bool) -> Result<(), String> {
        let Some((wanted, summary)) = self.0 else {
            return Ok(());
        };
        if failed && !wanted.asked {
            return Ok(());
        }
        let json = || serde_json::to_string(&summary).map_err(|why| why.to_string());
        let text = match wanted.form {
            Form::None => return Ok(()),
            Form::JsonFile(_) => {
                let json = json()? + "\n";
                let file = wanted.file;
                return file.map_or(Ok(()), |file| {
                    file.fill(|to| to.write_all(json.as_bytes()).map(|()| None))
                });
            }
            Form::Json => json()? + "\n",
            // For a program that does not use MPI there is nothing to show.
            _ if summary.is_empty() && !wanted.asked => return Ok(()),
            Form::Text => text::summary(&summary),
            Form::Matrix => text::summary(&summary) + &text::matrix(&summary),
        };
        // It is no error if the reader has closed the pipe.
        let _ = stderr().write_all(text.as_bytes());
        Ok(())
    }
}

/// The busiest resources of a job whose duration was `end` picoseconds.
fn resources(usage: &[Usage], end: u64) -> Vec<ResourceUse> {
    let full_duplex = usage
        .iter()
        .any(|usage| matches!(usage.resource, Resource::BusUp(_)));
    let shown = usage.iter().take(MOST_RESOURCES);
    let named = shown.map(|usage| used(usage, name(usage.resource, full_duplex), end));
    named.collect()
}

/// The busiest link between switches of a job whose duration was `end` picoseconds.
fn fullest_link(usage: &[Usage], end: u64, modelled: &ModelledJob) -> Option<ResourceUse> {
    usage.iter().find_map(|usage| match usage.resource {
        Resource::Between(rail, link) => {
            let name = modelled.link_name(rail, link)?;
            Some(used(usage, (name, Some(rail)), end))
        }
        _ => None,
    })
}

/// The use of a resource with this name and rail, as a summary has it.
fn used(usage: &Usage, (name, rail): (String, Option<u32>), end: u64) -> ResourceUse {
    ResourceUse {
        name,
        host: usage.host,
        rail,
        busy_s: usage.busy as f64 / 1e12,
        share: (usage.busy as f64 / end.max(1) as f64).min(1.0),
    }
}

/// The name of a resource, and its rail if it belongs to one.
fn name(resource: Resource, full_duplex: bool) -> (String, Option<u32>) {
    match resource {
        Resource::LinkOut(rail) => ("link out".into(), Some(rail)),
        Resource::LinkIn(rail) => ("link in".into(), Some(rail)),
        Resource::BusDown(rail) if full_duplex => ("bus, memory to HCA".into(), Some(rail)),
        Resource::BusDown(rail) => ("bus, both ways".into(), Some(rail)),
        Resource::BusUp(rail) => ("bus, HCA to memory".into(), Some(rail)),
        Resource::Chip(rail) => ("HCA, data path".into(), Some(rail)),
        Resource::Requests(rail) => ("HCA, work requests".into(), Some(rail)),
        Resource::Answers(rail) => ("HCA, answers to reads".into(), Some(rail)),
        Resource::Memory => ("memory".into(), None),
        Resource::Storage => ("storage".into(), None),
        Resource::Between(rail, link) => (format!("link {link} between switches"), Some(rail)),
        Resource::Processor(rank, work) => {
            let work = match work {
                ProcessorWork::Copies => "copies",
                ProcessorWork::Computing => "computing",
                ProcessorWork::Library => "library",
                ProcessorWork::Local => "work inside MPI",
            };
            (format!("processor of rank {rank} ({work})"), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read() {
        assert_eq!("json=a=b".parse(), Ok(Form::JsonFile("a=b".into())));
        assert_eq!("matrix".parse(), Ok(Form::Matrix));
        assert!("json=".parse::<Form>().unwrap_err().contains("json=FILE"));
        assert!("yaml".parse::<Form>().unwrap_err().contains("text, matrix"));
    }

    #[test]
    fn resources_are_named_for_a_person() {
        let usage = |host, resource, busy| Usage {
            host,
            resource,
            busy,
        };
        let copies = Resource::Processor(7, ProcessorWork::Copies);
        let named = resources(
            &[
                usage(3, Resource::LinkOut(1), 900),
                usage(0, copies, 500),
                usage(2, Resource::BusDown(0), 1),
            ],
            1000,
        );
        assert_eq!(named[0].name, "link out");
        assert_eq!(
            (named[0].host, named[0].rail, named[0].share),
            (3, Some(1), 0.9)
        );
        assert_eq!(named[1].name, "processor of rank 7 (copies)");
        assert_eq!(named[2].name, "bus, both ways");
        assert!(resources(&[usage(0, copies, 5); 40], 0).len() == MOST_RESOURCES);
    }
}
