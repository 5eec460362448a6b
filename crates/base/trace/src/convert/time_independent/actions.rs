//! The actions of a rank, from the words of a line.

use super::datatypes;
use crate::standard::{MEMORY, WORLD};
use crate::value::Value;

/// The tag of messages whose action names none.
const TAG: i64 = 0;

/// An action of a rank, as a line of the trace describes it.
#[derive(Debug)]
pub(super) enum Action {
    /// The action moves nothing.
    Nothing,
    /// Computing of this many operations.
    Compute(f64),
    /// A sleep of this many seconds.
    Sleep(f64),
    /// A send or receive begins; if it blocks, the rank waits for it.
    Message { peer: Message, blocks: bool },
    /// The rank waits for a message. `None`: the one that began last.
    Wait(Option<Request>),
    /// The rank waits for all its messages.
    WaitAll,
    /// The rank tests whether a message is complete.
    Test(Option<Request>),
    /// A collective procedure, with the amounts of its call.
    Collective(&'static str, Amounts),
}

/// A message that an action sends or receives.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) sends: bool,
    /// The rank at the other end. `None`: any source.
    pub(super) rank: Option<usize>,
    pub(super) tag: i64,
    /// The number of elements. `None`: as many as the sender has.
    pub(super) count: Option<i64>,
    pub(super) datatype: i64,
}

/// A message that has begun, as waits name it.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) tag: i64,
}

/// The amounts of data of a collective call.
#[derive(Debug)]
pub(super) enum Amounts {
    /// MPI_Barrier.
    None,
    /// MPI_Bcast: the number of elements, the datatype, the root.
    Broadcast(i64, i64, i64),
    /// Reductions: elements, datatype, and the root if there is one.
    Reduction(i64, i64, Option<i64>),
    /// Blocks that are sent and received: elements and datatype of each, and the root if there is
    /// one.
    Blocks([(Elements, i64); 2], Option<i64>),
    /// MPI_Reduce_scatter: the number of elements of each rank, the datatype.
    Scattered(Vec<i64>, i64),
}

/// The numbers of elements for or from each rank.
#[derive(Debug)]
pub(super) enum Elements {
    Equal(i64),
    Each(Vec<i64>),
}

impl Action {
    /// Reads the words of an action of a trace with `ranks` ranks. `default`: the datatype of
    /// actions that name none, which the action `init` sets.
    pub(super) fn read(words: &[&str], ranks: usize, default: &mut i64) -> Result<Action, String> {
        let (name, words) = words.split_first().ok_or("the action is missing")?;
        let name = name.to_ascii_lowercase();
        let words = Words {
            words,
            ranks,
            default: *default,
        };
        let most = |most: usize| match words.words.get(most) {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` is one word too many for {name}")),
        };
        Ok(match name.as_str() {
            "init" => {
                // Traces of one tool count bytes, those of others doubles.
                if !words.words.is_empty() {
                    *default = datatypes::of(0).unwrap_or(datatypes::BYTE);
                }
                Action::Nothing
            }
            "finalize" | "comm_size" | "comm_dup" | "location" => Action::Nothing,
            "compute" => {
                most(1)?;
                Action::Compute(words.amount(0)?)
            }
            "sleep" => {
                most(1)?;
                Action::Sleep(words.amount(0)?)
            }
            "send" | "isend" | "recv" | "irecv" => {
                most(4)?;
                let peer = words.message(name.ends_with("send"))?;
                let blocks = !name.starts_with('i');
                Action::Message { peer, blocks }
            }
            "wait" => {
                most(3)?;
                Action::Wait(words.request()?)
            }
            "test" => {
                most(3)?;
                Action::Test(words.request()?)
            }
            // Old traces name the number of requests.
            "waitall" => Action::WaitAll,
            "comm_split" => {
                return Err(
                    "comm_split: the format does not say which later actions are of the new communicators; make the trace of a run without it".into(),
                );
            }
            _ => words.collective(&name)?,
        })
    }
}

/// The words of an action's line behind its name.
struct Words<'a> {
    words: &'a [&'a str],
    ranks: usize,
    default: i64,
}

impl Words<'_> {
    fn word(&self, at: usize) -> Result<&str, String> {
        let word = self.words.get(at).copied();
        word.ok_or(format!("word {} behind the action is missing", at + 1))
    }

    /// The word at position `at` as an amount, which may have a fraction or an exponent.
    fn amount(&self, at: usize) -> Result<f64, String> {
        let word = self.word(at)?;
        let parsed = word.parse::<f64>().ok();
        let fits = |amount: &f64| amount.is_finite() && *amount >= 0.0;
        { parsed }
            .filter(fits)
            .ok_or(format!("`{word}` is no amount"))
    }

    /// The word at position `at` as a number of elements.
    fn count(&self, at: usize) -> Result<i64, String> {
        const MOST: f64 = i32::MAX as f64;
        let (amount, word) = (self.amount(at)?, self.word(at)?);
        match amount.fract() == 0.0 && amount <= MOST {
            true => Ok(amount as i64),
            false => Err(format!(
                "`{word}` elements; MPI counts whole ones up to {MOST}: name a longer datatype"
            )),
        }
    }

    fn counts(&self, from: usize) -> Result<Vec<i64>, String> {
        (from..from + self.ranks).map(|at| self.count(at)).collect()
    }

    fn rank(&self, at: usize) -> Result<usize, String> {
        let word = self.word(at)?;
        let rank = word.parse::<usize>().ok();
        { rank }
            .filter(|rank| *rank < self.ranks)
            .ok_or(format!("`{word}` is no rank; there are {}", self.ranks))
    }

    fn tag(&self, at: usize) -> Result<i64, String> {
        let word = self.word(at)?;
        let tag = word.parse::<i32>().ok().filter(|tag| *tag >= 0);
        let tag = tag.ok_or(format!("`{word}` is no tag: name the message's"))?;
        Ok(tag.into())
    }

    /// The datatype that the word at position `at` names, or the default datatype if there is no
    /// such word.
    fn datatype(&self, at: usize) -> Result<i64, String> {
        let Some(word) = self.words.get(at) else {
            return Ok(self.default);
        };
        let found = word.parse().ok().and_then(datatypes::of);
        found.ok_or(format!(
            "`{word}` is no number of a datatype that is known here: 0 to 26"
        ))
    }

    /// The message of `PEER TAG ELEMENTS [DATATYPE]`, or of `PEER ELEMENTS` as old traces have it.
    fn message(&self, sends: bool) -> Result<Message, String> {
        let is_any = self.word(0)?.starts_with('-') && !sends;
        let rank = (!is_any).then(|| self.rank(0)).transpose()?;
        let old = self.words.len() == 2;
        let at = if old { 1 } else { 2 };
        let is_left_open = !sends && self.word(at)?.parse::<f64>().is_ok_and(|size| size <= 0.0);
        let count = (!is_left_open).then(|| self.count(at)).transpose()?;
        Ok(Message {
            sends,
            rank,
            tag: if old { TAG } else { self.tag(1)? },
            count,
            datatype: self.datatype(at + 1)?,
        })
    }

    fn request(&self) -> Result<Option<Request>, String> {
        if self.words.is_empty() {
            return Ok(None);
        }
        Ok(Some(Request {
            from: self.rank(0)?,
            to: self.rank(1)?,
            tag: self.tag(2)?,
        }))
    }

    fn root(&self, at: usize) -> Result<i64, String> {
        match self.words.get(at) {
            Some(_) => Ok(self.rank(at)? as i64),
            None => Ok(0),
        }
    }

    /// The amount of computing of a reduction, which is not used: the machine has a time for it.
    fn reduced(&self, at: usize) -> Result<(), String> {
        self.amount(at).map(drop)
    }

    // Over 80 lines: a table with a row for each action.
    fn collective(&self, name: &str) -> Result<Action, String> {
        let equal = |at: usize| Ok::<_, String>(Elements::Equal(self.count(at)?));
        let each = |at: usize| Ok::<_, String>(Elements::Each(self.counts(at)?));
        let (ranks, types) = (self.ranks, |at: usize| {
            // A second datatype that is left out is the first.
            let first = self.datatype(at)?;
            let second = match self.words.get(at + 1) {
                Some(_) => self.datatype(at + 1)?,
                None => first,
            };
            Ok::<_, String>([first, second])
        });
        let pair = |[first, second]: [Elements; 2], of: [i64; 2]| [(first, of[0]), (second, of[1])];
        let (name, amounts) = match name {
            "barrier" => ("MPI_Barrier", Amounts::None),
            "bcast" => {
                let (count, root) = (self.count(0)?, self.root(1)?);
                let datatype = self.datatype(2)?;
                ("MPI_Bcast", Amounts::Broadcast(count, datatype, root))
            }
            "reduce" => {
                self.reduced(1)?;
                let (count, root) = (self.count(0)?, self.root(2)?);
                let datatype = self.datatype(3)?;
                let amounts = Amounts::Reduction(count, datatype, Some(root));
                ("MPI_Reduce", amounts)
            }
            "allreduce" | "scan" | "exscan" => {
                self.reduced(1)?;
                let name = match name {
                    "scan" => "MPI_Scan",
                    "exscan" => "MPI_Exscan",
                    _ => "MPI_Allreduce",
                };
                let amounts = Amounts::Reduction(self.count(0)?, self.datatype(2)?, None);
                (name, amounts)
            }
            "alltoall" | "allgather" => {
                let elements = [equal(0)?, equal(1)?];
                let amounts = Amounts::Blocks(pair(elements, types(2)?), None);
                match name {
                    "alltoall" => ("MPI_Alltoall", amounts),
                    _ => ("MPI_Allgather", amounts),
                }
            }
            "gather" | "scatter" => {
                let elements = [equal(0)?, equal(1)?];
                let root = Some(self.root(2)?);
                let amounts = Amounts::Blocks(pair(elements, types(3)?), root);
                match name {
                    "gather" => ("MPI_Gather", amounts),
                    _ => ("MPI_Scatter", amounts),
                }
            }
            // Each array stands behind the length of its buffer.
            "alltoallv" => {
                let elements = [each(1)?, each(2 + ranks)?];
                let types = types(2 + 2 * ranks)?;
                (
                    "MPI_Alltoallv",
                    Amounts::Blocks(pair(elements, types), None),
                )
            }
            "gatherv" => {
                let elements = [equal(0)?, each(1)?];
                let root = Some(self.root(1 + ranks)?);
                let amounts = Amounts::Blocks(pair(elements, types(2 + ranks)?), root);
                ("MPI_Gatherv", amounts)
            }
            "allgatherv" => {
                let elements = [equal(0)?, each(1)?];
                let amounts = Amounts::Blocks(pair(elements, types(1 + ranks)?), None);
                ("MPI_Allgatherv", amounts)
            }
            "scatterv" => {
                let elements = [each(0)?, equal(ranks)?];
                let root = Some(self.root(1 + ranks)?);
                let amounts = Amounts::Blocks(pair(elements, types(2 + ranks)?), root);
                ("MPI_Scatterv", amounts)
            }
            "reducescatter" => {
                self.reduced(ranks)?;
                let amounts = Amounts::Scattered(self.counts(0)?, self.datatype(1 + ranks)?);
                ("MPI_Reduce_scatter", amounts)
            }
            other => {
                return Err(format!("`{other}` is no action that can be read here"));
            }
        };
        Ok(Action::Collective(name, amounts))
    }
}

impl Amounts {
    /// The values of the MPI call on this rank.
    pub(super) fn values(self, rank: usize, ranks: usize) -> Result<Vec<Value>, String> {
        let number = Value::Number;
        let operation = |datatype: i64| {
            let found = datatypes::operation(datatype);
            found.ok_or("MPI has no sum of elements of this datatype")
        };
        let world = number(WORLD);
        Ok(match self {
            Amounts::None => vec![world],
            Amounts::Broadcast(count, datatype, root) => {
                vec![MEMORY, number(count), number(datatype), number(root), world]
            }
            Amounts::Reduction(count, datatype, root) => {
                let op = number(operation(datatype)?);
                let start = [MEMORY, MEMORY, number(count), number(datatype), op];
                let root = root.map(number);
                start.into_iter().chain(root).chain([world]).collect()
            }
            Amounts::Scattered(counts, datatype) => {
                let op = number(operation(datatype)?);
                vec![
                    MEMORY,
                    MEMORY,
                    Value::Numbers(counts),
                    number(datatype),
                    op,
                    world,
                ]
            }
            Amounts::Blocks([sent, received], root) => {
                let mut values = Vec::new();
                for (elements, datatype) in [sent, received] {
                    values.push(MEMORY);
                    match elements {
                        Elements::Equal(count) => values.push(number(count)),
                        // With a root, only the root has arrays.
                        Elements::Each(_) if root.is_some_and(|root| root != rank as i64) => {
                            values.extend([Value::Absent, Value::Absent]);
                        }
                        Elements::Each(counts) => {
                            let sums = counts.iter().scan(0i64, |sum, count| {
                                let before = *sum;
                                *sum += count;
                                Some(before)
                            });
                            let displacements: Vec<i64> = sums.collect();
                            if displacements.iter().any(|one| *one > i32::MAX.into()) {
                                return Err(format!(
                                    "the blocks of {ranks} ranks together have too many elements"
                                ));
                            }
                            values.push(Value::Numbers(counts));
                            values.push(Value::Numbers(displacements));
                        }
                    }
                    values.push(number(datatype));
                }
                values.extend(root.map(number));
                values.push(world);
                values
            }
        })
    }
}
