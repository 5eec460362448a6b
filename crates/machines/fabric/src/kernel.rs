//! The network path through a host's kernel: the processor time of its steps, and its limits. IP
//! over InfiniBand (RFC 4391, RFC 4755) is the path of sockets on the machines of the catalogue.

use crate::components::{InvalidValue, part};
use crate::units::{Bytes, GbPerSec, Nanos};

part! {
    /// A kernel's network path on a host's processor. Copies run at the host's copy rate and occupy
    /// its memory.
    Kernel "kernel" {
        value system_call: Nanos, "Processor: a system call on a socket, without its data.";
        value segment_out: Nanos, "Processor: a segment or datagram on its way out, from TCP or UDP through IP to the driver.";
        value segment_in: Nanos, "Processor: a segment or datagram on its way in, from the driver through IP to TCP or UDP.";
        value page: Nanos, "Processor: allocating, mapping and releasing 4 KiB of a packet's buffer.";
        value checksum: GbPerSec, "Rate at which a processor sums up a payload.";
        value interrupt: Nanos, "Processor: an interrupt, until the driver polls for packets.";
        value coalesce: Nanos, "Time for which the HCA waits for further packets before it interrupts.";
        value wake: Nanos, "Processor: waking a process that waits in a system call.";
        value switch: Nanos, "Processor: switching to a process that was woken.";
        value idle_exit: Nanos, "Time that an idle core takes to run again.";
        value offload: bool, "True if the HCA computes the checksums of datagram mode, and cuts long TCP segments into packets (LSO).";
        value joins: bool, "True if the kernel joins TCP segments that arrive together (GRO).";
        value datagram_mtu: Bytes, "Largest IP packet of datagram mode; no more than a packet of the port holds.";
        value connected_mtu: Bytes, "Largest IP packet of connected mode.";
        value send_ring: u32, "Packets that wait for the HCA to send them.";
        value receive_ring: u32, "Receives posted for packets.";
        value window: Bytes, "Bytes of a TCP connection in flight, or not yet read.";
        value udp_buffer: Bytes, "Receive buffer of a UDP socket.";
    }
    check |kernel| {
        mtu(kernel.datagram_mtu, "datagram_mtu", 4092)?;
        mtu(kernel.connected_mtu, "connected_mtu", 65_520)?;
        ring(kernel.send_ring, "send_ring")?;
        ring(kernel.receive_ring, "receive_ring")?;
        let least = kernel.connected_mtu.max(kernel.datagram_mtu).0;
        let holds = |size: Bytes| (least..=64 << 20).contains(&size.0);
        InvalidValue::unless(holds(kernel.window), "window", || {
            format!("{} are not possible; valid are {least} B, the largest packet, to 64 MiB", kernel.window)
        })?;
        InvalidValue::unless(holds(kernel.udp_buffer), "udp_buffer", || {
            format!("{} are not possible; valid are {least} B, the largest packet, to 64 MiB", kernel.udp_buffer)
        })
    }
}

/// Checks the largest packet of IP over InfiniBand: an error for a size that it does not have.
fn mtu(size: Bytes, key: &'static str, most: u64) -> Result<(), InvalidValue> {
    // The smallest packet of a port has 256 bytes, 4 of which are the encapsulation header.
    InvalidValue::unless((252..=most).contains(&size.0), key, || {
        format!("{size} is not possible; valid are 252 B to {most} B")
    })
}

/// Checks the number of packets in a ring of the HCA.
fn ring(packets: u32, key: &'static str) -> Result<(), InvalidValue> {
    InvalidValue::unless((16..=8192).contains(&packets), key, || {
        format!("{packets} packets are not possible; valid are 16 to 8192")
    })
}
