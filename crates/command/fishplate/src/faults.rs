//! The faults of a modelled machine: reading the file of `--faults`, and reporting faults that did
//! not happen.

use model::fault_file::parse;
use model::{Faults, PortFault};

use crate::summary::duration;

/// Reads a file of faults. The error names the file, the line and the cause.
pub(crate) fn read(file: &str) -> Result<Faults, String> {
    let text = std::fs::read_to_string(file).map_err(|why| format!("{file}: {why}"))?;
    parse(&text).map_err(|why| format!("{file}: {why}"))
}

/// The reason why a fault of a port did not happen in a job that used these hosts for `seconds`
/// seconds. `None` if it happened.
pub(crate) fn missed(fault: &PortFault, hosts: &[u32], seconds: f64) -> Option<String> {
    let PortFault { host, rail, .. } = fault;
    let from = fault.from as f64 * 1e-12;
    let name = format!(
        "the fault of host {host}, rail {rail} at {}",
        duration(from)
    );
    match from >= seconds {
        _ if !hosts.contains(host) => Some(format!(
            "{name} does not concern the job, which has no rank on that host"
        )),
        true => Some(format!(
            "{name} lies after the end of the job at {}",
            duration(seconds)
        )),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_that_did_not_happen_is_named() {
        let fault = |host, from| PortFault {
            host,
            rail: 1,
            from,
            until: u64::MAX,
            ..PortFault::default()
        };
        let (early, late) = (fault(1, 188_000_000), fault(1, 2_000_000_000));
        assert_eq!(missed(&early, &[0, 1], 189e-6), None);
        let text = "the fault of host 1, rail 1 at 2.00 ms lies after the end of the job at 189 µs";
        assert_eq!(missed(&late, &[0, 1], 189e-6).as_deref(), Some(text));
        let text = "the fault of host 1, rail 1 at 188 µs does not concern the job, which has no rank on that host";
        assert_eq!(missed(&early, &[0], 189e-6).as_deref(), Some(text));
    }
}
