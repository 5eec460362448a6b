//! An open device, and the properties of its ports.

use std::ffi::CStr;
use std::mem::{MaybeUninit, zeroed};
use std::path::{Path, PathBuf};

use super::gid::{Gid, GidKind};
use super::internet;
use super::library::{Library, check, library, refused};
use super::sys::*;
use device::{Error, Result};

/// An RDMA device of this host that is open.
pub(crate) struct Context {
    pub library: &'static Library,
    pub raw: *mut ibv_context,
    pub name: String,
    pub transport: ibv_transport_type,
}

// SAFETY: libibverbs may be called from any thread; only the owner of the context uses it.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the device is open, and all its objects have been destroyed.
        unsafe { (self.library.close_device)(self.raw) };
    }
}

/// The devices of this host, each with its name, and opened or with the reason why it cannot be
/// opened.
pub(crate) fn open_all() -> Result<Vec<(String, Result<Context>)>> {
    let library = library()?;
    let mut count = 0;
    // SAFETY: memory for the count.
    let list = unsafe { (library.get_device_list)(&mut count) };
    if list.is_null() {
        return match std::io::Error::last_os_error().raw_os_error() {
            // The kernel has no RDMA, or its modules are not loaded.
            Some(libc::ENOSYS) => Ok(Vec::new()),
            _ => Err(refused("libibverbs", "listing the RDMA devices")),
        };
    }
    let open = |at| {
        // SAFETY: the list has `count` devices, which stay until it is freed.
        let device = unsafe { *list.add(at) };
        // SAFETY: as above; the name ends with a zero.
        let (name, transport) = unsafe {
            (
                CStr::from_ptr((*device).name.as_ptr()),
                (*device).transport_type,
            )
        };
        let name = name.to_string_lossy().into_owned();
        // SAFETY: as above.
        let raw = unsafe { (library.open_device)(device) };
        let context = match raw.is_null() {
            true => Err(refused(
                &name,
                "opening it (may this user read and write /dev/infiniband/uverbs*?)",
            )),
            false => Ok(Context {
                library,
                raw,
                name: name.clone(),
                transport,
            }),
        };
        (name, context)
    };
    let all = (0..count.max(0) as usize).map(open).collect();
    // SAFETY: the list is ours, and contexts do not depend on it.
    unsafe { (library.free_device_list)(list) };
    Ok(all)
}

impl Context {
    pub(crate) fn attributes(&self) -> Result<ibv_device_attr> {
        let mut attributes = MaybeUninit::zeroed();
        // SAFETY: an open device, and memory for the result, for which zero is valid, too.
        let answer = unsafe { (self.library.query_device)(self.raw, attributes.as_mut_ptr()) };
        check(&self.name, "querying its attributes", answer)?;
        // SAFETY: zero was valid before the call.
        Ok(unsafe { attributes.assume_init() })
    }

    pub(crate) fn port(&self, port: u8) -> Result<ibv_port_attr> {
        // SAFETY: a structure of integers, for which zero is valid.
        let mut attributes: ibv_port_attr = unsafe { zeroed() };
        // SAFETY: an open device, and memory for the result.
        let answer = unsafe { (self.library.query_port)(self.raw, port, &mut attributes) };
        check(&self.name, &format!("querying port {port}"), answer)?;
        Ok(attributes)
    }

    /// The GIDs of a port.
    pub(crate) fn gids(&self, port: u8) -> Result<Vec<Gid>> {
        // SAFETY: a structure of integers.
        let mut table: Vec<ibv_gid_entry> = vec![unsafe { zeroed() }; 1024];
        // SAFETY: memory for that number of entries of this size.
        let count = unsafe {
            (self.library.query_gid_table)(
                self.raw,
                table.as_mut_ptr(),
                table.len(),
                0,
                size_of::<ibv_gid_entry>(),
            )
        };
        if count < 0 {
            check(
                &self.name,
                "querying its GIDs",
                i32::try_from(-count).unwrap_or(-1),
            )?;
        }
        let ours = table[..count as usize].iter();
        let ours = ours.filter(|entry| entry.port_num == u32::from(port));
        Ok(ours
            .map(|entry| Gid {
                index: entry.gid_index,
                // SAFETY: every value of these bytes is valid.
                value: u128::from_be_bytes(unsafe { entry.gid.raw }),
                kind: match entry.gid_type {
                    IBV_GID_TYPE_IB => GidKind::InfiniBand,
                    IBV_GID_TYPE_ROCE_V1 => GidKind::RoceV1,
                    _ => GidKind::RoceV2,
                },
            })
            .collect())
    }

    pub(crate) fn is_iwarp(&self) -> bool {
        self.transport == IBV_TRANSPORT_IWARP
    }

    pub(crate) fn alloc_pd(&self) -> Result<*mut ibv_pd> {
        // SAFETY: an open device.
        let pd = unsafe { (self.library.alloc_pd)(self.raw) };
        self.made(pd, "creating a protection domain")
    }

    /// The pointer that a function of the library returned; if it is null, the error of the action
    /// `what`.
    pub(crate) fn made<T>(&self, made: *mut T, what: &str) -> Result<*mut T> {
        match made.is_null() {
            true => Err(refused(&self.name, what)),
            false => Ok(made),
        }
    }
}

/// Properties of a device that the kernel shows in `/sys`.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The NUMA node of the device.
    pub numa: Option<u32>,
    /// The device's address on the PCI bus, such as `0000:3b:00.0`.
    pub pci: Option<String>,
    /// The name of the device's kernel driver. `None`: a software device.
    pub driver: Option<String>,
    /// The network interface of the port, for RoCE and iWARP.
    pub interface: Option<String>,
    /// The speed of the port's network interface, in Mbit/s.
    pub interface_mbit: Option<u32>,
    /// The length of the network prefix of the port's IP address, out of 128 bits.
    pub prefix_bits: Option<u8>,
    /// The bandwidth of the device's slot in one direction, in bytes per second.
    pub slot_bytes_per_s: Option<u64>,
}

pub(crate) fn surroundings(device: &str, port: u8, gid: Option<&Gid>) -> Surroundings {
    let folder = PathBuf::from("/sys/class/infiniband").join(device);
    let bus = folder.join("device");
    let numa = read(&bus.join("numa_node")).and_then(|node| node.parse().ok());
    let index = gid.map_or(0, |gid| gid.index);
    let interface = read(&folder.join(format!("ports/{port}/gid_attrs/ndevs/{index}")));
    let mut found = Surroundings {
        numa,
        pci: target(&bus),
        driver: target(&bus.join("driver")),
        prefix_bits: gid.and_then(|gid| internet::prefix_bits(gid.value)),
        slot_bytes_per_s: read(&bus.join("current_link_speed")).and_then(|speed| {
            let lanes = read(&bus.join("current_link_width"))?;
            slot(&speed, &lanes)
        }),
        ..Surroundings::default()
    };
    found.lies_on(interface);
    found
}

impl Surroundings {
    /// Records the port's network interface, and the speed of that interface.
    pub(crate) fn lies_on(&mut self, interface: Option<String>) {
        let speed = |name: &String| read(&interface_folder(name).join("speed"))?.parse().ok();
        self.interface_mbit = interface.as_ref().and_then(speed).filter(|mbit| *mbit > 0);
        self.interface = interface;
    }
}

fn interface_folder(name: &str) -> PathBuf {
    PathBuf::from("/sys/class/net").join(name)
}

/// True if the network interface is administratively down.
pub(crate) fn is_taken_down(interface: &str) -> bool {
    let flags = read(&interface_folder(interface).join("flags"));
    let flags =
        flags.and_then(|flags| u32::from_str_radix(flags.trim_start_matches("0x"), 16).ok());
    flags.is_some_and(|flags| flags & libc::IFF_UP as u32 == 0)
}

fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// The last component of a symbolic link's target.
fn target(link: &Path) -> Option<String> {
    let path = std::fs::canonicalize(link).ok()?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// The bandwidth of a slot in bytes per second, from the kernel's text for its speed, such as `8.0
/// GT/s PCIe`, and from its lanes.
pub(super) fn slot(speed: &str, lanes: &str) -> Option<u64> {
    let transfers: f64 = speed.split_whitespace().next()?.parse().ok()?;
    let lanes: u32 = lanes.parse().ok()?;
    let coding = match transfers {
        ..=5.0 => 8.0 / 10.0,
        ..=32.0 => 128.0 / 130.0,
        _ => 242.0 / 256.0,
    };
    let bytes = transfers * 1e9 / 8.0 * coding * f64::from(lanes);
    (bytes > 0.0).then_some(bytes as u64)
}

/// The payload of a packet for an `ibv_mtu`, in bytes.
pub(crate) fn mtu_bytes(mtu: ibv_mtu) -> usize {
    128 << mtu.clamp(1, 5)
}

pub(crate) fn state_words(state: ibv_port_state) -> &'static str {
    match state {
        IBV_PORT_DOWN => "down",
        IBV_PORT_INIT => "initializing",
        IBV_PORT_ARMED => "armed",
        IBV_PORT_ACTIVE => "active",
        IBV_PORT_ACTIVE_DEFER => "active, link failing",
        _ => "no state",
    }
}

/// The reason why a port cannot be used. `None`: it can be used.
pub(crate) fn unusable(
    context: &Context,
    port: &ibv_port_attr,
    gid: Option<&Gid>,
) -> Option<String> {
    if context.transport != IBV_TRANSPORT_IB && !context.is_iwarp() {
        return Some("it speaks neither InfiniBand, RoCE nor iWARP".into());
    }
    if port.state != IBV_PORT_ACTIVE {
        let advice = match (port.state, u32::from(port.link_layer)) {
            (IBV_PORT_INIT, IBV_LINK_LAYER_INFINIBAND) => ": does a subnet manager run?",
            (IBV_PORT_DOWN, IBV_LINK_LAYER_ETHERNET) => {
                ": cable, switch port, `ip link set ... up`?"
            }
            (IBV_PORT_DOWN, _) => ": cable, switch port?",
            _ => "",
        };
        return Some(format!("its link is {}{advice}", state_words(port.state)));
    }
    let ethernet = u32::from(port.link_layer) == IBV_LINK_LAYER_ETHERNET;
    match (ethernet, gid) {
        (true, None) if context.is_iwarp() => {
            Some("its network interface has no IPv4 address".into())
        }
        (true, None) => Some("it has no GID: give its network interface an address".into()),
        (true, Some(gid)) if gid.index > u32::from(u8::MAX) => Some(format!(
            "its GID has index {}, which no request can name",
            gid.index
        )),
        (false, _) if port.lid == 0 => Some("it has no LID: does a subnet manager run?".into()),
        _ => None,
    }
}

/// The signaling rate of a link: its lanes times the rate of one lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// The number of lanes of the link.
    pub lanes: u32,
    /// The rate of one lane of the link, in Gbit/s.
    pub gbit_per_second: f64,
    /// InfiniBand's name for the rate, such as `EDR`.
    pub speed: &'static str,
}

impl Rate {
    /// The rate for a port's `active_width` and `active_speed` (IBA 14.2.5.6).
    pub fn of(width: u8, speed: u8) -> Rate {
        let lanes = match width {
            1 => 1,
            2 => 4,
            4 => 8,
            8 => 12,
            16 => 2,
            _ => 0,
        };
        let (gbit_per_second, speed) = match speed {
            1 => (2.5, "SDR"),
            2 => (5.0, "DDR"),
            4 => (10.0, "QDR"),
            8 => (10.0, "FDR10"),
            16 => (14.0, "FDR"),
            32 => (25.0, "EDR"),
            64 => (50.0, "HDR"),
            128 => (100.0, "NDR"),
            _ => (0.0, "of unknown speed"),
        };
        Rate {
            lanes,
            gbit_per_second,
            speed,
        }
    }

    /// The rate of the link, in Gbit/s.
    pub fn gbit(self) -> f64 {
        f64::from(self.lanes) * self.gbit_per_second
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} Gbit/s ({}X {})", self.gbit(), self.lanes, self.speed)
    }
}

/// The error for a device that does not exist, with the names of those that exist.
pub(crate) fn not_there(wanted: &str, there: &[String]) -> Error {
    let there = match there.is_empty() {
        true => "there is none".into(),
        false => format!("there are {}", there.join(", ")),
    };
    Error::Invalid(format!("there is no RDMA device {wanted}; {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_that_the_kernel_shows() {
        assert_eq!(Rate::of(2, 32).to_string(), "100 Gbit/s (4X EDR)");
        assert_eq!(Rate::of(1, 8).to_string(), "10 Gbit/s (1X FDR10)");
        assert_eq!(Rate::of(16, 64).gbit(), 100.0);
        assert_eq!(Rate::of(2, 4).gbit(), 40.0);
    }

    #[test]
    fn an_mtu_is_a_power_of_two() {
        assert_eq!((mtu_bytes(1), mtu_bytes(5)), (256, 4096));
    }

    #[test]
    fn slots_carry_what_their_generation_and_lanes_say() {
        assert_eq!(slot("5.0 GT/s PCIe", "8"), Some(4_000_000_000));
        assert_eq!(slot("8.0 GT/s PCIe", "16"), Some(15_753_846_153));
        assert_eq!(slot("Unknown", "16"), None);
        assert_eq!(slot("8.0 GT/s PCIe", "0"), None);
    }
}
