//! The suite of all devices, on the modelled device.

use model::Faults;
use testdevice::device_suite;
use testdevice::suite::makers::{Body, Maker, rank};

use crate::common::{Wish, play, system};

#[derive(Debug)]
pub(crate) struct Model;

impl Maker for Model {
    fn run(&self, wish: Wish, body: Body) {
        play(
            &system("qdr"),
            &[0, 1],
            Faults::default(),
            1,
            move |mut node, number| {
                rank(&mut node, number as usize, &wish, &body);
            },
        );
    }
}

device_suite!(modelled_device, [Model]);
