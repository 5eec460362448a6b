//! The job's key-value store and its fence. The launcher has the store of all ranks; an agent has
//! one with the values that have passed through it.

use std::collections::HashMap;

use pmi::{KvsError, check_key, check_value};

/// The limit on the memory of a store, in bytes. [`BYTES_OF_A_RANK`] is added for each rank of the
/// job.
const BYTES_LIMIT: usize = 8 << 20;

/// The bytes that each rank of the job adds to [`BYTES_LIMIT`]: more than its keys and values take.
const BYTES_OF_A_RANK: usize = 32 << 10;

/// The memory of an entry in addition to its key and value, in bytes.
const ENTRY: usize = 128;

/// The most values that one requester may wait for. [`WAITING_FOR_A_RANK`] is added for each rank
/// of the job.
const WAITING_LIMIT: usize = 4096;

/// The number of values that each rank of the job adds to [`WAITING_LIMIT`].
const WAITING_FOR_A_RANK: usize = 4;

/// The stored values, the requesters that wait for values, and the ranks in the present fence.
///
/// A requester has a number: in an agent it is a rank of its host, in a launcher with agents a
/// host, and otherwise a rank.
#[derive(Debug)]
pub(crate) struct Kvs {
    values: HashMap<String, Entry>,
    waiting: HashMap<String, Vec<usize>>,
    bytes: usize,
    /// The number of values that each requester of the store waits for.
    wanted: Vec<usize>,
    /// For each rank: true if it is in the present fence.
    in_fence: Vec<bool>,
    /// The number of ranks that have entered the present fence.
    entered: usize,
}

#[derive(Debug)]
struct Entry {
    value: String,
    by: usize,
}

impl Kvs {
    /// An empty store for `ranks` ranks, which are also the requesters.
    pub(crate) fn new(ranks: usize) -> Self {
        Kvs::for_others(ranks, ranks)
    }

    /// An empty store for the values of `ranks` ranks, with `others` requesters.
    pub(crate) fn for_others(ranks: usize, others: usize) -> Self {
        Kvs {
            values: HashMap::new(),
            waiting: HashMap::new(),
            bytes: 0,
            wanted: vec![0; others],
            in_fence: vec![false; ranks],
            entered: 0,
        }
    }

    /// Stores a value of rank `by`. Returns the requesters that have been waiting for it, or `None`
    /// if this value is stored already. An error describes which rule of the store the rank has
    /// violated.
    pub(crate) fn put(
        &mut self,
        by: usize,
        key: &str,
        value: &str,
    ) -> Result<Option<Vec<usize>>, String> {
        check_key(key)
            .and_then(|()| check_value(key, value))
            .map_err(|why| why.to_string())?;
        if let Some(entry) = self.values.get(key) {
            return match entry.value == value {
                true => Ok(None),
                false => Err(format!(
                    "the key {key} has another value already, put by rank {}",
                    entry.by
                )),
            };
        }
        self.bytes += key.len() + value.len() + ENTRY;
        let most = BYTES_LIMIT + BYTES_OF_A_RANK * self.in_fence.len();
        if self.bytes > most {
            return Err(format!(
                "with the key {key} the store exceeds {} KiB",
                most >> 10
            ));
        }
        let value = value.to_string();
        self.values.insert(key.to_string(), Entry { value, by });
        let waiting = self.waiting.remove(key).unwrap_or_default();
        waiting.iter().for_each(|&other| self.wanted[other] -= 1);
        Ok(Some(waiting))
    }

    /// The keys whose values requesters of the store wait for.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &str> {
        self.waiting.keys().map(String::as_str)
    }

    /// The value of a key, if it has been put; otherwise requester `by` waits for it.
    pub(crate) fn get(&mut self, by: usize, key: &str) -> Result<Option<&str>, String> {
        let found = self.get_with_rank(by, key)?;
        Ok(found.map(|(_, value)| value))
    }

    /// The rank that has put the value of a key, and the value; if none has, requester `by` waits
    /// for it.
    pub(crate) fn get_with_rank(
        &mut self,
        by: usize,
        key: &str,
    ) -> Result<Option<(usize, &str)>, String> {
        check_key(key).map_err(|why| why.to_string())?;
        if !self.values.contains_key(key) {
            let most = WAITING_LIMIT + WAITING_FOR_A_RANK * self.in_fence.len();
            self.wanted[by] += 1;
            if self.wanted[by] > most {
                return Err(format!(
                    "it waits for more than {most} values that no rank has put"
                ));
            }
            self.waiting.entry(key.to_string()).or_default().push(by);
        }
        let entry = self.values.get(key);
        Ok(entry.map(|entry| (entry.by, entry.value.as_str())))
    }

    /// The explanation that rank 0 has stored, if it is complete.
    pub(crate) fn explanation(&self) -> Option<String> {
        pmi::explanation(|key| self.values.get(key).map(|entry| entry.value.as_str()))
    }

    /// Records that a rank enters the fence. True if it was the last one: the fence is complete,
    /// and the next may begin.
    pub(crate) fn enter_fence(&mut self, rank: usize) -> Result<bool, String> {
        if std::mem::replace(&mut self.in_fence[rank], true) {
            return Err(KvsError::InFence.to_string());
        }
        self.entered += 1;
        let complete = self.entered == self.in_fence.len();
        if complete {
            self.entered = 0;
            self.in_fence.fill(false);
        }
        Ok(complete)
    }

    /// True if other ranks are in a fence that this rank has not entered.
    pub(crate) fn fence_waits_for(&self, rank: usize) -> bool {
        self.entered > 0 && !self.in_fence[rank]
    }
}

#[cfg(test)]
mod tests {
    use super::Kvs;

    #[test]
    fn answers_come_at_once_or_with_the_value() {
        let mut store = Kvs::new(5);
        assert_eq!(store.get(3, "a"), Ok(None));
        assert_eq!(store.get(4, "a"), Ok(None));
        assert_eq!(store.wanted().collect::<Vec<_>>(), ["a"]);
        assert_eq!(store.put(0, "a", "1"), Ok(Some(vec![3, 4])));
        assert_eq!(store.put(0, "a", "1"), Ok(None));
        assert_eq!(store.wanted().count(), 0);
        assert_eq!(store.get(3, "a"), Ok(Some("1")));
        assert_eq!(store.get_with_rank(4, "a"), Ok(Some((0, "1"))));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut store = Kvs::new(2);
        store.put(0, "a", "1").unwrap();
        assert!(store.put(1, "a", "2").unwrap_err().contains("by rank 0"));
        assert!(store.put(1, "", "2").unwrap_err().contains("printable"));
        let long = "x".repeat(pmi::VALUE_LIMIT + 1);
        assert!(store.put(1, "b", &long).unwrap_err().contains("3072"));
        assert!(store.get(1, &long).unwrap_err().contains("128"));
        assert_eq!(store.get(1, "b"), Ok(None));
    }

    #[test]
    fn a_store_has_a_limit_that_a_rank_cannot_pass() {
        let mut store = Kvs::new(2);
        let value = "x".repeat(pmi::VALUE_LIMIT);
        let put = |store: &mut Kvs, n: usize| store.put(0, &format!("k{n}"), &value);
        let full = (0..).find(|&n| put(&mut store, n).is_err()).unwrap();
        assert!((2000..4000).contains(&full), "{full} values");
        assert!(put(&mut store, full + 1).unwrap_err().contains("8256 KiB"));
        let get = |store: &mut Kvs, n: usize| store.get(1, &format!("w{n}")).is_err();
        assert_eq!((0..).find(|&n| get(&mut store, n)), Some(4104));
        assert!(store.get(0, "w0").is_ok());
    }

    #[test]
    fn a_fence_is_complete_when_every_rank_is_in_it() {
        let mut store = Kvs::new(3);
        for _ in 0..2 {
            assert!(!store.fence_waits_for(1));
            assert_eq!(store.enter_fence(2), Ok(false));
            assert_eq!(store.enter_fence(0), Ok(false));
            assert!(store.fence_waits_for(1) && !store.fence_waits_for(0));
            assert!(store.enter_fence(0).unwrap_err().contains("complete"));
            assert_eq!(store.enter_fence(1), Ok(true));
        }
        assert_eq!(Kvs::new(1).enter_fence(0), Ok(true));
    }
}
