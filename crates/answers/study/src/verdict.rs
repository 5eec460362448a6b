//! The verdicts on the statements of a published document, by the results of the experiments that
//! repeat them.

use results::stats::round_to;
use serde::Serialize;

use crate::check::{Check, Evidence, Figure, Finding};
use crate::document::{Claim, Document, Kind, Role};

/// The verdict on a published statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// All checks of the statement are true.
    Holds,
    /// A check of the statement is false.
    Differs,
    /// Another statement, or physics, contradicts the statement.
    Contradicted,
    /// The statement is an input of the experiments, so they cannot confirm it.
    Setting,
    /// No experiment of the study repeats the statement.
    NotModelled,
}

impl Verdict {
    pub(crate) const ALL: [Verdict; 5] = [
        Verdict::Holds,
        Verdict::Differs,
        Verdict::Contradicted,
        Verdict::Setting,
        Verdict::NotModelled,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::Contradicted => "contradicted",
            Verdict::Setting => "setting",
            Verdict::NotModelled => "not modelled",
        }
    }
}

/// A statement with its verdict.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Judged<'a> {
    pub(crate) claim: &'a str,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    pub(crate) verdict: Verdict,
    #[serde(flatten)]
    pub(crate) figure: Option<Compared>,
    /// The measured values that decide on the statement, or the reason why there are none.
    pub(crate) measured: String,
    /// True if the statement's checks hold; also set for a contradicted statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holds: Option<bool>,
    /// The result of the checks with the other interpretation of a machine; `None` if there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) other_reading: Option<Finding>,
    #[serde(skip)]
    pub(crate) about: &'a str,
    /// The id of the other statement whose figure this statement repeats, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repeats: Option<&'a str>,
    /// True if no model of this kind can ever repeat the statement.
    #[serde(skip)]
    pub(crate) is_beyond: bool,
}

/// A published figure and the predicted one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Compared {
    pub(crate) published: f64,
    pub(crate) predicted: f64,
    pub(crate) unit: String,
    pub(crate) error_percent: f64,
}

impl From<&Figure> for Compared {
    fn from(figure: &Figure) -> Compared {
        // Papers have about this precision. Whole numbers stay as they are.
        let predicted = match figure.predicted.fract() == 0.0 {
            true => figure.predicted,
            false => round_to(figure.predicted, 4),
        };
        Compared {
            published: figure.published,
            predicted,
            unit: figure.unit.clone(),
            error_percent: (figure.error() * 1000.0).round() / 10.0,
        }
    }
}

/// The verdicts on all statements of a document.
pub(crate) fn judge<'a>(document: &'a Document, evidence: &Evidence) -> Vec<Judged<'a>> {
    let claims = document.claims.iter();
    claims
        .map(|claim| judged(document, claim, evidence))
        .collect()
}

fn judged<'a>(document: &Document, claim: &'a Claim, evidence: &Evidence) -> Judged<'a> {
    let is_checked = !claim.checks.is_empty();
    let mut measures = claim.checks.iter().flat_map(Check::measures);
    let missing = measures.find_map(|of| evidence.missing.get(of));
    let missing = missing.filter(|_| claim.contradicts.is_none());
    let is_checked = is_checked && missing.is_none();
    let found = is_checked.then(|| all_of(claim.checks.iter(), evidence));
    let (verdict, measured) = match missing {
        Some(why) => (Verdict::NotModelled, why.clone()),
        None => verdict(claim, found.as_ref()),
    };
    let figure = found.as_ref().and_then(|found| found.figure.as_ref());
    Judged {
        claim: &claim.id,
        kind: claim.kind,
        role: claim.role,
        verdict,
        figure: figure.map(Compared::from),
        measured,
        holds: found.as_ref().map(|found| found.holds),
        other_reading: other_reading(document, claim, evidence),
        about: &claim.about,
        repeats: claim.repeats.as_deref(),
        is_beyond: claim.beyond.is_some(),
    }
}

/// The finding with the other interpretation of a machine, if the statement is about that machine.
fn other_reading(document: &Document, claim: &Claim, evidence: &Evidence) -> Option<Finding> {
    let [old, new] = document.other_reading.as_ref()?;
    let checks = claim.checks.iter();
    let others: Vec<_> = checks.map(|check| check.with(old, new)).collect();
    others.iter().any(Option::is_some).then(|| {
        let pairs = claim.checks.iter().zip(&others);
        let checks = pairs.map(|(check, other)| other.as_ref().unwrap_or(check));
        all_of(checks, evidence)
    })
}

/// The findings of several checks, joined to one, whose figure is that of the greatest error.
fn all_of<'a>(checks: impl Iterator<Item = &'a Check>, evidence: &Evidence) -> Finding {
    let findings: Vec<Finding> = checks.map(|check| check.decide(evidence)).collect();
    let parts = findings.iter().map(|finding| finding.measured.as_str());
    let far = |figure: &Figure| figure.error().abs();
    Finding {
        holds: findings.iter().all(|finding| finding.holds),
        measured: parts.collect::<Vec<_>>().join("; "),
        figure: findings
            .iter()
            .filter_map(|finding| finding.figure.clone())
            .max_by(|one, other| far(one).total_cmp(&far(other))),
    }
}

/// The verdict on a statement, and the figures or reasons for it. `found`: the joined finding of
/// its checks, if it has any.
fn verdict(claim: &Claim, found: Option<&Finding>) -> (Verdict, String) {
    if let Some(reason) = &claim.setting {
        return (Verdict::Setting, reason.clone());
    }
    let Some(Finding {
        holds, measured, ..
    }) = found
    else {
        let reason = claim.not_modelled.as_ref().or(claim.beyond.as_ref());
        return (Verdict::NotModelled, reason.cloned().unwrap_or_default());
    };
    match &claim.contradicts {
        Some(what) => (
            Verdict::Contradicted,
            format!("{measured}; contradicts {what}"),
        ),
        None if *holds => (Verdict::Holds, measured.clone()),
        None => (Verdict::Differs, measured.clone()),
    }
}
