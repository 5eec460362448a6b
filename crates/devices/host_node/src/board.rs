//! A directory in which ranks that are threads of one process find each other's cards: their hosts
//! and addresses.

use std::sync::{Arc, Mutex};

use device::Result;

use super::oob::Directory;

/// The published cards (hosts and addresses) of ranks that are threads of one process.
///
/// ```
/// use host_node::{Board, Directory};
///
/// let board = Board::new(2);
/// let (mut one, mut other) = (board.of(0), board.of(1));
/// assert_eq!(other.find(0)?, None);
/// one.publish(b"card")?;
/// assert_eq!(other.find(0)?.unwrap(), b"card");
/// # Ok::<(), device::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Board {
    cards: Arc<Mutex<Vec<Option<Vec<u8>>>>>,
}

impl Board {
    /// A board without cards, for `ranks` ranks.
    pub fn new(ranks: usize) -> Board {
        Board {
            cards: Arc::new(Mutex::new(vec![None; ranks])),
        }
    }

    /// The directory through which rank `rank` uses this board.
    pub fn of(&self, rank: usize) -> Box<dyn Directory> {
        let board = self.clone();
        Box::new(Place { board, rank })
    }
}

struct Place {
    board: Board,
    rank: usize,
}

impl Directory for Place {
    fn publish(&mut self, card: &[u8]) -> Result<()> {
        self.board.cards.lock().unwrap()[self.rank] = Some(card.to_vec());
        Ok(())
    }

    fn find(&mut self, peer: usize) -> Result<Option<Vec<u8>>> {
        Ok(self.board.cards.lock().unwrap()[peer].clone())
    }
}
