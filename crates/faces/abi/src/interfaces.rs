//! The ports by which a rank reaches other hosts, even if some network interfaces of its host are
//! not ready yet.
//!
//! A host whose interfaces come up late, or whose links are without a carrier, has only its
//! loopback for a while. Ranks of several hosts of a job may also share one kernel and its
//! loopback, as on a developer's machine without a network. So every rank publishes its location,
//! and a rank that finds only the loopback reads the locations of the others before it waits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use device::{Error, Result};
use host_node::Whereabouts;
use pmi::{Bootstrap, Notice, hex, unhex};
use rail_choice::{Port, Wishes};

/// The time between two checks of the interfaces.
const PAUSE: Duration = Duration::from_millis(50);
/// The time after which the user is informed about the reason for the wait.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// The most addresses that a rank publishes.
const ADDRESSES: usize = 8;

fn key(rank: usize) -> String {
    format!("whereabouts.{rank}")
}

/// Publishes the location of this rank, so that others can read it.
pub(crate) fn publish(job: &Arc<dyn Bootstrap>) -> Result<()> {
    let mut record = Vec::new();
    Whereabouts::own().write(&mut record);
    for ip in own_addresses() {
        let ip = match ip {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        record.extend(ip.octets());
    }
    job.put(&key(job.rank()), &hex(&record)).map_err(lost)?;
    match job.get_waits() {
        true => Ok(()),
        false => job.fence().map_err(lost),
    }
}

fn own_addresses() -> Vec<IpAddr> {
    rail_choice::addresses()
        .into_iter()
        .take(ADDRESSES)
        .collect()
}

/// The ports that the settings select. If none leads to other hosts yet, waits for one as long as
/// `patience`; `None`: for ever.
pub(crate) fn ports(
    job: &Arc<dyn Bootstrap>,
    wishes: &Wishes,
    patience: Option<Duration>,
) -> Result<Vec<Port>> {
    let began = Instant::now();
    let mut others = Others::new(job);
    let mut is_told = false;
    loop {
        let found = rail_choice::choose(wishes);
        let why = match &found {
            Ok(found) if !found.iter().all(Port::is_loopback) => None,
            Ok(_) => match others.are_apart()? {
                Some(false) => None,
                Some(true) => Some("its only interface that is up is the loopback".to_string()),
                None => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
            },
            // An interface may still get its address or its carrier. A wrong setting stays wrong.
            Err(Error::System(why)) if wishes.devices.is_empty() => Some(why.clone()),
            Err(_) => None,
        };
        let Some(why) = why else { return found };
        let waited = began.elapsed();
        if patience.is_some_and(|patience| waited >= patience) {
            return Err(Error::System(others.words(&why, patience)));
        }
        if waited >= TELL_AFTER && !is_told {
            is_told = true;
            let text = format!(
                "{}; this rank waits for an interface (FISHPLATE_OUTAGE)",
                others.words(&why, None)
            );
            let topic = format!("interfaces-{}", job.hosts().of(job.rank()));
            // The loss of the launcher is detected elsewhere.
            let _ = job.notify(Notice::Warning {
                topic: &topic,
                text: &text,
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// The locations of the first rank of each other host, as far as they are known.
struct Others<'a> {
    job: &'a Arc<dyn Bootstrap>,
    own: Whereabouts,
    /// Ranks whose location has not arrived yet. `None`: none has been requested.
    asked: Option<Vec<usize>>,
    /// The description of a host that is on a network of its own, if one was found.
    apart: Option<String>,
}

impl<'a> Others<'a> {
    fn new(job: &'a Arc<dyn Bootstrap>) -> Others<'a> {
        Others {
            job,
            own: Whereabouts::own(),
            asked: None,
            apart: None,
        }
    }

    /// True if some host of the job has network interfaces of its own. `None`: not all locations
    /// are known.
    fn are_apart(&mut self) -> Result<Option<bool>> {
        if self.asked.is_none() {
            let hosts = self.job.hosts();
            let firsts = (0..hosts.count() as u32).filter_map(|host| hosts.on(host).next());
            let firsts: Vec<usize> = firsts
                .filter(|rank| !hosts.share(*rank, self.job.rank()))
                .collect();
            firsts
                .iter()
                .try_for_each(|rank| self.job.get(&key(*rank)).map_err(lost))?;
            self.asked = Some(firsts);
        }
        while let Some((key_of, value)) = self.job.next_value().map_err(lost)? {
            let record = unhex(&value).ok_or_else(|| lost(format!("{key_of} is {value}")))?;
            let (there, rest) = Whereabouts::read(&record)
                .ok_or_else(|| lost(format!("{key_of} is malformed: {value}")))?;
            if there.is_apart_from(&self.own) && self.apart.is_none() {
                self.apart = Some(there.with_addresses(addresses(rest)));
            }
            if let Some(asked) = &mut self.asked {
                asked.retain(|rank| key(*rank) != key_of);
            }
        }
        let all_known = self.asked.as_ref().is_some_and(Vec::is_empty);
        Ok(match self.apart.is_some() {
            true => Some(true),
            false => all_known.then_some(false),
        })
    }

    /// The reason why this host reaches no other host, with the names and addresses of the two.
    fn words(&self, why: &str, waited: Option<Duration>) -> String {
        let here = self.own.with_addresses(own_addresses());
        let there = match &self.apart {
            Some(there) => format!("another host of the job, {there}"),
            None => "the other hosts of the job".into(),
        };
        let waited = waited.map_or(String::new(), |time| {
            format!(" (waited {time:?}, the limit of FISHPLATE_OUTAGE)")
        });
        format!("{here} has no interface that reaches {there}: {why}{waited}")
    }
}

fn addresses(record: &[u8]) -> impl Iterator<Item = IpAddr> {
    let (whole, _) = record.as_chunks::<16>();
    whole.iter().map(|ip| {
        let ip = std::net::Ipv6Addr::from(*ip);
        ip.to_ipv4_mapped().map_or(ip.into(), IpAddr::from)
    })
}

/// The error of a failed exchange through the job's key-value store.
pub(crate) fn lost(why: impl std::fmt::Display) -> Error {
    Error::System(format!("the job's key-value space: {why}"))
}
