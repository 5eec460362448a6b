//! The pictures of the machines' networks on the page of a comparison.

use results::report::{Block, Section};

use crate::report::Comparison;

/// The section with a picture of each machine's network; `None` if no network is known.
pub(crate) fn section(comparison: &Comparison) -> Option<Section> {
    let machines = comparison.machines.iter();
    let pictures = machines.filter_map(|machine| machine.hardware.network.clone());
    let pictures: Vec<Block> = pictures.map(Block::Network).collect();
    if pictures.is_empty() {
        return None;
    }
    let text = "A schema of the first rail's network: one leaf switch or one group with its links, and the numbers of the others. The command \
                \"fishplate fabric explain NAME --route FROM:TO\" prints the switches between two hosts.";
    let text = Block::Text(text.into());
    Some(Section::new("Networks", [pictures, vec![text]].concat()))
}
