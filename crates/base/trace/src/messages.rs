//! The messages of a rank's calls between two ranks: where each begins, and where the rank waits
//! for it.

use std::collections::HashMap;
use std::rc::Rc;

use crate::Trace;
use crate::comms::{Comm, Place, Step, peer};
use crate::standard::{ANY_SOURCE, ANY_TAG};
use crate::value::{FIRST_MADE, Value};

/// A message that a rank sends or receives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Message {
    pub(crate) sends: bool,
    /// The rank of the world at the other end. `None`: any source, which the trace does not name.
    pub(crate) peer: Option<usize>,
    /// The tag of the message. `None`: any tag.
    pub(crate) tag: Option<i64>,
    /// The number of the message's elements.
    pub(crate) count: i64,
    pub(crate) datatype: i64,
    pub(crate) comm: Rc<Comm>,
}

/// The effect of a call on messages and requests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// Messages begin, and the call waits until all are complete.
    Blocks(Vec<Message>),
    /// Messages begin that are complete once the request with this number is.
    Begins(i64, Vec<Message>),
    /// The request with this number is complete. Its object stays if it is persistent.
    Completes(i64),
}

/// The open requests of a rank, with their messages.
#[derive(Default)]
pub(crate) struct Requests {
    persistent: HashMap<i64, Vec<Message>>,
}

/// The ends of the names of procedures that send or receive: the sends, and the receives.
const SENDS: [&str; 4] = ["send", "ssend", "bsend", "rsend"];

impl Requests {
    /// The events of a call, in order.
    ///
    /// # Errors
    /// A message whose other end is unknown, with the reason.
    pub(crate) fn events(&mut self, trace: &Trace, step: &Step) -> Result<Vec<Event>, String> {
        let signature = trace.signature(step.call);
        let values = &trace.calls[step.call as usize].values;
        let name = signature.name.strip_prefix("MPI_").unwrap_or_default();
        let name = name.strip_suffix("_c").unwrap_or(name).to_ascii_lowercase();
        let request = || {
            let at = signature.position("request");
            at.and_then(|at| values[at].number()).unwrap_or(0)
        };
        if let Some(completed) = completed(&name, trace, step.call) {
            return Ok(completed.into_iter().map(Event::Completes).collect());
        }
        Ok(match name.as_str() {
            "start" | "startall" => {
                let requests = signature.parameters.iter();
                let at = requests.zip(values).find(|(one, _)| one.kind == "request");
                let begun = at.into_iter().flat_map(|(_, value)| numbers(value));
                let begun = begun.filter_map(|number| {
                    let messages = self.persistent.get(&number)?;
                    Some(Event::Begins(number, messages.clone()))
                });
                begun.collect()
            }
            "request_free" => {
                self.persistent.remove(&request());
                Vec::new()
            }
            _ => {
                let plain = name.strip_suffix("_init").unwrap_or(&name);
                let plain = plain.strip_suffix("_replace").unwrap_or(plain);
                let sends = SENDS.contains(&plain);
                let is_both = ["sendrecv", "isendrecv"].contains(&plain);
                let later = plain.strip_prefix('i').unwrap_or_default();
                let begins = SENDS.contains(&later) || later == "recv" || plain == "isendrecv";
                if !(sends || is_both || begins || plain == "recv") {
                    return Ok(Vec::new());
                }
                let messages = messages(trace, step)?;
                if name.ends_with("_init") {
                    self.persistent.insert(request(), messages);
                    Vec::new()
                } else if begins {
                    vec![Event::Begins(request(), messages)]
                } else {
                    vec![Event::Blocks(messages)]
                }
            }
        })
    }
}

fn numbers(value: &Value) -> impl Iterator<Item = i64> + '_ {
    let all = value.number().into_iter();
    all.chain(value.numbers().iter().copied())
}

/// The requests that a call has found complete. `None`: the call tests none.
fn completed(name: &str, trace: &Trace, call: u32) -> Option<Vec<i64>> {
    let values = &trace.calls[call as usize].values;
    let position = |name: &str| trace.signature(call).position(name);
    let number = |name: &str| values[position(name)?].number();
    let all = || {
        let at = position("array_of_requests").or(position("request"))?;
        Some(numbers(&values[at]).collect::<Vec<i64>>())
    };
    let is_found = number("flag") != Some(0);
    let found = match name {
        "wait" | "waitall" => all()?,
        "test" | "testall" if is_found => all()?,
        "waitany" | "testany" if is_found => {
            let at = usize::try_from(number("indx")?).ok();
            at.and_then(|at| all()?.get(at).copied())
                .into_iter()
                .collect()
        }
        "waitsome" | "testsome" => {
            let (all, indices) = (all()?, position("array_of_indices")?);
            let places = numbers(&values[indices]).filter_map(|at| usize::try_from(at).ok());
            places.filter_map(|at| all.get(at).copied()).collect()
        }
        "test" | "testall" | "testany" => Vec::new(),
        _ => return None,
    };
    let found = found.into_iter();
    Some(found.filter(|request| *request >= FIRST_MADE).collect())
}

/// The messages of a call that sends or receives, or both.
fn messages(trace: &Trace, step: &Step) -> Result<Vec<Message>, String> {
    let wrong = |why: &str| Err(format!("{}: {why}", step.name(trace)));
    let (comm, own) = match step.place {
        Place::In(comm, own) => (comm, *own),
        Place::Unknown(maker) => {
            return wrong(&format!(
                "its communicator comes from {maker}, whose ranks the trace does not say"
            ));
        }
        Place::None => return Ok(Vec::new()),
    };
    let signature = trace.signature(step.call);
    let values = &trace.calls[step.call as usize].values;
    let (mut count, mut datatype) = (0, 0);
    let mut messages = Vec::new();
    for (at, parameter) in signature.parameters.iter().enumerate() {
        match parameter.kind.as_str() {
            "count" => count = values[at].number().unwrap_or(0),
            "datatype" => datatype = values[at].number().unwrap_or(0),
            "dest" | "source" => {
                let found = match &values[at] {
                    Value::Number(ANY_SOURCE) => None,
                    Value::Number(_) => continue,
                    value => match peer(value, comm, own) {
                        None => return wrong("its peer is no rank of the communicator"),
                        found => found,
                    },
                };
                // The tag of a message stands behind its peer, or behind the next one's.
                let sends = parameter.kind == "dest";
                let kinds: &[&str] = if sends { &["tag"] } else { &["tag_any", "tag"] };
                let is_tag = |one: &&str| {
                    let mut after = signature.parameters.iter().skip(at);
                    after.any(|parameter| parameter.kind == **one)
                };
                let kind = kinds.iter().find(|one| is_tag(one));
                let mut behind = signature.parameters.iter().zip(values).skip(at);
                let tag = kind.and_then(|kind| behind.find(|(one, _)| one.kind == **kind));
                let tag = tag.and_then(|(_, value)| value.number());
                messages.push(Message {
                    sends,
                    peer: found,
                    tag: tag.filter(|tag| *tag != ANY_TAG),
                    count,
                    datatype,
                    comm: comm.clone(),
                });
            }
            _ => (),
        }
    }
    Ok(messages)
}
