//! What is known of each kind of device and cannot be asked for.

use device::Placement;

/// Whether a device's writes become visible in the order of their addresses, and why we think so. `driver` is the name
/// of its kernel driver, `None` where it is no hardware.
///
/// No specification promises an order within a message: IBA 9.5 (o9-20) leaves it open. Where a ring may be polled in
/// memory rests on what makers say of their cards, so a device that is not known counts as one without order.
pub(crate) fn placement(driver: Option<&str>) -> (Placement, &'static str) {
    match driver {
        Some("mlx4_core" | "mlx5_core" | "ib_mthca") => (
            Placement::Ordered,
            "this maker's HCAs write a message's packets in order, and PCI Express keeps the order of writes that do not \
             ask for relaxed ordering, which ours do not",
        ),
        None => (
            Placement::Completion,
            "a device in software copies with the processor, which promises no order",
        ),
        Some(_) => (
            Placement::Completion,
            "nothing is known of the order in which this device writes",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_has_no_order() {
        assert_eq!(placement(Some("mlx5_core")).0, Placement::Ordered);
        for driver in [None, Some("irdma"), Some("bnxt_en"), Some("new")] {
            assert_eq!(placement(driver).0, Placement::Completion);
        }
    }
}
