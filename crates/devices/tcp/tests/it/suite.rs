//! The suite of all devices.

use testdevice::device_suite;

use crate::makers::Tcp;

device_suite!(loopback, [Tcp::V4, Tcp::V6]);
