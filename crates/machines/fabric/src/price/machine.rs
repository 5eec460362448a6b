//! The price of a machine: the sum over its components.

use super::{Price, PriceGap};
use crate::network::tree::Tree;
use crate::system::System;

impl System {
    /// The most hosts that fat trees of the machine's switches connect.
    pub fn most_hosts(&self) -> u32 {
        let rails = (0..self.rails.count()).map(|number| self.rail(number));
        let rooms = rails.map(|rail| Tree::room(rail.switch.ports, rail.oversubscription.0));
        rooms
            .min()
            .map_or(u32::MAX, |room| room.try_into().unwrap_or(u32::MAX))
    }

    /// The price of `hosts` hosts of this machine with their HCAs, cables, and the switches of the
    /// smallest fat trees that connect them. Two ports of one card are one HCA.
    pub fn price(&self, hosts: u32) -> Result<Price, PriceGap> {
        if hosts > self.most_hosts() {
            return Err(PriceGap::Room(self.most_hosts()));
        }
        let mut items: Vec<(&'static str, Option<Price>, u64)> =
            vec![("host", self.host.price, u64::from(hosts))];
        for number in 0..self.rails.count() {
            let rail = self.rail(number);
            let on = |host: &u32| self.rails_of(*host).contains(&number);
            let hosts_on = (0..hosts).filter(on).count() as u64;
            let is_first_port = (0..number).all(|other| self.rail(other).card != rail.card);
            let tree = Tree::new(hosts.max(2), rail.switch.ports, rail.oversubscription.0);
            let switches = tree.switches();
            if is_first_port {
                items.push(("hca", rail.hca.price, hosts_on));
            }
            let cables = match switches {
                0 => 1,
                _ => hosts_on + tree.inner_cables(),
            };
            items.push(("cable", rail.cable.price, cables));
            if switches > 0 {
                items.push(("switch", rail.switch.price, switches));
            }
        }
        let mut missing: Vec<&'static str> = Vec::new();
        let mut sum: Option<Price> = None;
        for (part, price, count) in items.into_iter().filter(|(_, _, count)| *count > 0) {
            let Some(price) = price else {
                if !missing.contains(&part) {
                    missing.push(part);
                }
                continue;
            };
            let nothing = Price {
                hundredths: 0,
                ..price
            };
            sum = Some(sum.unwrap_or(nothing).plus(price, count)?);
        }
        match (missing.is_empty(), sum) {
            (true, Some(sum)) => Ok(sum),
            _ => Err(PriceGap::Missing(missing)),
        }
    }
}
