//! The test suite of all devices, run on RDMA devices of this host. `loopback` connects the first
//! device with itself, `pair` with the device that FISHPLATE_TEST_PEER names, which must be
//! reachable from it.

use testdevice::device_suite;

use crate::makers::Verbs;

device_suite!(
    pair,
    [Verbs { peer: true }],
    #[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"]
);
device_suite!(
    loopback,
    [Verbs { peer: false }],
    #[ignore = "needs an RDMA device: `make test-verbs` runs it, in a machine that has one"]
);
