//! Smaller packets than a port could carry.

use super::device::VerbsDevice;
use super::port::mtu_bytes;
use device::{Error, Result};

impl VerbsDevice {
    /// Packets of queue pairs connected from now on carry at most so many bytes of payload: 256, 512, 1024, 2048 or 4096,
    /// and no more than the port does. Datagrams are as long as whoever sends them makes them.
    pub fn limit_mtu(&mut self, bytes: usize) -> Result<()> {
        let code = (1..=5).find(|code| mtu_bytes(*code) == bytes);
        match code {
            Some(code) if bytes <= self.attributes.mtu => {
                self.way.mtu = code;
                self.attributes.mtu = bytes;
                Ok(())
            }
            _ => Err(Error::Invalid(format!(
                "an MTU of {bytes} bytes: {} takes powers of two from 256 to {}",
                self.attributes.name, self.attributes.mtu
            ))),
        }
    }
}
