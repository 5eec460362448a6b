//! A scene: the machine that a job of ranks is played on, in bytes, as a launcher hands it to each rank.

use fabric::System;

use crate::{Faults, IntraHost, Outage};

/// What all ranks of a job in virtual time must agree on.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub system: System,
    /// The host of each rank, by its number.
    pub hosts: Vec<u32>,
    /// What all that looks random follows from.
    pub seed: u64,
    pub faults: Faults,
    pub intra_host: IntraHost,
    /// A record of what resources do is kept.
    pub traced: bool,
    pub compute: Compute,
}

/// How much virtual time the ranks' own computing takes, between the library's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compute {
    /// None.
    #[default]
    Left,
    /// So many thousandths of what it takes here.
    Measured(u64),
    /// What it takes here, and that is kept.
    Recorded,
    /// What was kept.
    Replayed,
}

/// Bytes that are no scene.
#[derive(Debug, PartialEq)]
pub struct Damaged(String);

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(
            f,
            "the scene that the launcher handed over is damaged: {}",
            self.0
        )
    }
}

impl std::error::Error for Damaged {}

impl Scene {
    /// So many ranks on a system, `per_host` on a host, filled one host after the other. The system gets as many hosts
    /// as that takes. An error says what does not fit.
    pub fn new(system: &System, ranks: usize, per_host: usize, seed: u64) -> Result<Scene, String> {
        let hosts: Vec<u32> = (0..ranks)
            .map(|rank| (rank / per_host.max(1)) as u32)
            .collect();
        let needed = hosts.last().map_or(1, |last| last + 1).max(2);
        let system = match system.nodes >= needed {
            true => *system,
            false => system.with_nodes(needed).map_err(|wrong| {
                format!(
                    "{ranks} ranks, {per_host} on a host, need {needed} hosts: {}",
                    wrong.why
                )
            })?,
        };
        Ok(Scene {
            system,
            hosts,
            seed,
            faults: Faults::default(),
            intra_host: IntraHost::default(),
            traced: false,
            compute: Compute::Left,
        })
    }

    pub fn encode(&self) -> Vec<u8> {
        let system = self.system.encode();
        let by_hca = u64::from(self.intra_host == IntraHost::Hca);
        let head = [
            self.seed,
            by_hca,
            self.hosts.len() as u64,
            system.len() as u64,
            self.traced.into(),
            self.compute.encode(),
        ];
        let words = head.into_iter().chain(words(&self.faults));
        let mut bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        bytes.extend(self.hosts.iter().flat_map(|host| host.to_le_bytes()));
        bytes.extend(system);
        bytes
    }

    /// What `encode` made. The bytes may come from anywhere.
    pub fn decode(bytes: &[u8]) -> Result<Scene, Damaged> {
        let short = || Damaged("it is too short".into());
        let mut rest = bytes;
        let mut word = || {
            let (first, others) = rest.split_first_chunk::<8>().ok_or_else(short)?;
            rest = others;
            Ok(u64::from_le_bytes(*first))
        };
        let [seed, by_hca, ranks, system, traced, compute] =
            [word()?, word()?, word()?, word()?, word()?, word()?];
        let mut planned = [0; FAULT_WORDS];
        for place in &mut planned {
            *place = word()?;
        }
        let placed = usize::try_from(ranks)
            .ok()
            .and_then(|ranks| ranks.checked_mul(4));
        let (hosts, rest) = placed
            .and_then(|placed| rest.split_at_checked(placed))
            .ok_or_else(short)?;
        if rest.len() as u64 != system {
            return Err(Damaged("its length is not what it says".into()));
        }
        let system = System::decode(rest).map_err(|why| Damaged(why.to_string()))?;
        let (hosts, _) = hosts.as_chunks::<4>();
        let hosts: Vec<u32> = hosts.iter().map(|host| u32::from_le_bytes(*host)).collect();
        match hosts.iter().find(|&&host| host >= system.nodes) {
            Some(host) => Err(Damaged(format!(
                "a rank is on host {host} of {}",
                system.nodes
            ))),
            None => Ok(Scene {
                system,
                hosts,
                seed,
                faults: faults(planned),
                intra_host: match by_hca {
                    0 => IntraHost::Memory,
                    _ => IntraHost::Hca,
                },
                traced: traced != 0,
                compute: Compute::decode(compute),
            }),
        }
    }
}

impl Compute {
    fn encode(self) -> u64 {
        match self {
            Compute::Left => 0,
            Compute::Recorded => 1,
            Compute::Replayed => 2,
            Compute::Measured(scale) => scale.saturating_add(3),
        }
    }

    fn decode(word: u64) -> Compute {
        match word {
            0 => Compute::Left,
            1 => Compute::Recorded,
            2 => Compute::Replayed,
            scale => Compute::Measured(scale - 3),
        }
    }
}

const FAULT_WORDS: usize = 20;

/// Faults as words; what may be absent has a word that says whether it is there.
fn words(faults: &Faults) -> [u64; FAULT_WORDS] {
    let outage = faults.outage.unwrap_or(Outage {
        host: 0,
        rail: 0,
        from: 0,
        until: 0,
    });
    let (slow, percent) = faults.slow.unwrap_or_default();
    [
        faults.loss.into(),
        faults.late.into(),
        faults.latest,
        faults.scatter.is_some().into(),
        faults.scatter.unwrap_or_default(),
        faults.breaks.into(),
        faults.completions.into(),
        faults.outage.is_some().into(),
        outage.host.into(),
        outage.rail.into(),
        outage.from,
        outage.until,
        faults.slow.is_some().into(),
        slow.into(),
        percent.into(),
        faults.timeout,
        faults.retries.into(),
        faults.rnr_wait,
        faults.rnr_retries.into(),
        faults.no_immediates.into(),
    ]
}

/// The other way round. Numbers that are too large for their place lose their upper half.
fn faults(words: [u64; FAULT_WORDS]) -> Faults {
    let short = |at: usize| words[at] as u32;
    Faults {
        loss: short(0),
        late: short(1),
        latest: words[2],
        scatter: (words[3] != 0).then_some(words[4]),
        breaks: short(5),
        completions: short(6),
        outage: (words[7] != 0).then_some(Outage {
            host: short(8),
            rail: short(9),
            from: words[10],
            until: words[11],
        }),
        slow: (words[12] != 0).then_some((short(13), short(14))),
        timeout: words[15],
        retries: short(16),
        rnr_wait: words[17],
        rnr_retries: short(18),
        no_immediates: words[19] != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::catalogue::Catalogue;

    #[test]
    fn a_scene_comes_back_as_it_was_and_nothing_else_does() {
        let system = Catalogue::builtin().system("qdr").unwrap();
        let mut scene = Scene::new(&system, 10, 3, 77).unwrap();
        scene.intra_host = IntraHost::Hca;
        scene.faults.scatter = Some(7);
        scene.faults.slow = Some((1, 300));
        scene.faults.no_immediates = true;
        scene.traced = true;
        scene.compute = Compute::Measured(1500);
        scene.faults.outage = Some(Outage {
            host: 1,
            rail: 2,
            from: 3,
            until: 4,
        });
        assert_eq!(scene.hosts, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
        let bytes = scene.encode();
        assert_eq!(Scene::decode(&bytes), Ok(scene));
        for len in 0..bytes.len() {
            assert!(Scene::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }
}
