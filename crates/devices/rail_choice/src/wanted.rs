//! Parser of a list of devices in a setting: `mlx5_0:1,tcp:eth0`.

/// One item of a list of devices, or several consecutive RDMA devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// RDMA devices with these names, separated by commas. Empty: those that a job uses by default.
    Verbs(String),
    /// The IP interface with this name or address. `None`: those that a job uses by default.
    Tcp(Option<String>),
}

/// The devices that a comma-separated list names, in its order: `rdma` for the RDMA devices that a
/// job uses by default, `tcp` for the IP interfaces that it uses by default, `tcp:eth0` or
/// `tcp:10.0.0.1` for one interface. All other items name RDMA devices.
///
/// ```
/// use rail_choice::{Wanted, wanted};
///
/// let found = wanted("mlx5_0, mlx5_1:2,tcp:eth0");
/// let rdma = Wanted::Verbs("mlx5_0,mlx5_1:2".into());
/// assert_eq!(found, [rdma, Wanted::Tcp(Some("eth0".into()))]);
/// ```
pub fn wanted(list: &str) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    for word in list.split(',').map(str::trim) {
        let (kind, name) = word.split_once(':').unwrap_or((word, ""));
        match (kind, all.last_mut()) {
            ("tcp", _) => all.push(Wanted::Tcp((!name.is_empty()).then(|| name.into()))),
            ("rdma", _) if name.is_empty() => all.push(Wanted::Verbs(String::new())),
            (_, Some(Wanted::Verbs(names))) if !names.is_empty() => {
                names.push(',');
                names.push_str(word);
            }
            _ => all.push(Wanted::Verbs(word.into())),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_kinds_interfaces_and_rdma_devices() {
        let tcp = |name: &str| Wanted::Tcp(Some(name.into()));
        let verbs = |names: &str| Wanted::Verbs(names.into());
        for (list, found) in [
            ("", vec![verbs("")]),
            ("rdma", vec![verbs("")]),
            ("rdma,tcp", vec![verbs(""), Wanted::Tcp(None)]),
            ("rdma,rxe1", vec![verbs(""), verbs("rxe1")]),
            ("rxe1,rdma", vec![verbs("rxe1"), verbs("")]),
            ("rdma0", vec![verbs("rdma0")]),
            ("tcp", vec![Wanted::Tcp(None)]),
            ("tcp:", vec![Wanted::Tcp(None)]),
            ("tcp:fe80::1%eth0", vec![tcp("fe80::1%eth0")]),
            ("tcp:eth0,tcp:eth1", vec![tcp("eth0"), tcp("eth1")]),
            (
                "rxe0,tcp:eth0,rxe1, rxe2",
                vec![verbs("rxe0"), tcp("eth0"), verbs("rxe1,rxe2")],
            ),
            ("tcpx", vec![verbs("tcpx")]),
        ] {
            assert_eq!(wanted(list), found, "{list}");
        }
    }
}
