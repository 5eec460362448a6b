//! Remarks on disturbances during a measurement of real devices or sockets.

use conditions::{Conditions, Disturbances};

/// The conditions of a run, and the disturbances on this side.
pub(crate) type Met = (Conditions, Disturbances);

/// The lines below a table: a remark if this side did not have its core to itself, and the state of
/// the cores.
pub fn remarks(met: Option<&(Conditions, Disturbances)>) -> String {
    let Some((conditions, disturbances)) = met else {
        return String::new();
    };
    let remark = on(disturbances).map(|text| format!("Remark: {text}."));
    let lines = remark.into_iter().chain([conditions.line() + "."]);
    lines.map(|line| line + "\n").collect()
}

/// The remark about figures of a busy machine, if it was busy.
pub(super) fn on(disturbances: &Disturbances) -> Option<String> {
    let reasons = disturbances.reasons().join(", ");
    disturbances
        .are_severe()
        .then(|| format!("this end did not have its core to itself; seen meanwhile: {reasons}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_severe_disturbances_are_remarked() {
        let (conditions, _) = conditions::after(conditions::RunStart::now());
        let quiet = Disturbances::default();
        assert_eq!(remarks(None), "");
        assert!(remarks(Some(&(conditions.clone(), quiet))).starts_with("Cores: "));
        let stolen = Disturbances {
            stolen: 0.5,
            seconds: 1.0,
            processors: 2,
            ..quiet
        };
        let text = remarks(Some(&(conditions, stolen)));
        assert!(text.starts_with("Remark: this end"), "{text}");
        assert!(
            text.contains("the hypervisor took 50 % of the time"),
            "{text}"
        );
    }
}
