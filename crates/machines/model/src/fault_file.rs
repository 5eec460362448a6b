//! Parser of the faults of a modelled machine: a TOML file, and the faults of single ports on a
//! command line.

use std::time::Duration;

use humantime_serde::re::humantime::parse_duration;
use serde::Deserialize;

use crate::faults::Faults;
use crate::port_faults::{PortFault, PortFaultKind};

/// The keys of the file. Shares are fractions of 1: 0.001 is one in a thousand.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct FaultFile {
    /// The share of packets that are lost.
    loss: f64,
    /// The share of packets that are late, and their greatest delay.
    delay: Option<Delay>,
    /// The span of time over which the bytes of a message become visible, in any order.
    #[serde(with = "humantime_serde")]
    scatter: Option<Duration>,
    /// The share of messages that break their queue pair.
    breaks: f64,
    /// The real capacity of completion queues, if smaller than the requested one.
    completions: Option<u32>,
    /// The faults of single ports, with a table for each.
    ports: Vec<PortTable>,
    /// The host whose processors are slower than others.
    slow: Option<SlowHost>,
    /// The time that a requester waits for an acknowledgement before it retries.
    #[serde(with = "humantime_serde")]
    timeout: Option<Duration>,
    /// The number of retries of a request that is not acknowledged.
    retries: Option<u32>,
    /// The time before a retry to a receiver that is not ready (RNR).
    #[serde(with = "humantime_serde")]
    rnr_wait: Option<Duration>,
    /// The number of retries to a receiver that is not ready.
    rnr_retries: Option<u32>,
    /// True if devices have no immediates, such as those of iWARP.
    no_immediates: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Delay {
    share: f64,
    #[serde(with = "humantime_serde")]
    up_to: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PortTable {
    host: u32,
    #[serde(default)]
    rail: u32,
    down: Option<String>,
    silent: Option<String>,
    no_acks: Option<String>,
    flap: Option<String>,
    rate: Option<String>,
}

impl PortTable {
    fn fault(&self) -> Result<PortFault, String> {
        let given = [
            ("down", &self.down),
            ("silent", &self.silent),
            ("no-acks", &self.no_acks),
            ("flap", &self.flap),
            ("rate", &self.rate),
        ];
        let mut given = given
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)));
        match (given.next(), given.next()) {
            (Some((key, value)), None) => port_fault(self.host, self.rail, key, value),
            _ => Err(format!("one of {KINDS} is needed, and only one")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowHost {
    host: u32,
    percent: u32,
}

/// Parses the text of a file. The error states the line and the cause.
pub fn parse(text: &str) -> Result<Faults, String> {
    let plan: FaultFile = toml::from_str(text).map_err(|why| why.to_string())?;
    let usual = Faults::default();
    let mut faults = Faults {
        loss: share("loss", plan.loss)?,
        scatter: plan.scatter.map(picos),
        breaks: share("breaks", plan.breaks)?,
        completions: plan.completions.unwrap_or(usual.completions),
        timeout: plan.timeout.map_or(usual.timeout, picos),
        retries: plan.retries.unwrap_or(usual.retries),
        rnr_wait: plan.rnr_wait.map_or(usual.rnr_wait, picos),
        rnr_retries: plan.rnr_retries.unwrap_or(usual.rnr_retries),
        no_immediates: plan.no_immediates,
        ..usual
    };
    if let Some(delay) = plan.delay {
        faults.late = share("delay.share", delay.share)?;
        faults.latest = picos(delay.up_to);
    }
    for (number, port) in plan.ports.iter().enumerate() {
        let added = port.fault().and_then(|fault| faults.ports.push(fault));
        added.map_err(|why| format!("ports, entry {number}: {why}"))?;
    }
    if let Some(slow) = plan.slow {
        if slow.percent == 0 {
            return Err(
                "slow.percent is 0; valid are numbers from 1: 100 is normal speed, 300 takes three times as long"
                    .into(),
            );
        }
        faults.slow = Some((slow.host, slow.percent));
    }
    Ok(faults)
}

/// The kinds of a port's faults, for error messages.
const KINDS: &str = "down=FROM..UNTIL, silent=FROM..UNTIL, no-acks=FROM..UNTIL, flap=PERIOD@FROM..UNTIL and rate=SHARE@FROM..UNTIL";

/// Parses a fault of a port in the form of the command line: `host=1,rail=0,down=2ms..5ms`.
pub fn port(text: &str) -> Result<PortFault, String> {
    let (mut host, mut rail, mut kind) = (None, 0, None);
    for part in text.split(',') {
        let (key, value) = part
            .split_once('=')
            .ok_or_else(|| format!("`{part}` has no value; write KEY=VALUE"))?;
        let number = || {
            let number = value.trim().parse::<u32>();
            number.map_err(|_| format!("{key}={value}: valid is a number, counted from 0"))
        };
        match key.trim() {
            "host" => host = Some(number()?),
            "rail" => rail = number()?,
            other if kind.is_some() => {
                return Err(format!(
                    "`{other}` is one kind too many: give each fault its own --fault"
                ));
            }
            other => kind = Some((other, value)),
        }
    }
    let host = host.ok_or("the host is missing: host=NUMBER, counted from 0")?;
    let (key, value) = kind.ok_or_else(|| format!("the kind is missing; valid are {KINDS}"))?;
    port_fault(host, rail, key, value)
}

fn port_fault(host: u32, rail: u32, key: &str, value: &str) -> Result<PortFault, String> {
    let valued = |what: &str| {
        let parts = value.split_once('@');
        parts.ok_or_else(|| format!("{key}={value}: valid is {key}={what}@FROM..UNTIL"))
    };
    let (kind, span) = match key {
        "down" => (PortFaultKind::Down, value),
        "silent" => (PortFaultKind::Silent, value),
        "no-acks" => (PortFaultKind::LostAcknowledgements, value),
        "flap" => {
            let (period, span) = valued("PERIOD")?;
            (PortFaultKind::Flapping(time(key, period)?), span)
        }
        "rate" => {
            let (rate, span) = valued("SHARE")?;
            let share = rate.trim().parse::<f64>().ok();
            let share = share.filter(|share| (0.001..=1.0).contains(share)).ok_or_else(|| {
                format!("rate={value}: {rate} is not valid; valid are shares of the link's rate from 0.001 to 1")
            })?;
            (PortFaultKind::Rate((share * 1000.0).round() as u32), span)
        }
        other => {
            return Err(format!(
                "`{other}` is not a kind of fault; valid are {KINDS}"
            ));
        }
    };
    let (from, until) = time_span(key, value, span)?;
    Ok(PortFault {
        host,
        rail,
        from,
        until,
        kind,
    })
}

/// The two moments of a span of virtual time, such as `2ms..5ms`, in picoseconds; without the
/// second one it lasts for ever. `value` is what the user gave as `key`.
pub fn time_span(key: &str, value: &str, span: &str) -> Result<(u64, u64), String> {
    let (from, until) = span.split_once("..").ok_or_else(|| {
        format!("{key}={value}: valid is a span of time FROM..UNTIL, such as 2ms..5ms, or 2ms.. for ever")
    })?;
    let until = match until.trim() {
        "" => u64::MAX,
        until => time(key, until)?,
    };
    Ok((time(key, from)?, until))
}

fn time(key: &str, text: &str) -> Result<u64, String> {
    let span = parse_duration(text.trim());
    span.map(picos).map_err(|_| {
        format!("{key}: `{text}` is not a time; valid are times such as 100us, 2ms or 1s")
    })
}

/// Converts a share to parts per million. An error if it is not between 0 and 1.
fn share(key: &str, share: f64) -> Result<u32, String> {
    match (0.0..=1.0).contains(&share) {
        true => Ok((share * 1e6).round() as u32),
        false => Err(format!("{key} is {share}; valid are shares from 0 to 1")),
    }
}

fn picos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos() * 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_read_and_a_wrong_one_is_named() {
        let text = "loss = 0.001\nscatter = \"2us\"\ndelay = { share = 0.5, up_to = \"20 us\" }\n\
                    ports = [{ host = 1, down = \"10us..1ms\" }, { host = 0, rail = 1, rate = \"0.1@2ms..\" }]\nslow = { host = 0, percent = 300 }\n\
                    no_immediates = true\n";
        let faults = parse(text).unwrap();
        assert_eq!((faults.loss, faults.scatter), (1000, Some(2_000_000)));
        assert_eq!((faults.late, faults.latest), (500_000, 20_000_000));
        let down = port("host=1,down=10us..1ms").unwrap();
        let slow = port("host=0, rail=1, rate=0.1@2ms..").unwrap();
        assert_eq!(faults.ports.as_slice(), [down, slow]);
        assert_eq!((down.from, down.until), (10_000_000, 1_000_000_000));
        assert_eq!((slow.from, slow.until), (2_000_000_000, u64::MAX));
        assert_eq!(slow.kind, PortFaultKind::Rate(100));
        let flap = port("rail=2,host=3,flap=20us@0ms..4ms").unwrap();
        assert_eq!((flap.host, flap.rail), (3, 2));
        assert_eq!(flap.kind, PortFaultKind::Flapping(20_000_000));
        assert_eq!(faults.slow, Some((0, 300)));
        assert!(faults.no_immediates);
        for (text, words) in [
            ("lost = 1", "unknown field `lost`"),
            ("loss = 2", "loss is 2; valid are shares from 0 to 1"),
            ("scatter = \"2 ducks\"", "line 1"),
            ("slow = { host = 0, percent = 0 }", "slow.percent is 0"),
            (
                "ports = [{ host = 0 }]",
                "ports, entry 0: one of down=FROM..UNTIL, silent=FROM..UNTIL",
            ),
            (
                "ports = [{ host = 0, down = \"3ms..2ms\" }]",
                "ports, entry 0: the fault ends before it begins",
            ),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_wrong_fault_of_a_port_says_what_is_valid() {
        for (text, words) in [
            ("down=2ms..5ms", "the host is missing: host=NUMBER"),
            (
                "host=1",
                "the kind is missing; valid are down=FROM..UNTIL, silent",
            ),
            (
                "host=one,down=2ms..5ms",
                "host=one: valid is a number, counted from 0",
            ),
            ("host=1,down", "`down` has no value; write KEY=VALUE"),
            (
                "host=1,up=2ms..5ms",
                "`up` is not a kind of fault; valid are down=",
            ),
            (
                "host=1,down=2ms",
                "down=2ms: valid is a span of time FROM..UNTIL, such as",
            ),
            (
                "host=1,down=2..5ms",
                "down: `2` is not a time; valid are times such as",
            ),
            (
                "host=1,flap=2ms..5ms",
                "flap=2ms..5ms: valid is flap=PERIOD@FROM..UNTIL",
            ),
            (
                "host=1,rate=10@2ms..5ms",
                "10 is not valid; valid are shares of the link's rate",
            ),
            (
                "host=1,down=2ms..5ms,silent=7ms..8ms",
                "`silent` is one kind too many",
            ),
        ] {
            let why = port(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }
}
