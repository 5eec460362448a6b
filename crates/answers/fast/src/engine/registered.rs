//! The buffers of a rank that are registered with its HCAs.
//!
//! A library keeps registrations for later messages, so one costs time if more buffers of its size
//! than ever before are in use at once: the rule of the modelled machine.

/// The registrations of buffers of one size.
#[derive(Debug)]
struct Size {
    pages: u64,
    /// The number of those in use, and the greatest number so far.
    used: u32,
    most: u32,
}

/// The registrations of a rank. Few sizes are in use, so a search is short.
#[derive(Debug, Default)]
pub(super) struct Registered(Vec<Size>);

impl Registered {
    /// Takes a registration of so many pages into use. True: it costs time.
    pub(super) fn take(&mut self, pages: u64) -> bool {
        let known = self.0.iter().position(|size| size.pages == pages);
        let at = known.unwrap_or_else(|| {
            let (used, most) = (0, 0);
            self.0.push(Size { pages, used, most });
            self.0.len() - 1
        });
        let size = &mut self.0[at];
        size.used += 1;
        let more = size.used > size.most;
        size.most = size.most.max(size.used);
        more
    }

    /// Gives back a registration, if there is one in use.
    pub(super) fn give_back(&mut self, pages: u64) {
        let mut sizes = self.0.iter_mut();
        if let Some(size) = sizes.find(|size| size.pages == pages) {
            size.used = size.used.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_costs_time_if_none_is_free() {
        let mut all = Registered::default();
        assert_eq!([4, 4, 16].map(|pages| all.take(pages)), [true; 3]);
        all.give_back(4);
        assert!(!all.take(4) && all.take(4));
        all.give_back(16);
        assert!(!all.take(16) && all.take(16));
    }
}
