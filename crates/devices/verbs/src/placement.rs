//! The order in which devices write to memory, which no verb reports. It is inferred from the
//! driver.

use device::Placement;

/// The assumed placement of a device, and the reason. `driver`: the name of its kernel driver,
/// `None` for a software device.
///
/// No specification promises an order within a message: IBA 9.5 (o9-20) leaves it open. The polling
/// of rings in memory relies on the makers' statements about their cards; an unknown device is
/// assumed to have no order.
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
