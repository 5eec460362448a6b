//! A release of an MPI library: a project and a version.

use std::fmt;

use crate::quantity::{Quantity, Raw};

/// A project whose releases have tables of algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Project {
    /// Open MPI.
    OpenMpi,
    /// MPICH.
    Mpich,
}

impl Project {
    /// All projects.
    pub const ALL: [Project; 2] = [Project::OpenMpi, Project::Mpich];

    /// The name of the project in files.
    pub fn name(self) -> &'static str {
        ["openmpi", "mpich"][self as usize]
    }

    /// The first version that has a table of algorithms.
    pub fn first(self) -> Version {
        [Version([1, 3, 0]), Version([1, 0, 0])][self as usize]
    }
}

/// A version: up to three numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub [u16; 3]);

impl Version {
    /// Parses numbers that dots separate, such as `4.1.6`. Missing numbers are 0.
    pub fn read(text: &str) -> Option<Version> {
        let mut version = Version([0; 3]);
        let mut numbers = version.0.iter_mut();
        for word in text.split('.') {
            let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            *numbers.next()? = word.parse().ok().filter(|_| is_number)?;
        }
        Some(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Version([major, minor, patch]) = self;
        write!(f, "{major}.{minor}")?;
        match patch {
            0 => Ok(()),
            patch => write!(f, ".{patch}"),
        }
    }
}

/// A release of an MPI library, such as Open MPI 4.1.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The project of the library.
    pub project: Project,
    /// The version of the release.
    pub version: Version,
}

impl Quantity for Option<Release> {
    const VALID: &'static str = "\"none\", or a library with its version, such as \"openmpi-4.1.6\" (from 1.3) or \
                                 \"mpich-4.2\" (from 1.0)";

    fn read(raw: &Raw) -> Option<Self> {
        let Raw::Text(text) = raw else { return None };
        if text == "none" {
            return Some(None);
        }
        let (name, version) = text.split_once('-')?;
        let mut projects = Project::ALL.into_iter();
        let project = projects.find(|project| project.name() == name)?;
        let version = Version::read(version).filter(|version| *version >= project.first())?;
        Some(Some(Release { project, version }))
    }
    fn show(&self) -> String {
        self.map_or("none".to_owned(), |release| release.to_string())
    }
    fn to_word(&self) -> u64 {
        self.map_or(u64::MAX, |Release { project, version }| {
            let [major, minor, patch] = version.0.map(u64::from);
            (project as u64) << 48 | major << 32 | minor << 16 | patch
        })
    }
    fn from_word(word: u64) -> Option<Self> {
        if word == u64::MAX {
            return Some(None);
        }
        let project = Project::ALL.get(usize::try_from(word >> 48).ok()?);
        let version = Version([32, 16, 0].map(|shift| (word >> shift) as u16));
        project.map(|&project| Some(Release { project, version }))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}-{}", self.project.name(), self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Option<Release>> {
        Quantity::read(&Raw::Text(text.into()))
    }

    #[test]
    fn a_release_survives_text_and_word() {
        for text in [
            "none",
            "openmpi-1.3",
            "openmpi-4.1.6",
            "mpich-3.0",
            "mpich-4.2.65535",
        ] {
            let release = read(text).expect(text);
            assert_eq!(release.show(), text);
            assert_eq!(Quantity::from_word(release.to_word()), Some(release));
        }
        assert_eq!(read("openmpi-5"), read("openmpi-5.0"));
        assert_eq!(<Option<Release>>::from_word(7 << 48), None);
    }

    #[test]
    fn other_texts_are_no_releases_and_the_valid_ones_are_named() {
        for text in [
            "openmpi",
            "openmpi-",
            "openmpi-x",
            "openmpi-1.2.9",
            "mvapich2-2.3",
            "mpich-4.",
            "mpich-1.2.3.4",
            "",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        for project in Project::ALL {
            let first = format!("{}-", project.name());
            assert!(<Option<Release>>::VALID.contains(&first));
            let from = format!("(from {})", project.first());
            assert!(<Option<Release>>::VALID.contains(&from), "{from}");
        }
    }
}
