//! The families under which lists group the systems of the catalogue.

use crate::quantity::{Quantity, Raw};

/// A family of systems: the heading under which lists show them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Systems with one InfiniBand port on each host, one for each generation of links.
    InfiniBand,
    /// Systems with several InfiniBand ports on each host.
    Rails,
    /// Systems with InfiniBand in virtual machines.
    Virtual,
    /// Systems with other networks for clusters: Omni-Path, Slingshot, Aries.
    Cluster,
    /// Systems with RoCEv2 over Ethernet.
    Roce,
    /// Systems with TCP over Ethernet.
    Tcp,
    /// Instances of cloud providers without InfiniBand.
    Cloud,
    /// Systems on which a publication measured.
    Testbed,
}

impl Family {
    /// All families of systems, in the order in which lists show them.
    pub const ALL: [Family; 8] = [
        Family::InfiniBand,
        Family::Rails,
        Family::Virtual,
        Family::Cluster,
        Family::Roce,
        Family::Tcp,
        Family::Cloud,
        Family::Testbed,
    ];

    /// The name of the family in catalogue files.
    pub fn name(self) -> &'static str {
        [
            "infiniband",
            "rails",
            "virtual",
            "cluster",
            "roce",
            "tcp",
            "cloud",
            "testbed",
        ][self as usize]
    }

    /// The name of the family in lists.
    pub fn title(self) -> &'static str {
        [
            "InfiniBand",
            "InfiniBand, several ports of a host",
            "InfiniBand in virtual machines",
            "Omni-Path, Slingshot and Aries",
            "Ethernet with RoCEv2",
            "Ethernet with TCP",
            "Instances of cloud providers",
            "Machines of publications",
        ][self as usize]
    }
}

impl Quantity for Option<Family> {
    const VALID: &'static str = "\"none\", \"infiniband\", \"rails\", \"virtual\", \"cluster\", \"roce\", \"tcp\", \"cloud\" or \"testbed\"";

    fn read(raw: &Raw) -> Option<Self> {
        let Raw::Text(text) = raw else { return None };
        let known = Family::ALL.into_iter().find(|family| family.name() == text);
        match text == "none" {
            true => Some(None),
            false => known.map(Some),
        }
    }
    fn show(&self) -> String {
        self.map_or("none", Family::name).to_owned()
    }
    fn to_word(&self) -> u64 {
        self.map_or(u64::MAX, |family| family as u64)
    }
    fn from_word(word: u64) -> Option<Self> {
        if word == u64::MAX {
            return Some(None);
        }
        let family = Family::ALL.get(usize::try_from(word).ok()?);
        family.map(|family| Some(*family))
    }
}
