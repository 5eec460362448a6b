//! The RDMA devices of this host, and the choice of those that a job uses.

use super::device::VerbsDevice;
use super::gid::{Gid, GidKind, choose_roce};
use super::internet;
use super::placement;
use super::port::{self, Context, Rate, Surroundings};
use super::sys::*;
use device::{Error, Placement, Result};
use secret::Secret;

/// One port of an RDMA device of this host, with its properties.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The name of the device.
    pub name: String,
    /// The number of the port.
    pub port: u8,
    /// True if the device has no other port.
    pub only_port: bool,
    /// The state of the link, as text.
    pub state: &'static str,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: &'static str,
    /// The signaling rate.
    pub rate: Rate,
    /// The largest payload of a packet, in bytes.
    pub mtu: usize,
    /// The LID, on InfiniBand; otherwise 0.
    pub lid: u16,
    /// The GID that connections use; `None`: the port has none.
    pub gid: Option<Gid>,
    /// The address that peers use, with the reason for its choice, as text.
    pub address: String,
    /// The kernel's description of the device.
    pub surroundings: Surroundings,
    /// The version of the device's firmware.
    pub firmware: String,
    /// The order in which the bytes of writes to this device become visible.
    pub placement: Placement,
    /// The reason for `placement`.
    pub why_placement: &'static str,
    /// The reason why the port cannot be used. `None`: it can be used.
    pub unusable: Option<String>,
}

impl Listed {
    /// The name of the port for users: `mlx5_0`, or `mlx4_0:2` if the device has several ports.
    pub fn words(&self) -> String {
        match self.only_port {
            true => self.name.clone(),
            false => format!("{}:{}", self.name, self.port),
        }
    }

    /// The card that holds the port: the PCI address without the function.
    pub fn card(&self) -> Option<&str> {
        let pci = self.surroundings.pci.as_deref()?;
        Some(pci.split_once('.').map_or(pci, |(card, _)| card))
    }

    /// True if the device is implemented in software.
    fn is_software(&self) -> bool {
        self.surroundings.driver.is_none()
    }

    /// True if both ports use the same network interface.
    fn lies_with(&self, other: &Listed) -> bool {
        let interface = &self.surroundings.interface;
        interface.is_some() && *interface == other.surroundings.interface
    }

    fn is_named(&self, wanted: &str) -> bool {
        match wanted.split_once(':') {
            Some((name, port)) => self.name == name && port.parse() == Ok(self.port),
            None => self.name == wanted,
        }
    }
}

/// Every port of every device of this host, in the order of names. Empty if there are no devices;
/// an error if there is no libibverbs.
pub fn list() -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for (name, context) in port::open_all()? {
        match context.and_then(|context| ports(&context)) {
            Ok(ports) => listed.extend(ports),
            Err(why) => listed.push(closed(name, why.to_string())),
        }
    }
    listed.sort_by_key(|one| (natural(&one.name), one.port));
    Ok(listed)
}

fn ports(context: &Context) -> Result<Vec<Listed>> {
    let attributes = context.attributes()?;
    let ports = 1..=attributes.phys_port_cnt;
    ports
        .map(|number| port(context, &attributes, number))
        .collect()
}

/// The present properties of a port of an open device.
pub(crate) fn port_of(context: &Context, number: u8) -> Result<Listed> {
    port(context, &context.attributes()?, number)
}

fn port(context: &Context, attributes: &ibv_device_attr, number: u8) -> Result<Listed> {
    // SAFETY: the string of the firmware's version ends with a zero.
    let firmware = unsafe { std::ffi::CStr::from_ptr(attributes.fw_ver.as_ptr()) };
    let port = context.port(number)?;
    let gids = context.gids(number)?;
    let ethernet = u32::from(port.link_layer) == IBV_LINK_LAYER_ETHERNET;
    let below = match context.is_iwarp() {
        true => gids.first().and_then(|gid| internet::below(gid.value)),
        false => None,
    };
    let (gid, address) = match ethernet {
        _ if context.is_iwarp() => of_iwarp(below.as_ref()),
        true => match choose_roce(&gids) {
            Some((gid, why)) => {
                let words = format!("GID {} {}: {why}", gid.index, gid.words());
                (Some(gid), words)
            }
            None => (None, "no GID".into()),
        },
        false => (
            gids.into_iter().min_by_key(|gid| gid.index),
            format!(
                "LID {}: within a subnet of InfiniBand it is enough",
                port.lid
            ),
        ),
    };
    let mut surroundings = port::surroundings(&context.name, number, gid.as_ref());
    if let Some((interface, _)) = below {
        surroundings.lies_on(Some(interface));
    }
    let (placement, why_placement) = placement::placement(surroundings.driver.as_deref());
    Ok(Listed {
        name: context.name.clone(),
        port: number,
        only_port: attributes.phys_port_cnt == 1,
        state: port::state_words(port.state),
        link_layer: if ethernet { "Ethernet" } else { "InfiniBand" },
        rate: Rate::of(port.active_width, port.active_speed),
        mtu: port::mtu_bytes(port.active_mtu),
        lid: port.lid,
        unusable: port::unusable(context, &port, gid.as_ref()),
        gid,
        address,
        surroundings,
        firmware: firmware.to_string_lossy().into_owned(),
        placement,
        why_placement,
    })
}

/// The GID and address of an iWARP port: its IPv4 address is used instead of a GID.
fn of_iwarp(below: Option<&(String, u128)>) -> (Option<Gid>, String) {
    let Some((interface, value)) = below else {
        return (None, "no IPv4 address".into());
    };
    let gid = Gid {
        index: 0,
        value: *value,
        kind: GidKind::Iwarp,
    };
    let words = format!("{}: iWARP, the IPv4 address of {interface}", gid.words());
    (Some(gid), words)
}

/// The entry of a device that could not be queried.
pub(crate) fn closed(name: String, why: String) -> Listed {
    let surroundings = port::surroundings(&name, 1, None);
    let (placement, why_placement) = placement::placement(surroundings.driver.as_deref());
    Listed {
        name,
        port: 1,
        only_port: true,
        state: "not known",
        link_layer: "not known",
        rate: Rate::of(0, 0),
        mtu: 0,
        lid: 0,
        gid: None,
        address: "not known".into(),
        surroundings,
        firmware: String::new(),
        placement,
        why_placement,
        unusable: Some(why),
    }
}

/// A sort key by which `mlx5_10` follows `mlx5_9`.
fn natural(name: &str) -> (String, u64) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (word, number) = name.split_at(name.len() - digits);
    (word.to_string(), number.parse().unwrap_or(0))
}

/// The ports that a job uses, and those that it does not.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The ports that the job uses, in the order of rails.
    pub used: Vec<Listed>,
    /// The ports that the job does not use, each with the reason.
    pub left: Vec<(Listed, String)>,
}

/// Chooses ports for a job. `wanted` is a comma-separated list of names, such as `rxe0` or
/// `mlx5_0:1`, in the order of rails. If it is empty, all usable ports are chosen, in the order of
/// `listed`, except:
/// - devices in software, where there is a device in hardware;
/// - a second device on the network interface of another;
/// - ports whose rate is less than an eighth of that of the fastest port.
pub fn choose(listed: Vec<Listed>, wanted: &str) -> Result<Choice> {
    if listed.is_empty() {
        return Err(Error::System(
            "this host has no RDMA device (`ls /sys/class/infiniband` shows none): are the modules ib_uverbs \
             and that of the device loaded, and is /dev/infiniband visible in this container?"
                .into(),
        ));
    }
    match wanted.is_empty() {
        true => all(listed),
        false => named(listed, wanted),
    }
}

fn named(listed: Vec<Listed>, wanted: &str) -> Result<Choice> {
    let mut used: Vec<Listed> = Vec::new();
    for name in wanted.split(',').map(str::trim) {
        let found: Vec<&Listed> = listed.iter().filter(|one| one.is_named(name)).collect();
        if found.is_empty() {
            let there: Vec<String> = listed.iter().map(Listed::words).collect();
            return Err(port::not_there(name, &there));
        }
        let can = |one: &&&Listed| one.unusable.is_none();
        if !found.iter().any(|one| can(&one)) {
            let why: Vec<String> = found.iter().map(|one| reason(one)).collect();
            return Err(Error::Invalid(why.join("; ")));
        }
        let new = found.iter().filter(can).map(|one| (**one).clone());
        for one in new {
            if !used
                .iter()
                .any(|two| (&two.name, two.port) == (&one.name, one.port))
            {
                used.push(one);
            }
        }
    }
    let chosen: Vec<String> = used.iter().map(Listed::words).collect();
    let left = listed
        .into_iter()
        .filter(|one| !chosen.contains(&one.words()));
    let left = left
        .map(|one| {
            let why = one
                .unusable
                .clone()
                .unwrap_or("others were asked for".into());
            (one, why)
        })
        .collect();
    Ok(Choice { used, left })
}

fn reason(one: &Listed) -> String {
    let why = one.unusable.as_deref().unwrap_or("it can be used");
    format!("{} cannot be used: {why}", one.words())
}

/// The greatest factor between the rate of the fastest port and that of a port in use.
const SLOWEST: f64 = 8.0;

/// The ports that a job uses by default: all usable ones, except those that [`choose`] names.
fn all(listed: Vec<Listed>) -> Result<Choice> {
    let usable: Vec<&Listed> = listed.iter().filter(|one| one.unusable.is_none()).collect();
    if usable.is_empty() {
        let why: Vec<String> = listed.iter().map(reason).collect();
        return Err(Error::System(format!(
            "no RDMA device of this host can be used: {}",
            why.join("; ")
        )));
    }
    let hardware = usable.iter().find(|one| !one.is_software());
    let hardware = hardware.map(|one| one.words());
    let counts = |one: &&&Listed| hardware.is_none() || !one.is_software();
    let fastest = usable.iter().filter(counts);
    let fastest = fastest.map(|one| one.rate.gbit()).fold(0.0, f64::max);
    let (mut used, mut left): (Vec<Listed>, _) = (Vec::new(), Vec::new());
    for one in listed {
        let why_not = match (&one.unusable, &hardware) {
            (Some(why), _) => Some(why.clone()),
            (None, Some(other)) if one.is_software() => Some(format!(
                "it is software, and {other} is a device in hardware"
            )),
            _ if SLOWEST * one.rate.gbit() < fastest => Some(format!(
                "its {} are less than an eighth of the fastest port's {fastest} Gbit/s",
                one.rate
            )),
            _ => used.iter().find(|other| one.lies_with(other)).map(|other| {
                let interface = one.surroundings.interface.as_deref().unwrap_or_default();
                format!("it lies on {interface}, as {} does", other.words())
            }),
        };
        match why_not {
            Some(why) => left.push((one, why)),
            None => used.push(one),
        }
    }
    Ok(Choice { used, left })
}

/// Opens the ports that [`choose`] selects, for the job with this secret.
pub fn open(wanted: &str, secret: &Secret) -> Result<Vec<VerbsDevice>> {
    let choice = choose(list()?, wanted)?;
    VerbsDevice::open_all(&choice.used, secret)
}

/// The only port with this name. An error if several ports have it.
pub fn named_port(name: &str) -> Result<Listed> {
    let mut choice = named(list()?, name)?;
    match (choice.used.pop(), &choice.used[..]) {
        (Some(one), []) => Ok(one),
        _ => Err(Error::Invalid(format!(
            "{name}: name one port of one device, as mlx5_0 or mlx4_0:2"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(name: &str, number: u8, speed: u8, unusable: Option<&str>) -> Listed {
        Listed {
            port: number,
            only_port: number == 1 && !name.starts_with("mlx4"),
            rate: Rate::of(2, speed),
            unusable: unusable.map(str::to_string),
            ..closed(name.into(), String::new())
        }
    }

    fn host() -> Vec<Listed> {
        vec![
            port("mlx4_0", 1, 16, Some("its link is down")),
            port("mlx4_0", 2, 16, None),
            port("mlx5_0", 1, 32, None),
            port("mlx5_1", 1, 32, Some("its link is down")),
            port("mlx5_2", 1, 32, None),
        ]
    }

    fn names(choice: &Choice) -> Vec<String> {
        choice.used.iter().map(Listed::words).collect()
    }

    #[test]
    fn all_that_are_up_are_used_and_the_rest_has_reasons() {
        let choice = choose(host(), "").unwrap();
        assert_eq!(names(&choice), ["mlx4_0:2", "mlx5_0", "mlx5_2"]);
        let why: Vec<&str> = choice.left.iter().map(|(_, why)| why.as_str()).collect();
        assert_eq!(why, ["its link is down"; 2]);
    }

    #[test]
    fn slow_ports_software_and_second_devices_of_an_interface_are_left_out() {
        let driven = |port: Listed, driver: &str, interface: &str| Listed {
            surroundings: Surroundings {
                driver: (!driver.is_empty()).then(|| driver.into()),
                interface: Some(interface.into()),
                ..Surroundings::default()
            },
            ..port
        };
        let soft = driven(port("rxe0", 1, 128, None), "", "eth0");
        let host = vec![
            driven(port("mlx5_0", 1, 32, None), "mlx5_core", "eth0"),
            driven(port("mlx5_1", 1, 1, None), "mlx5_core", "eth1"),
            driven(port("irdma0", 1, 32, None), "irdma", "eth0"),
            soft.clone(),
        ];
        let choice = choose(host, "").unwrap();
        assert_eq!(names(&choice), ["mlx5_0"]);
        let why: Vec<&str> = choice.left.iter().map(|(_, why)| why.as_str()).collect();
        let parts = ["an eighth", "lies on eth0, as mlx5_0", "it is software"];
        for (why, part) in why.iter().zip(parts) {
            assert!(why.contains(part), "{why}");
        }
        let second = driven(port("siw0", 1, 32, None), "", "eth0");
        assert_eq!(names(&choose(vec![soft, second], "").unwrap()), ["rxe0"]);
    }

    #[test]
    fn one_can_name_devices_and_ports() {
        assert_eq!(names(&choose(host(), "mlx4_0:2").unwrap()), ["mlx4_0:2"]);
        assert_eq!(names(&choose(host(), "mlx4_0").unwrap()), ["mlx4_0:2"]);
        let choice = choose(host(), "mlx5_2, mlx5_0,mlx5_2").unwrap();
        assert_eq!(names(&choice), ["mlx5_2", "mlx5_0"]);
    }

    #[test]
    fn a_name_that_is_not_there_or_down_is_an_error_that_helps() {
        let words = |wanted| choose(host(), wanted).unwrap_err().to_string();
        let text = words("rxe0");
        assert!(
            text.contains("rxe0") && text.contains("mlx4_0:1, mlx4_0:2, mlx5_0"),
            "{text}"
        );
        assert!(words("mlx5_1").contains("its link is down"));
        let text = choose(Vec::new(), "").unwrap_err().to_string();
        assert!(text.contains("no RDMA device"), "{text}");
    }

    #[test]
    fn ten_comes_after_nine() {
        assert!(natural("mlx5_10") > natural("mlx5_9"));
    }
}
