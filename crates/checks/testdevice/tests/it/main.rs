//! The suite of all devices, run on the strict device; and the rules for the workspace's sources.

mod cables;
mod constants;
mod limits;
mod tidy;
mod words;

use device::{Placement, with_immediates};
use testdevice::device_suite;
use testdevice::ends::Wish;
use testdevice::strict::{self, Setup};
use testdevice::suite::makers::{Body, Maker, threads};

#[derive(Debug)]
struct Strict(Setup);

impl Strict {
    fn all() -> Vec<Strict> {
        let setup = |placement, delays, plain: bool| {
            Strict(Setup {
                placement,
                delays,
                immediates: !plain,
                ties_both: plain,
                inline: 128,
                ..Setup::default()
            })
        };
        vec![
            setup(Placement::Ordered, false, false),
            setup(Placement::Ordered, true, false),
            setup(Placement::Completion, true, false),
            setup(Placement::Completion, true, true),
        ]
    }
}

impl Maker for Strict {
    fn run(&self, wish: Wish, body: Body) {
        let nodes = strict::nodes(2, &self.0).into_iter();
        threads(
            nodes.map(|node| with_immediates(node)).collect(),
            &wish,
            &body,
        );
    }
}

device_suite!(strict_device, Strict::all());
