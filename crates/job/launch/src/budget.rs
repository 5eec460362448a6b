//! The limit on the work of one pass of the event loop, so that no flood of messages delays signals
//! and deadlines.

/// The number of bytes that one pass of the event loop may handle.
const TURN: usize = 64 << 10;

/// The cost of one frame, packet or line of a packet, in bytes, in addition to its length.
const EACH: usize = 64;

/// The work that is left for this pass of the event loop, in bytes.
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Budget::of(TURN)
    }
}

impl Budget {
    pub(crate) fn of(bytes: usize) -> Self {
        Budget(bytes)
    }

    /// Subtracts the cost of a frame of `bytes` bytes.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_sub(bytes + EACH);
    }

    /// Subtracts the cost of a packet of lines.
    pub(crate) fn spend_lines(&mut self, packet: &str) {
        let ends = packet.bytes().filter(|&byte| byte == b'\n').count();
        self.spend(packet.len() + EACH * ends);
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of such packets that one pass takes.
    fn packets_of_a_pass(packet: &str) -> usize {
        let mut budget = Budget::default();
        let mut taken = 0;
        while !budget.is_spent() {
            budget.spend_lines(packet);
            taken += 1;
        }
        taken
    }

    #[test]
    fn empty_lines_cost_more_than_their_bytes() {
        assert_eq!(packets_of_a_pass(&"x".repeat(16_000)), 5);
        assert_eq!(packets_of_a_pass(&"\n".repeat(16_000)), 1);
        assert!(packets_of_a_pass("fence\n") > 400);
    }
}
