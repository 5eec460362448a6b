//! Published figures as data: the claims of a paper, and the experiment that measures each again.

use anyhow::{Context, Result, bail};
use results::stats::round_to;
use serde::{Deserialize, Serialize};

/// A paper's figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paper {
    /// The modelled machine.
    pub(crate) fabric: String,
    /// The size in bytes of a message that counts as small.
    pub(crate) small: usize,
    /// The designs that the paper compares.
    #[serde(rename = "design")]
    pub(crate) designs: Vec<Design>,
    /// Its published figures.
    #[serde(rename = "claim")]
    pub(crate) claims: Vec<Claim>,
}

/// A design of the software under study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Design {
    pub(crate) name: String,
    pub(crate) about: String,
}

/// One published figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) about: String,
    pub(crate) published: f64,
    pub(crate) unit: String,
    pub(crate) role: Role,
    /// The paper gives a lower bound rather than a value.
    #[serde(default)]
    pub(crate) at_least: bool,
    pub(crate) figure: Figure,
}

/// Whether a constant of the model was tuned to the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// A constant was tuned to it.
    Calibration,
    /// No constant was.
    Prediction,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Calibration => "calibration",
            Role::Prediction => "prediction",
        }
    }
}

/// The measurement that reproduces a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Figure {
    /// Latency of small messages with a design.
    Latency(String),
    /// The highest bandwidth over all sizes with a design.
    Peak(String),
    /// The ratio of two claims.
    Ratio([String; 2]),
    /// The ratio of the highest bandwidths of two designs.
    Peaks([String; 2]),
    /// The smallest chunk with the highest bandwidth.
    BestChunk,
    /// The ratio of the latencies of send and of RDMA write, without MPI.
    Verbs,
    /// The ratio of the times of whole programs' messages with two designs.
    Kernels([String; 2]),
}

/// The result of the comparison of a claim with the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// The prediction is within [`CLOSE`] of the published figure; for a lower bound, also above
    /// it.
    Holds,
    /// The prediction is further off.
    Differs,
    /// The prediction is below the published lower bound.
    Contradicted,
    /// No experiment reproduces the claim.
    NotModelled,
}

impl Verdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::Contradicted => "contradicted",
            Verdict::NotModelled => "not modelled",
        }
    }
}

/// Greatest error of a prediction that holds, in percent.
pub(crate) const CLOSE: f64 = 10.0;

/// A claim with its predicted figure and verdict.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ScoredClaim {
    pub(crate) claim: String,
    pub(crate) published: f64,
    pub(crate) predicted: Option<f64>,
    pub(crate) unit: String,
    pub(crate) error_percent: Option<f64>,
    pub(crate) verdict: Verdict,
    pub(crate) role: Role,
    #[serde(skip)]
    pub(crate) about: String,
}

/// The results of all experiments.
pub(crate) trait Findings {
    fn latency(&self, design: &str) -> Option<f64>;
    fn peak(&self, design: &str) -> Option<f64>;
    fn best_chunk(&self) -> Option<f64>;
    fn verbs(&self) -> Option<f64>;
    fn kernels(&self, over: &str, under: &str) -> Option<f64>;
}

impl Paper {
    /// Parses a paper's figures. `name` is its name in errors.
    pub(crate) fn read(name: &str, text: &str) -> Result<Paper> {
        let paper: Paper =
            toml::from_str(text).with_context(|| format!("cannot read the figures of {name}"))?;
        for claim in &paper.claims {
            if let Figure::Ratio(of) = &claim.figure
                && let Some(unknown) = of.iter().find(|id| paper.claim(id).is_none())
            {
                bail!(
                    "{name}: {} is a ratio of {unknown}, which is not a claim",
                    claim.id
                );
            }
        }
        Ok(paper)
    }

    fn claim(&self, id: &str) -> Option<&Claim> {
        self.claims.iter().find(|claim| claim.id == id)
    }

    fn predict(&self, figure: &Figure, found: &impl Findings) -> Option<f64> {
        let of = |id: &String| match &self.claim(id)?.figure {
            // A ratio of ratios is not followed, so there can be no cycle.
            Figure::Ratio(_) => None,
            figure => self.predict(figure, found),
        };
        match figure {
            Figure::Latency(design) => found.latency(design),
            Figure::Peak(design) => found.peak(design),
            Figure::Ratio([over, under]) => Some(of(over)? / of(under)?),
            Figure::Peaks([over, under]) => Some(found.peak(over)? / found.peak(under)?),
            Figure::BestChunk => found.best_chunk(),
            Figure::Verbs => found.verbs(),
            Figure::Kernels([over, under]) => found.kernels(over, under),
        }
    }

    /// Compares all claims with the results of experiments.
    pub(crate) fn score(&self, found: &impl Findings) -> Vec<ScoredClaim> {
        let score = |claim: &Claim| {
            let predicted = self.predict(&claim.figure, found);
            let error = predicted.map(|value| (value / claim.published - 1.0) * 100.0);
            let verdict = match error {
                None => Verdict::NotModelled,
                Some(error) if claim.at_least && error < -1.0 => Verdict::Contradicted,
                Some(error) if error.abs() <= CLOSE => Verdict::Holds,
                Some(_) => Verdict::Differs,
            };
            ScoredClaim {
                claim: claim.id.clone(),
                published: claim.published,
                predicted: predicted.map(four_digits),
                unit: claim.unit.clone(),
                error_percent: error.map(|error| (error * 10.0).round() / 10.0),
                verdict,
                role: claim.role,
                about: claim.about.clone(),
            }
        };
        self.claims.iter().map(score).collect()
    }
}

/// `value` with four significant digits, the precision of papers. Whole numbers stay as they are.
fn four_digits(value: f64) -> f64 {
    match value.fract() == 0.0 {
        true => value,
        false => round_to(value, 4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Half;

    impl Findings for Half {
        fn latency(&self, design: &str) -> Option<f64> {
            (design != "zero-copy").then_some(if design == "basic" { 18.0 } else { 7.2 })
        }

        fn peak(&self, design: &str) -> Option<f64> {
            Some(if design == "rput" { 700.0 } else { 857.0 })
        }

        fn best_chunk(&self) -> Option<f64> {
            Some(65536.0)
        }

        fn verbs(&self) -> Option<f64> {
            Some(0.9)
        }

        fn kernels(&self, over: &str, under: &str) -> Option<f64> {
            (over == "zero-copy" && under == "rput").then_some(1.2)
        }
    }

    #[test]
    fn claims_are_scored() {
        let paper = Paper::read("it", include_str!("../data/rdma-channel.toml")).unwrap();
        let scored = paper.score(&Half);
        let of = |id: &str| scored.iter().find(|scored| scored.claim == id).unwrap();
        assert_eq!(
            (of("C01").verdict, of("C01").error_percent),
            (Verdict::Holds, Some(-3.2))
        );
        assert_eq!(of("C03").predicted, Some(2.5));
        assert_eq!(of("C05").verdict, Verdict::Differs);
        assert_eq!(of("C07").verdict, Verdict::Differs);
        assert_eq!(of("C10").verdict, Verdict::Contradicted);
        assert_eq!(of("C12").verdict, Verdict::Differs);
        assert_eq!(of("C13").verdict, Verdict::Contradicted);
        assert_eq!(
            (of("C11").verdict, of("C11").predicted),
            (Verdict::NotModelled, None)
        );
        let line = serde_json::to_string(of("C01")).unwrap();
        assert_eq!(
            line,
            r#"{"claim":"C01","published":18.6,"predicted":18.0,"unit":"us","error_percent":-3.2,"verdict":"holds","role":"calibration"}"#
        );
    }

    #[test]
    fn every_claim_is_of_a_design_that_there_is() {
        let paper = Paper::read("it", include_str!("../data/rdma-channel.toml")).unwrap();
        let known = |name: &String| paper.designs.iter().any(|design| design.name == *name);
        for claim in &paper.claims {
            assert!(match &claim.figure {
                Figure::Latency(design) | Figure::Peak(design) => known(design),
                Figure::Peaks(of) | Figure::Kernels(of) => of.iter().all(known),
                Figure::Ratio(_) | Figure::BestChunk | Figure::Verbs => true,
            });
        }
    }
}
