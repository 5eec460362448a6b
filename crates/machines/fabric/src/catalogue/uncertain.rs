//! The values of a part of the catalogue that no document states.

use super::sheet::{FieldValue, Sheet};
use crate::components::Part;
use crate::kernel::Kernel;

/// The standings of the sources of values that no document states.
const STANDINGS: [&str; 2] = ["inferred", "assumed"];

/// A value of a machine that is inferred from figures, or assumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncertainValue {
    /// The keys that lead to the value from the part, joined by dots, such as `hca.link.rate`.
    pub path: String,
    /// The value as the file writes it, or the name of a part.
    pub value: String,
    /// The meaning of the key, as a sentence.
    pub doc: &'static str,
    /// The standing of the value's source: `inferred` or `assumed`.
    pub standing: &'static str,
    /// The reason for the value: the source without its standing.
    pub reason: String,
}

impl Sheet {
    /// The values of this part and of the parts within it that are inferred or assumed, in the
    /// order of the keys. If a part is chosen by assumption, its name is such a value too. The
    /// kernel's network path is left out, because no MPI program uses it.
    pub fn uncertain(&self) -> Vec<UncertainValue> {
        let mut found = Vec::new();
        self.visit("", &mut |path, part, field| {
            if [part.kind, field.key.name].contains(&Kernel::KIND) {
                return;
            }
            let value = match &field.value {
                FieldValue::Value(raw) => raw.to_string().trim_matches('"').to_owned(),
                FieldValue::Part(part) => part.name.clone(),
                FieldValue::List(parts) => format!("{} of them", parts.len()),
            };
            let uncertain = standing(&field.source);
            found.extend(uncertain.map(|(standing, reason)| UncertainValue {
                path: path.to_owned(),
                value,
                doc: field.key.doc,
                standing,
                reason: reason.to_owned(),
            }));
        });
        found
    }
}

/// The standing of an uncertain source, and the rest of the source. `None`: the source is not
/// uncertain.
fn standing(source: &str) -> Option<(&'static str, &str)> {
    STANDINGS.iter().find_map(|standing| {
        let rest = source.strip_prefix(standing)?.strip_prefix(':')?;
        Some((*standing, rest.trim_start()))
    })
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    #[test]
    fn assumed_values_are_found_in_parts_within_parts() {
        let mut catalogue = Catalogue::builtin();
        let text = "[system.mine]\nfrom = \"fdr\"\nnodes = { value = 4, source = \"datasheet: of mine\" }\n\
                    hca = { from = \"connectx-3\", mtu = { value = \"4096 B\", source = \"assumed: as set up\" } }\n";
        catalogue.add("mine.toml", text).unwrap();
        let values = catalogue.sheet("system", "mine").unwrap().uncertain();
        let at = |path: &str| values.iter().find(|value| value.path == path);
        let mtu = at("hca.mtu").unwrap();
        assert_eq!((mtu.value.as_str(), mtu.standing), ("4096 B", "assumed"));
        assert_eq!(mtu.reason, "as set up");
        assert_eq!(at("hca.send").unwrap().standing, "inferred");
        assert_eq!(at("nodes"), None);
        assert_eq!(at("hca.completion"), None, "published");
    }
}
