//! Named hosts, each once, in the order of their naming; a host is found by its name in constant
//! time, because a list may have tens of thousands.

use std::collections::HashMap;
use std::ops::Deref;

/// A named host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedHost {
    pub name: String,
    /// The number of its places, if it is given.
    pub places: Option<usize>,
    /// The most ranks that it may get, where it may get more than its places.
    pub most: Option<usize>,
    /// Its number in its allocation.
    pub index: usize,
}

impl ListedHost {
    /// A host of which only the name is known.
    pub(crate) fn named(name: &str) -> ListedHost {
        ListedHost {
            name: name.into(),
            places: None,
            most: None,
            index: 0,
        }
    }

    /// Reads `HOST` or `HOST:RANKS`. None if it is neither, as with a control character in it.
    pub(crate) fn parse(word: &str) -> Option<ListedHost> {
        let (name, places) = match word.rsplit_once(':') {
            None => (word, None),
            Some((name, places)) => {
                let places: Option<usize> = places.parse().ok().filter(|&places| places > 0);
                (name, Some(places?))
            }
        };
        // ssh would read a name with a hyphen before it as an option.
        let is_name = !name.is_empty() && !name.starts_with('-');
        let is_name =
            is_name && !name.contains(|letter: char| letter.is_control() || letter.is_whitespace());
        is_name.then(|| ListedHost {
            places,
            ..ListedHost::named(name)
        })
    }
}

/// Hosts with different names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostTable {
    hosts: Vec<ListedHost>,
    /// The number of each host by its name.
    names: HashMap<String, usize>,
    /// The number of the first host with this label before other labels.
    labels: HashMap<String, usize>,
}

impl HostTable {
    /// Adds a host. Its places are added to those of the host with its name.
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

    /// The host with this name, or else the first for which one of the two names is the first label
    /// of the other.
    pub(crate) fn find(&self, name: &str) -> Option<&ListedHost> {
        let by_label = || match name.split_once('.') {
            Some((label, _)) => self.names.get(label),
            None => self.labels.get(name),
        };
        let at = self.names.get(name).or_else(by_label)?;
        Some(&self.hosts[*at])
    }

    /// The hosts, of which the places may be changed.
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

/// Whether two names mean one host: they are equal, or one is the first label of the other.
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
