//! The IP interfaces of this host, those that a job would use, and the reasons against the others.

use results::terminal::{beside, width};
use serde_json::{Value, json};
use tcp::interfaces::{Interface, Verdict, list};

/// Width of the reasons, in columns.
const WIDTH: usize = 100;

/// The interfaces of this host, or the reason why they cannot be listed.
pub(crate) struct InterfaceChoice(Result<Vec<Interface>, String>);

/// Lists the interfaces, and chooses among them as a job does.
pub(crate) fn find() -> InterfaceChoice {
    InterfaceChoice(list().map_err(|why| format!("they cannot be listed: {why}")))
}

impl InterfaceChoice {
    fn all(&self) -> &[Interface] {
        self.0.as_deref().unwrap_or_default()
    }

    /// The object of `--json`.
    pub(crate) fn object(&self) -> Value {
        let interfaces = self.all().iter().map(object);
        json!({
            "interfaces": interfaces.collect::<Vec<_>>(),
            "problem": self.0.as_ref().err(),
        })
    }

    /// One line: the interfaces that a job would use.
    pub(crate) fn line(&self) -> String {
        let used = self.all().iter();
        let used = used.filter(|one| one.verdict == Verdict::Used);
        let used: Vec<String> = used
            .map(|one| format!("{} ({})", one.name, one.address))
            .collect();
        match &self.0 {
            Err(problem) => problem.clone(),
            Ok(_) if used.is_empty() => "none with an address and a link".into(),
            Ok(_) => used.join(", "),
        }
    }

    /// Prints a table of the interfaces, and the reasons below it.
    pub(crate) fn print(&self) {
        if self.all().is_empty() {
            return;
        }
        let header = ["interface", "use", "address", "Mbit/s", "MTU"];
        let rows = self.all().iter().map(row).collect();
        let left = header.len() - 2;
        let header = header.map(String::from).to_vec();
        say!("\n{}", results::table::lines(header, rows, left).trim_end());
        say!("");
        for interface in self.all() {
            let width = width().map_or(WIDTH, |width| width.min(WIDTH));
            let label = format!("{:10} ", interface.name);
            say!("{}", beside(&label, 22, &reason(interface), Some(width)));
        }
    }
}

fn row(interface: &Interface) -> Vec<String> {
    let or_dash = |number: Option<u32>| number.map_or("–".into(), |number| number.to_string());
    let is_used = interface.verdict == Verdict::Used;
    vec![
        interface.name.clone(),
        if is_used { "yes" } else { "no" }.into(),
        format!("{}/{}", interface.address, interface.prefix),
        or_dash(interface.speed_mbps),
        or_dash(Some(interface.mtu).filter(|&bytes| bytes > 0)),
    ]
}

/// The reason for or against an interface, and for its address.
fn reason(interface: &Interface) -> String {
    let (address, why) = (interface.address, interface.why_this_address());
    match interface.verdict {
        Verdict::Used => format!("{address}: {why}"),
        Verdict::LeftOut(reason) => format!("not used: {reason}"),
    }
}

fn object(interface: &Interface) -> Value {
    let against = match interface.verdict {
        Verdict::Used => None,
        Verdict::LeftOut(why) => Some(why),
    };
    let others = interface.others.iter();
    let others = others.map(|other| other.address.to_string());
    json!({
        "name": interface.name,
        "used": against.is_none(),
        "why_not": against,
        "address": interface.address.to_string(),
        "why_address": interface.why_this_address(),
        "prefix": interface.prefix,
        "other_addresses": others.collect::<Vec<_>>(),
        "mbit_per_second": interface.speed_mbps,
        "mtu_bytes": interface.mtu,
    })
}
