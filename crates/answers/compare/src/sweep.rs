//! A sweep: comparisons of one program that share its recordings and differ in a setting each.

use std::time::Duration;

use anyhow::Result;

use crate::estimate::{self, Runs, USUAL_SEARCH};
use crate::record::Record;
use crate::{Request, RunFolder, record};

/// Comparisons of one program with the same recordings.
#[derive(Clone, Debug)]
pub struct Sweep(Vec<Request>);

impl Sweep {
    /// A sweep of these comparisons. `None`: there is none.
    pub fn new(requests: Vec<Request>) -> Option<Sweep> {
        (!requests.is_empty()).then_some(Sweep(requests))
    }

    /// The comparisons, in the user's order; at least one.
    pub fn requests(&self) -> &[Request] {
        &self.0
    }

    /// The request for which recordings are made: the first, with the ranks of all.
    pub fn recorded(&self) -> Request {
        let ranks = self.0.iter().flat_map(|one| one.ranks.iter().copied());
        let mut ranks = results::table::distinct(ranks);
        ranks.sort_unstable();
        Request {
            ranks,
            ..self.0[0].clone()
        }
    }

    /// The runs of all comparisons, without further recordings and without the search for the
    /// certainty. `recorded`: the recordings, if they exist already.
    fn runs(&self, recorded: Option<&Record>) -> Runs {
        let replays = self.0.iter().map(|one| one.runs(recorded).replays);
        Runs {
            recordings: self.recorded().runs(recorded).recordings,
            replays: replays.sum(),
        }
    }

    /// A line about the number of runs, for a user who wants to know it before any is made.
    pub fn dry_run(&self) -> Result<String> {
        let request = self.recorded();
        let record = request.known_record()?;
        let (first, most) = request.recordings();
        let mut more = String::new();
        if request.has_search() {
            more += ", then usually 2 to 40 times to find how sure the answer is";
        }
        if request.has_different_hosts() {
            more += ", and 4 times with the networks of two machines in each other's hosts";
        }
        if record.is_none() && first < most {
            // A replay with each of two recordings left out, and again the earlier replays on the
            // first machine.
            let each = 2 + 1 + first;
            more += &format!(
                ", and {each} times more for each pair of recordings beyond {first} of a number of ranks, where they differ; a disturbed recording is made again, with at most {most} in all"
            );
        }
        Ok(self.runs_line(record.as_ref(), &more))
    }

    /// A line about the number of runs, for the user, before the first run.
    pub(crate) fn announced(&self, recorded: Option<&Record>) -> String {
        self.runs_line(recorded, " or more")
    }

    fn runs_line(&self, recorded: Option<&Record>, more: &str) -> String {
        let request = &self.0[0];
        let program = record::words(&request.program[..1]);
        let Runs {
            recordings,
            replays,
        } = self.runs(recorded);
        if !request.runs_program() {
            return format!("{program} is replayed {replays} times{more}");
        }
        let files = match &request.folder {
            RunFolder::Scratch => {
                "each run has a folder of its own, which is removed (--in)".into()
            }
            RunFolder::Here(folder) => {
                format!("each run writes its files to {} again", folder.display())
            }
        };
        let or_more = match request.recordings() {
            (least, most) if least < most => " or more",
            _ => "",
        };
        format!(
            "{program} runs {recordings} times{or_more}, and what it recorded is replayed {replays} times{more}; {files}"
        )
    }

    /// The line about how long the replays take that follow `made` ones. `None`: none follows.
    pub(crate) fn estimate_of_replays(
        &self,
        record: &Record,
        each: Duration,
        made: usize,
    ) -> Option<String> {
        let search = match self.0[0].has_search() {
            true => USUAL_SEARCH,
            false => 0,
        };
        let left = (self.runs(Some(record)).replays + search).saturating_sub(made);
        (left > 0).then(|| estimate::of_replays(each, left))
    }
}
