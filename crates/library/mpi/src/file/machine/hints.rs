//! Hints about files, with ROMIO's names (MPI 5.0 §14.2.8).
//!
//! A hint with an invalid value is ignored. `info` lists only the hints that are in use.

/// A choice between two methods, which a hint makes or leaves to the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Switch {
    #[default]
    Automatic,
    Enabled,
    Disabled,
}

/// Bytes of an aggregator's buffer, unless a hint sets another length.
const COLLECTIVE_BUFFER: u64 = 4 << 20;
/// Bytes that one system call reads, and (`SIEVED_WRITE`) writes, if gaps are moved with the data
/// around them.
const SIEVED_READ: u64 = 512 << 10;
const SIEVED_WRITE: u64 = 512 << 10;
/// Permissions of a new file, before the process's mask is applied.
const PERMISSIONS: u32 = 0o666;

/// The hints of a file that are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileHints {
    /// `cb_nodes`: the number of aggregators; 0: the library chooses.
    pub(crate) aggregators: u64,
    /// `cb_buffer_size`: bytes of an aggregator's buffer.
    pub(crate) collective_buffer: u64,
    /// `romio_cb_read`: whether collective reads use aggregators.
    pub(crate) collective_read: Switch,
    /// `romio_cb_write`: whether collective writes use aggregators.
    pub(crate) collective_write: Switch,
    /// `romio_ds_read`: whether reads use data sieving.
    pub(crate) sieve_read: Switch,
    /// `romio_ds_write`: whether writes use data sieving.
    pub(crate) sieve_write: Switch,
    /// `ind_rd_buffer_size`: the most bytes that one system call reads when sieving.
    pub(crate) sieved_read: u64,
    /// `ind_wr_buffer_size`: the most bytes that one system call writes when sieving.
    pub(crate) sieved_write: u64,
    /// `file_perm`: the permission bits of a new file.
    pub(crate) permissions: u32,
}

impl Default for FileHints {
    fn default() -> FileHints {
        FileHints {
            aggregators: 0,
            collective_buffer: COLLECTIVE_BUFFER,
            collective_read: Switch::default(),
            collective_write: Switch::default(),
            sieve_read: Switch::default(),
            sieve_write: Switch::default(),
            sieved_read: SIEVED_READ,
            sieved_write: SIEVED_WRITE,
            permissions: PERMISSIONS,
        }
    }
}

impl FileHints {
    /// Updates the hints from the pairs of an info object; other hints keep their values.
    pub(crate) fn update(&mut self, info: &[(String, String)]) {
        for (key, value) in info {
            let value = value.trim();
            match key.as_str() {
                "cb_nodes" => set_number(&mut self.aggregators, value),
                "cb_buffer_size" => set_number(&mut self.collective_buffer, value),
                "romio_cb_read" => set_switch(&mut self.collective_read, value),
                "romio_cb_write" => set_switch(&mut self.collective_write, value),
                "romio_ds_read" => set_switch(&mut self.sieve_read, value),
                "romio_ds_write" => set_switch(&mut self.sieve_write, value),
                "ind_rd_buffer_size" => set_number(&mut self.sieved_read, value),
                "ind_wr_buffer_size" => set_number(&mut self.sieved_write, value),
                "file_perm" => {
                    if let Ok(bits) = u32::from_str_radix(value, 8)
                        && bits <= 0o7777
                    {
                        self.permissions = bits;
                    }
                }
                _ => {}
            }
        }
    }

    /// The hints as pairs of an info object.
    pub(crate) fn info(&self) -> Vec<(String, String)> {
        let switch = |switch| match switch {
            Switch::Automatic => "automatic",
            Switch::Enabled => "enable",
            Switch::Disabled => "disable",
        };
        let mut pairs = vec![
            ("cb_buffer_size", self.collective_buffer.to_string()),
            ("romio_cb_read", switch(self.collective_read).to_string()),
            ("romio_cb_write", switch(self.collective_write).to_string()),
            ("romio_ds_read", switch(self.sieve_read).to_string()),
            ("romio_ds_write", switch(self.sieve_write).to_string()),
            ("ind_rd_buffer_size", self.sieved_read.to_string()),
            ("ind_wr_buffer_size", self.sieved_write.to_string()),
            ("file_perm", format!("{:o}", self.permissions)),
        ];
        if self.aggregators > 0 {
            pairs.insert(0, ("cb_nodes", self.aggregators.to_string()));
        }
        pairs
            .into_iter()
            .map(|(key, value)| (key.to_string(), value))
            .collect()
    }

    /// The hints on which all ranks must agree, as numbers.
    pub(crate) fn words(&self) -> [u64; 3] {
        let switches = [
            self.collective_read,
            self.collective_write,
            self.sieve_write,
        ];
        let switches = switches
            .iter()
            .fold(0, |word, switch| word << 2 | *switch as u64);
        [self.aggregators, self.collective_buffer, switches]
    }

    /// Takes over the hints of the first rank from `all`. Writes use data sieving on all ranks if
    /// one rank requests it.
    pub(crate) fn agree(&mut self, all: &[[u64; 3]]) {
        let switch = |word: u64| match word & 3 {
            1 => Switch::Enabled,
            2 => Switch::Disabled,
            _ => Switch::Automatic,
        };
        let Some([aggregators, buffer, switches]) = all.first() else {
            return;
        };
        self.aggregators = *aggregators;
        self.collective_buffer = *buffer;
        self.collective_read = switch(switches >> 4);
        self.collective_write = switch(switches >> 2);
        let enabled = |words: &[u64; 3]| switch(words[2]) == Switch::Enabled;
        self.sieve_write = match all.iter().any(enabled) {
            true => Switch::Enabled,
            false => switch(*switches),
        };
    }
}

fn set_number(place: &mut u64, value: &str) {
    if let Ok(number @ 1..) = value.parse() {
        *place = number;
    }
}

fn set_switch(place: &mut Switch, value: &str) {
    *place = match value.to_ascii_lowercase().as_str() {
        "enable" => Switch::Enabled,
        "disable" => Switch::Disabled,
        "automatic" => Switch::Automatic,
        _ => return,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hints_in_use_are_listed() {
        let mut hints = FileHints::default();
        let info = [
            ("cb_nodes", "3"),
            ("cb_buffer_size", "nonsense"),
            ("romio_ds_write", "ENABLE"),
            ("striping_unit", "4096"),
            ("file_perm", "640"),
        ];
        hints.update(&info.map(|(key, value)| (key.to_string(), value.to_string())));
        let listed = hints.info();
        let get = |key: &str| {
            let mut found = listed.iter().filter(|pair| pair.0 == key);
            found.next().map(|pair| pair.1.as_str())
        };
        assert_eq!(get("cb_nodes"), Some("3"));
        assert_eq!(get("cb_buffer_size"), Some("4194304"));
        assert_eq!(get("romio_ds_write"), Some("enable"));
        assert_eq!(get("file_perm"), Some("640"));
        assert_eq!(get("striping_unit"), None);
    }

    #[test]
    fn all_ranks_use_the_first_ones_and_rewrite_gaps_together() {
        let mut first = FileHints {
            aggregators: 2,
            collective_write: Switch::Disabled,
            ..FileHints::default()
        };
        let mut second = FileHints {
            sieve_write: Switch::Enabled,
            ..FileHints::default()
        };
        let words = [first.words(), second.words()];
        first.agree(&words);
        second.agree(&words);
        assert_eq!(first, second);
        assert_eq!(first.collective_write, Switch::Disabled);
        assert_eq!((first.aggregators, first.sieve_write), (2, Switch::Enabled));
    }
}
