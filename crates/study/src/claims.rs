//! Published figures as data: what a paper says, and which experiment says it again.

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

/// A paper's figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// The modelled machine.
    pub fabric: String,
    /// Bytes of a message that counts as small.
    pub small: usize,
    #[serde(rename = "design")]
    pub designs: Vec<Design>,
    #[serde(rename = "claim")]
    pub claims: Vec<Claim>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Design {
    pub name: String,
    pub about: String,
}

/// One figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    pub id: String,
    pub about: String,
    pub published: f64,
    pub unit: String,
    pub role: Role,
    /// The paper says that it is no less, rather than how much it is.
    #[serde(default)]
    pub at_least: bool,
    pub figure: Figure,
}

/// Whether a constant of the model was chosen by looking at the figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Calibration,
    Prediction,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Calibration => "calibration",
            Role::Prediction => "prediction",
        }
    }
}

/// From which experiment it comes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Of small messages in this design.
    Latency(String),
    /// The highest of all sizes in this design.
    Peak(String),
    /// Of two claims.
    Ratio([String; 2]),
    /// Of the peaks of two designs.
    Peaks([String; 2]),
    BestChunk,
    /// Of the latencies of send and receive and of RDMA write, without MPI.
    Verbs,
    /// Of the times that whole programs' messages take in two designs.
    Kernels([String; 2]),
}

/// What the model says of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within [`CLOSE`] of what was published, or at least that where the paper says so.
    Holds,
    /// Further off.
    Differs,
    /// The other way round.
    Contradicted,
    /// There is no experiment for it.
    NotModelled,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::Contradicted => "contradicted",
            Verdict::NotModelled => "not modelled",
        }
    }
}

/// How far off a prediction may be, in percent.
pub const CLOSE: f64 = 10.0;

/// A claim beside what came out.
#[derive(Clone, Debug, Serialize)]
pub struct Scored {
    pub claim: String,
    pub published: f64,
    pub predicted: Option<f64>,
    pub unit: String,
    pub error_percent: Option<f64>,
    pub verdict: Verdict,
    pub role: Role,
    #[serde(skip)]
    pub about: String,
}

/// What experiments found.
pub trait Findings {
    fn latency(&self, design: &str) -> Option<f64>;
    fn peak(&self, design: &str) -> Option<f64>;
    fn best_chunk(&self) -> Option<f64>;
    fn verbs(&self) -> Option<f64>;
    fn kernels(&self, over: &str, under: &str) -> Option<f64>;
}

impl Paper {
    /// `name` says which, if it cannot be read.
    pub fn read(name: &str, text: &str) -> Result<Paper> {
        let paper: Paper =
            toml::from_str(text).with_context(|| format!("the figures of {name}"))?;
        for claim in &paper.claims {
            if let Figure::Ratio(of) = &claim.figure
                && let Some(unknown) = of.iter().find(|id| paper.claim(id).is_none())
            {
                bail!(
                    "{name}: {} is a ratio of {unknown}, which is no claim",
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
            // One step, so that no circle can be followed for ever.
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

    pub fn score(&self, found: &impl Findings) -> Vec<Scored> {
        let score = |claim: &Claim| {
            let predicted = self.predict(&claim.figure, found);
            let error = predicted.map(|value| (value / claim.published - 1.0) * 100.0);
            let verdict = match error {
                None => Verdict::NotModelled,
                Some(error) if claim.at_least && error < -1.0 => Verdict::Contradicted,
                Some(error) if error.abs() <= CLOSE => Verdict::Holds,
                Some(_) => Verdict::Differs,
            };
            Scored {
                claim: claim.id.clone(),
                published: claim.published,
                predicted: predicted.map(digits),
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

/// Four significant digits, as many as papers give; whole numbers stay what they are.
fn digits(value: f64) -> f64 {
    match value.fract() == 0.0 {
        true => value,
        false => format!("{value:.3e}").parse().unwrap_or(value),
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
