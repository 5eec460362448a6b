//! A table of named hosts, each listed once, in the order of their first mention. A host is found
//! by its name in constant time, because a list may have tens of thousands of hosts.

use std::collections::HashMap;
use std::ops::Deref;

/// A host with a name, as a list or an allocation describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedHost {
    pub name: String,
    /// The number of slots on the host, if it is given.
    pub places: Option<usize>,
    /// The most ranks that the host may get, if that is more than its slots.
    pub most: Option<usize>,
    /// The number of the host in its allocation.
    pub index: usize,
}

impl ListedHost {
    /// A host with a name and no other details.
    pub(crate) fn named(name: &str) -> ListedHost {
        ListedHost {
            name: name.into(),
            places: None,
            most: None,
            index: 0,
        }
    }

    /// Parses `HOST` or `HOST:RANKS`. `None` if it is neither, or contains a control character.
    pub(crate) fn parse(word: &str) -> Option<ListedHost> {
        let (name, places) = match word.rsplit_once(':') {
            None => (word, None),
            Some((name, places)) => {
                let places: Option<usize> = places.parse().ok().filter(|&places| places > 0);
                (name, Some(places?))
            }
        };
        // ssh would read a name that begins with a hyphen as an option.
        let is_name = !name.is_empty() && !name.starts_with('-');
        let is_name =
            is_name && !name.contains(|letter: char| letter.is_control() || letter.is_whitespace());
        is_name.then(|| ListedHost {
            places,
            ..ListedHost::named(name)
        })
    }
}

/// A table of hosts, in which every name occurs once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostTable {
    hosts: Vec<ListedHost>,
    /// The index of each host by its name.
    names: HashMap<String, usize>,
    /// The index of the first host whose name begins with this label and has further labels.
    labels: HashMap<String, usize>,
}

impl HostTable {
    /// Adds a host. If its name is in the table, its slots are added to those of the known host.
    pub(crate) fn add(&mut self, host: ListedHost) {
        let sum = |left: Option<usize>, right: Option<usize>| {
            left.unwrap_or(1).saturating_add(right.unwrap_or(1))
        };
        if let Some(&at) = self.names.get(&host.name) {
            let known = &mut self.hosts[at];
            known.places = Some(sum(known.places, host.places));
            known.most = match (known.most, host.most) {
                (None, None) => None,
                (left, right) => Some(sum(left, right)),
            };
            return;
        }
        let at = self.hosts.len();
        if let Some((label, _)) = host.name.split_once('.') {
            self.labels.entry(label.into()).or_insert(at);
        }
        self.names.insert(host.name.clone(), at);
        self.hosts.push(host);
    }

    /// Finds the host with this name, or else the first whose name and `name` differ only in that
    /// one is the first label of the other.
    pub(crate) fn find(&self, name: &str) -> Option<&ListedHost> {
        let by_label = || match name.split_once('.') {
            Some((label, _)) => self.names.get(label),
            None => self.labels.get(name),
        };
        let at = self.names.get(name).or_else(by_label)?;
        Some(&self.hosts[*at])
    }

    /// All hosts, for changes of their slots.
    pub(crate) fn each_mut(&mut self) -> impl Iterator<Item = &mut ListedHost> {
        self.hosts.iter_mut()
    }
}

impl Deref for HostTable {
    type Target = [ListedHost];

    fn deref(&self) -> &[ListedHost] {
        &self.hosts
    }
}

/// True if two names mean the same host: they are equal, or one is the first label of the other.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let is_label = |short: &str, long: &str| {
        let rest = long.strip_prefix(short);
        !short.contains('.') && rest.is_some_and(|rest| rest.starts_with('.'))
    };
    one == other || is_label(one, other) || is_label(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_has_neither_control_characters_nor_spaces() {
        for word in ["", "-a", "a\nb", "a\x1b[31m:2", "a b", "a:0", "a:x"] {
            assert_eq!(ListedHost::parse(word), None, "{word:?}");
        }
        assert!(ListedHost::parse("größe.example:2").is_some());
    }

    #[test]
    fn names_with_one_first_label_are_one_host() {
        assert!(is_same("a", "a") && is_same("a", "a.b.c") && is_same("a.b", "a"));
        assert!(!is_same("a", "ab") && !is_same("a.b", "a.c") && !is_same("a.b", "a.b.c"));
    }

    #[test]
    fn places_of_a_repeated_name_add_up() {
        let mut table = HostTable::default();
        for word in ["a:2", "b", "a", "a.x:7"] {
            table.add(ListedHost::parse(word).unwrap());
        }
        let places: Vec<_> = table
            .iter()
            .map(|host| (&*host.name, host.places))
            .collect();
        let expected = [("a", Some(3)), ("b", None), ("a.x", Some(7))];
        assert_eq!(places, expected);
    }

    proptest! {
        /// A host is found exactly if a name in the list means it, an equal name before others.
        #[test]
        fn a_table_finds_like_a_search(names in prop::collection::vec("[ab](\\.[xy]){0,2}", 0..8), wanted in "[ab](\\.[xy]){0,2}") {
            let mut table = HostTable::default();
            names.iter().for_each(|name| table.add(ListedHost::named(name)));
            let equal = names.iter().find(|name| **name == wanted);
            let searched = equal.or_else(|| names.iter().find(|name| is_same(name, &wanted)));
            prop_assert_eq!(table.find(&wanted).map(|host| &host.name), searched);
        }
    }
}
