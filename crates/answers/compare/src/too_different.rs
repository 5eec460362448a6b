//! Replays that differ too much from their recordings to be of use.

use profile::Differences;

/// The reason why a replay differs too much from its recording to be of use; `None` if it does not.
pub(crate) fn too_different(found: &Differences) -> Option<String> {
    const MOST: f64 = 0.10;
    let is_invented = found.invented_s >= found.left_out_s;
    let how = if is_invented { "invented" } else { "left out" };
    (found.share > MOST).then(|| {
        format!(
            "the program decides by time: {}; {:.0} % of the recorded computing would be {how}, more than {:.0} %",
            found.reason(),
            found.share * 100.0,
            MOST * 100.0
        )
    })
}
