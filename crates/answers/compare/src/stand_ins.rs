//! The sentence of an answer about parts of the machines that are assumed.

use crate::advice::Advice;

impl Advice {
    /// The sentence about assumed hosts and libraries of the machines in the answer; empty if there
    /// are none.
    pub(crate) fn stand_ins_sentence(&self) -> String {
        let named = self.equals.iter().copied().chain(self.challenger());
        let named = results::table::distinct(named);
        let of = |key: &str| -> Option<String> {
            let mut parts: Vec<(&str, Vec<&str>)> = Vec::new();
            for at in &named {
                let Some(found) = self.stand_ins[*at].iter().find(|one| one.key == key) else {
                    continue;
                };
                let name = self.name(Some(*at));
                match parts.iter_mut().find(|(part, _)| *part == found.part) {
                    Some((_, names)) => names.push(name),
                    None => parts.push((&found.part, vec![name])),
                }
            }
            let parts = parts.iter();
            let parts = parts.map(|(part, names)| format!("{part} for {}", names.join(" and ")));
            let parts: Vec<String> = parts.collect();
            (!parts.is_empty()).then(|| parts.join(", "))
        };
        let host = of("host").map(|parts| format!("hosts ({parts})"));
        let library = of("software").map(|parts| format!("costs of the MPI library ({parts})"));
        let all: Vec<String> = host.into_iter().chain(library).collect();
        match all.is_empty() {
            true => String::new(),
            false => format!(" Stand-ins, which are assumed: {}.", all.join("; ")),
        }
    }
}
