//! `--faults FILE`: the faults of a modelled machine, as a TOML file.

use std::time::Duration;

use model::{Faults, Outage};
use serde::Deserialize;

/// The keys of the file. Shares are fractions of 1: 0.001 is one in a thousand.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct FaultFile {
    /// Share of packets that are lost.
    loss: f64,
    /// Delayed packets.
    delay: Option<Delay>,
    /// Span of time over which the bytes of a message become visible, in any order.
    #[serde(with = "humantime_serde")]
    scatter: Option<Duration>,
    /// Share of messages that break their queue pair.
    breaks: f64,
    /// Real capacity of completion queues, if smaller than the one requested.
    completions: Option<u32>,
    /// A rail of a host without connection for a while.
    outage: Option<OutageTable>,
    /// A slow host.
    slow: Option<SlowHost>,
    /// Time that a requester waits for an acknowledgement before it retries.
    #[serde(with = "humantime_serde")]
    timeout: Option<Duration>,
    /// Number of retries without an acknowledgement.
    retries: Option<u32>,
    /// Time before a retry to a receiver that is not ready (RNR).
    #[serde(with = "humantime_serde")]
    rnr_wait: Option<Duration>,
    /// Number of retries to a receiver that is not ready.
    rnr_retries: Option<u32>,
    /// Devices without immediates, such as those of iWARP.
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
struct OutageTable {
    host: u32,
    #[serde(default)]
    rail: u32,
    #[serde(with = "humantime_serde")]
    from: Duration,
    #[serde(with = "humantime_serde")]
    until: Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SlowHost {
    host: u32,
    percent: u32,
}

/// Reads a file. The error names the file, the line and the cause.
pub(crate) fn read(file: &str) -> Result<Faults, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
    parse(&text).map_err(|why| format!("{file}: {why}"))
}

fn parse(text: &str) -> Result<Faults, String> {
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
    faults.outage = plan.outage.map(|gap| Outage {
        host: gap.host,
        rail: gap.rail,
        from: picos(gap.from),
        until: picos(gap.until),
    });
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

/// A share as parts per million.
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
                    outage = { host = 1, from = \"10us\", until = \"1ms\" }\nslow = { host = 0, percent = 300 }\n\
                    no_immediates = true\n";
        let faults = parse(text).unwrap();
        assert_eq!((faults.loss, faults.scatter), (1000, Some(2_000_000)));
        assert_eq!((faults.late, faults.latest), (500_000, 20_000_000));
        assert_eq!(faults.outage.unwrap().until, 1_000_000_000);
        assert_eq!(faults.slow, Some((0, 300)));
        assert!(faults.no_immediates);
        for (text, words) in [
            ("lost = 1", "unknown field `lost`"),
            ("loss = 2", "loss is 2; valid are shares from 0 to 1"),
            ("scatter = \"2 ducks\"", "line 1"),
            ("slow = { host = 0, percent = 0 }", "slow.percent is 0"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
