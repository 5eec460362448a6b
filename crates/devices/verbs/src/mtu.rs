//! Limiting the payload of packets to less than the port's MTU.

use super::device::VerbsDevice;
use super::port::mtu_bytes;
use device::{Error, Result};

impl VerbsDevice {
    /// Limits the payload of packets to `bytes` bytes (256, 512, 1024, 2048 or 4096, and at most
    /// the port's MTU), for queue pairs connected from now on. The length of datagrams is not
    /// limited.
    pub fn limit_mtu(&mut self, bytes: usize) -> Result<()> {
        let code = (1..=5).find(|code| mtu_bytes(*code) == bytes);
        match code {
            Some(code) if bytes <= self.attributes.mtu => {
                self.path.mtu = code;
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
