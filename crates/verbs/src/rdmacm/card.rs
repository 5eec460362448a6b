//! The private data of a call.

use device::Address;

/// A caller's address, and the address that it calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Card([[u8; 20]; 2]);

impl Card {
    pub(super) fn of(from: Address, to: Address) -> Card {
        Card([from, to].map(|address| {
            let mut bytes = [0; 20];
            bytes[..16].copy_from_slice(&address.port.to_be_bytes());
            bytes[16..].copy_from_slice(&address.qp.to_be_bytes());
            bytes
        }))
    }

    pub(super) fn read(self) -> (Address, Address) {
        let [from, to] = self.0.map(|bytes| {
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .fold(0, |all, byte| all << 8 | u128::from(*byte))
            };
            Address {
                port: number(&bytes[..16]),
                qp: number(&bytes[16..]) as u32,
            }
        });
        (from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_says_who_it_is_and_whom_it_calls() {
        let address = |secret: u128, qp| Address {
            port: secret << 64 | u128::from(std::net::Ipv4Addr::new(10, 77, 0, 1).to_ipv6_mapped()),
            qp,
        };
        let (from, to) = (address(5, 40_001), address(u64::MAX.into(), 2));
        assert_eq!(Card::of(from, to).read(), (from, to));
    }
}
