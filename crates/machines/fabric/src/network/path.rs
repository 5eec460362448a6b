//! Paths across a network, and the choice between several.

/// The greatest number of links between switches on a path.
pub const MOST_LINKS: usize = 32;

/// The links between switches on the path from one host to another, in order, by their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    len: u8,
    links: [u32; MOST_LINKS],
}

impl Default for Path {
    fn default() -> Path {
        Path {
            len: 0,
            links: [0; MOST_LINKS],
        }
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.links() == other.links()
    }
}

impl Path {
    /// The links, in order.
    pub fn links(&self) -> &[u32] {
        &self.links[..usize::from(self.len)]
    }

    /// Appends a link. Panics for more than [`MOST_LINKS`]; a checked system has no such path.
    pub(crate) fn push(&mut self, link: u64) {
        self.links[usize::from(self.len)] = link as u32;
        self.len += 1;
    }

    /// This path, and another one that begins at its end. `None`: they are too long.
    pub fn then(mut self, other: &Path) -> Option<Path> {
        let end = usize::from(self.len) + other.links().len();
        let room = self.links.get_mut(usize::from(self.len)..end)?;
        room.copy_from_slice(other.links());
        self.len = end as u8;
        Some(self)
    }
}

impl FromIterator<u64> for Path {
    fn from_iter<I: IntoIterator<Item = u64>>(links: I) -> Path {
        let mut path = Path::default();
        links.into_iter().for_each(|link| path.push(link));
        path
    }
}

/// The choice between the shortest paths from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The path that the destination alone determines, as in tables of routes.
    ByDestination,
    /// The path with this number, modulo their count.
    Number(u32),
}

impl Choice {
    /// The number that selects among equal links on the way to a host.
    pub(crate) fn among(self, to: u64) -> u64 {
        match self {
            Choice::ByDestination => to,
            Choice::Number(number) => u64::from(number),
        }
    }
}
