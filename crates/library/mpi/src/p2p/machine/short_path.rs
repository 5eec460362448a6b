//! The short path of sends: one comparison shows whether a message is one put.

/// For each peer, the lengths of the messages that are one put.
pub(super) struct ShortPaths {
    /// For each peer, messages shorter than this, in bytes, are one put at this moment.
    open: Box<[u32]>,
    /// The true bounds while those of `open` are 0, so that nothing takes the short path.
    hidden: Option<Box<[u32]>>,
}

impl ShortPaths {
    /// The short paths to peers. `whole`: for each peer, the length in bytes of the longest message
    /// that is sent eagerly in one packet.
    pub(super) fn new(whole: impl Iterator<Item = usize>) -> ShortPaths {
        ShortPaths {
            open: whole.map(bound_of).collect(),
            hidden: None,
        }
    }

    /// Adds the short paths to further peers. `whole`: see [`new`](ShortPaths::new).
    pub(super) fn add(&mut self, whole: impl Iterator<Item = usize>) {
        let paths = self.hidden.as_mut().unwrap_or(&mut self.open);
        let mut all = std::mem::take(paths).into_vec();
        all.extend(whole.map(bound_of));
        *paths = all.into();
        if let Some(hidden) = &self.hidden {
            self.open = vec![0; hidden.len()].into();
        }
    }

    /// The number of peers.
    pub(super) fn peers(&self) -> usize {
        self.open.len()
    }

    /// True if a message of `len` bytes to this peer takes the short path.
    #[inline(always)]
    pub(super) fn takes(&self, peer: usize, len: usize) -> bool {
        len < self.open[peer] as usize
    }

    /// Closes all short paths: [`takes_hidden`](ShortPaths::takes_hidden) shows which messages
    /// would take them.
    pub(super) fn hide(&mut self) {
        if self.hidden.is_none() {
            let none = vec![0; self.open.len()].into();
            self.hidden = Some(std::mem::replace(&mut self.open, none));
        }
    }

    /// True if a message of `len` bytes to this peer would take the short path, were that not
    /// hidden.
    pub(super) fn takes_hidden(&self, peer: usize, len: usize) -> bool {
        let hidden = self.hidden.as_deref();
        hidden.is_some_and(|bounds| len < bounds[peer] as usize)
    }

    /// The length in bytes below which messages to this peer are one put.
    pub(super) fn bound(&self, peer: usize) -> u32 {
        self.hidden.as_deref().unwrap_or(&self.open)[peer]
    }

    /// Sets the length in bytes below which messages to this peer are one put.
    pub(super) fn set_bound(&mut self, peer: usize, bound: u32) {
        self.hidden.as_deref_mut().unwrap_or(&mut self.open)[peer] = bound;
    }
}

/// The bound of a peer to which messages of at most `whole` bytes are sent eagerly in one packet.
fn bound_of(whole: usize) -> u32 {
    u32::try_from(whole).unwrap_or(u32::MAX).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_paths_are_hidden_as_the_others_are() {
        let mut paths = ShortPaths::new([64].into_iter());
        paths.add([8].into_iter());
        assert!(paths.takes(0, 64) && paths.takes(1, 8) && !paths.takes(1, 9));
        paths.hide();
        paths.add([2, 3].into_iter());
        assert_eq!(paths.peers(), 4);
        assert_eq!([0, 1, 2, 3].map(|peer| paths.bound(peer)), [65, 9, 3, 4]);
        assert!(!paths.takes(3, 0) && paths.takes_hidden(3, 3));
    }

    #[test]
    fn hidden_paths_are_kept_and_nothing_takes_them() {
        let mut paths = ShortPaths::new([64, 0].into_iter());
        assert!(paths.takes(0, 64) && !paths.takes(0, 65) && paths.takes(1, 0));
        assert!(!paths.takes_hidden(0, 64));
        paths.hide();
        assert!(!paths.takes(0, 0) && paths.takes_hidden(0, 64) && !paths.takes_hidden(0, 65));
        paths.set_bound(0, 0);
        paths.hide();
        assert!(!paths.takes(0, 0) && !paths.takes_hidden(0, 0) && paths.takes_hidden(1, 0));
        assert_eq!([0, 1].map(|peer| paths.bound(peer)), [0, 1]);
    }
}
