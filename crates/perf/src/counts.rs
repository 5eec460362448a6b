//! What both ends have asked of their devices for one size, and what that was on the link.

use std::ops::AddAssign;

use anyhow::{Context, Result};
use model::Traffic;
use serde::{Deserialize, Serialize};

use crate::end::End;

/// What one end, or both, have posted and taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// Posted to send queues.
    pub work_requests: u64,
    /// Posted to receive queues.
    pub receives: u64,
    /// Taken, of both.
    pub completions: u64,
}

impl AddAssign for Asked {
    fn add_assign(&mut self, other: Asked) {
        self.work_requests += other.work_requests;
        self.receives += other.receives;
        self.completions += other.completions;
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub asked: Asked,
    /// Only a model knows it.
    pub traffic: Option<Traffic>,
}

/// What an end had counted when a size began.
pub struct Before {
    asked: Asked,
    traffic: Option<Traffic>,
}

impl Before {
    pub fn new(end: &mut End) -> Before {
        Before {
            asked: end.asked,
            traffic: end.place.traffic(),
        }
    }

    /// What both ends have done since; the last acknowledgements arrive while they tell each other.
    pub fn since(self, end: &mut End) -> Result<Counts> {
        let own = Asked {
            work_requests: end.asked.work_requests - self.asked.work_requests,
            receives: end.asked.receives - self.asked.receives,
            completions: end.asked.completions - self.asked.completions,
        };
        let theirs = end.place.swap(&serde_json::to_string(&own)?)?;
        let mut asked: Asked = serde_json::from_str(&theirs)
            .context("what the other end has asked for makes no sense")?;
        asked += own;
        let now = end.place.traffic();
        let traffic = now.zip(self.traffic).map(|(now, before)| Traffic {
            packets: now.packets - before.packets,
            acknowledgements: now.acknowledgements - before.acknowledgements,
            bytes: now.bytes - before.bytes,
        });
        Ok(Counts { asked, traffic })
    }
}
