//! The values of options that the user has listed, in one comparison of a sweep.

/// The value of an option that the user has listed, in one comparison of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The subject of the option, as a heading of tables: `placement`, [`PER_HOST`] or
    /// `oversubscription`.
    pub name: &'static str,
    /// The value as a word.
    pub value: String,
}

/// The name of the setting that is the number of ranks on each host.
pub const PER_HOST: &str = "ranks a host";
/// The name of the setting that is the placement of the job.
pub const PLACEMENT: &str = "placement";

impl Setting {
    /// The setting as words of a heading: a placement by its name alone.
    pub(crate) fn words(&self) -> String {
        match self.name {
            PLACEMENT => self.value.clone(),
            PER_HOST => format!(
                "{} {}",
                self.value,
                match self.value.as_str() {
                    "1" => "rank a host",
                    _ => PER_HOST,
                }
            ),
            name => format!("{name} {}", self.value),
        }
    }
}

/// Several settings as words of a heading.
pub(crate) fn words(settings: &[Setting]) -> String {
    let words: Vec<String> = settings.iter().map(Setting::words).collect();
    words.join(", ")
}
