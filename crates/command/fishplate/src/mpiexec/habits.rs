//! The translation of the options of other launchers to ours, by one table.

use std::ffi::OsString;
use std::iter::Peekable;

use super::options::{Options, takes_next_word};

/// The treatment of an option of another launcher: its translation to our options, or none.
enum Meaning {
    /// The option is another name of this option of ours.
    Same(&'static str),
    /// The option stands for these words of our command line.
    Words(&'static [&'static str]),
    /// The option has the form `NAME VALUE` or `NAME=VALUE`, and becomes this option of ours, which
    /// takes `NAME=VALUE`.
    Assignment(&'static str),
    /// The option has a list of output formats: Open MPI's `--output tag,file=NAME`.
    Forms,
    /// The option has no effect, because our launcher always behaves as it requests.
    Always,
    /// The option has a value `COUNT`, the number of ranks on each part of the machine of this
    /// kind.
    RanksEach(&'static str),
    /// The option distributes ranks: Open MPI's `--map-by PART`.
    Map,
    /// The option orders ranks: Open MPI's `--rank-by PART`.
    Order,
    /// The option requests a description of the installed library.
    Installation,
    /// The option has no effect, for the given reason. It takes this many words as values.
    Ignored(usize, &'static str),
    /// The option is not supported; the text is advice for the user.
    Refused(&'static str),
}

use Meaning::{
    Always, Assignment, Forms, Ignored, Installation, Map, Order, RanksEach, Refused, Same, Words,
};

const OPEN_MPI: &str = "a parameter of Open MPI has no meaning here";
const PLACEMENT: &str = "ranks fill hosts in order: name the hosts in the order you want, with --ppn for the most ranks on each";
const DEBUGGER: &str = "start the debugger as the program, such as `xterm -e gdb ./program`";
const COPY: &str = "copy files to the hosts beforehand";
const REMOTE: &str = "--launch-with is the command that starts a program on a host (default: ssh)";

/// The options of MPICH, Intel MPI and Open MPI that are not ours, by their names without hyphens.
const HABITS: &[(&[&str], Meaning)] = &[
    (&["c"], Same("--ranks")),
    (&["N", "npernode", "perhost"], Same("--ppn")),
    (&["pernode"], Words(&["--ppn", "1"])),
    (&["npersocket"], RanksEach("socket")),
    (&["map-by"], Map),
    (&["rank-by"], Order),
    (&["byslot"], Always),
    (&["H", "host"], Same("--hosts")),
    (
        &["f", "machinefile", "default-hostfile"],
        Same("--hostfile"),
    ),
    (&["wd"], Same("--wdir")),
    (&["l", "prepend-rank"], Same("--tag-output")),
    (&["s"], Same("--stdin")),
    (&["rmk"], Same("--allocation")),
    (&["outfile"], Same("--outfile-pattern")),
    (&["errfile"], Same("--errfile-pattern")),
    (&["output"], Forms),
    (
        &[
            "display-map",
            "display-devel-map",
            "display-allocation",
            "d",
            "debug-devel",
        ],
        Same("--verbose"),
    ),
    (&["help"], Same("--help")),
    (&["version"], Same("--version")),
    (&["info"], Installation),
    (&["env"], Assignment("-x")),
    (&["genv"], Assignment("--genv")),
    (&["envall", "genvall"], Always),
    (&["allow-run-as-root", "q", "quiet"], Always),
    (
        &["mca", "gmca", "omca", "prtemca", "pmixmca"],
        Ignored(2, OPEN_MPI),
    ),
    (&["am", "tune"], Ignored(1, OPEN_MPI)),
    (
        &["use-hwthread-cpus"],
        Ignored(
            0,
            "ranks may outnumber the cores; --bind-to hwthread binds each to a hardware thread",
        ),
    ),
    (&["display"], Ignored(1, "--verbose shows the ranks")),
    (
        &["iface"],
        Ignored(1, "the network interface is found without it"),
    ),
    (&["with-ft"], Ignored(1, "a rank that fails ends the job")),
    (
        &["stream-buffering"],
        Ignored(
            1,
            "output is passed on as ranks write it, whole lines at once",
        ),
    ),
    (
        &["usize"],
        Ignored(1, "MPI_UNIVERSE_SIZE is the number of ranks"),
    ),
    (&["launcher", "bootstrap", "rsh"], Ignored(1, REMOTE)),
    (
        &["prefix"],
        Ignored(1, "ranks load the library beside this command"),
    ),
    (
        &["noprefix"],
        Ignored(0, "ranks load the library beside this command"),
    ),
    (
        &["print-all-exitcodes"],
        Ignored(0, "the first failure is always reported"),
    ),
    (&["launcher-exec", "bootstrap-exec"], Refused(REMOTE)),
    (&["nolocal"], Refused("name the hosts without this one")),
    (&["rr", "bynode", "order-nodes"], Refused(PLACEMENT)),
    (
        &["genvexcl", "envexcl"],
        Refused("leave variables out by `env -u NAME mpiexec ...`"),
    ),
    (&["path"], Refused("give the program's path, or set PATH")),
    (&["gdb", "gdba", "tv", "debug", "xterm"], Refused(DEBUGGER)),
    (&["preload-binary", "preload-files"], Refused(COPY)),
    (
        &["prepend-pattern"],
        Refused("-l shows the rank, and --timestamp-output the time"),
    ),
    (
        &["disable-auto-cleanup", "enable-recovery", "continuous"],
        Refused("a rank that fails ends the job"),
    ),
];

/// The names in the table, without hyphens, that have several letters and are supported.
#[cfg(feature = "whole")]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let known = HABITS
        .iter()
        .filter(|(_, meaning)| !matches!(meaning, Refused(_)));
    let names = known.flat_map(|(names, _)| names.iter().copied());
    names.filter(|name| name.len() > 1)
}

/// An option of another launcher, translated to options of ours.
#[derive(Debug, Default)]
pub(super) struct OwnOption {
    /// The option and its value. Empty if it has no effect.
    pub words: Vec<OsString>,
    /// A remark for the user on an option without effect.
    pub notice: Option<String>,
    /// True if the user requests a description of this installation.
    pub asks_installation: bool,
}

impl OwnOption {
    fn words(words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        OwnOption {
            words: words.into_iter().map(Into::into).collect(),
            ..Default::default()
        }
    }
}

/// Translates the option `word`, whose values are the next words of `rest`.
pub(super) fn translate(
    word: &OsString,
    rest: &mut Peekable<impl Iterator<Item = OsString>>,
    ours: &Options,
    command: &str,
) -> Result<OwnOption, String> {
    let typed = word.to_string_lossy();
    let text = typed.strip_prefix('-').unwrap_or_default();
    let (name, is_long) = match text.strip_prefix('-') {
        Some(long) => (long, true),
        None => (text, false),
    };
    let (name, value) = match name.split_once('=') {
        Some((name, value)) => (name, Some(OsString::from(value))),
        None => (name, None),
    };
    if let Some(meaning) = meaning(name, is_long) {
        return apply(meaning, &typed, value, rest, ours);
    }
    if name.chars().count() > 1
        && let Some(option) = ours.long(name)
    {
        let own = format!("--{}", option.get_long().unwrap_or(name));
        return with_value(own, takes_next_word(option), value, rest);
    }
    if !is_long && let Some(own) = short(text, rest, ours) {
        return Ok(own);
    }
    Err(unknown(&typed, name, ours, command))
}

fn meaning(name: &str, is_long: bool) -> Option<&'static Meaning> {
    let is_typed = |known: &&str| *known == name && !(is_long && name.len() == 1);
    let row = HABITS.iter().find(|(names, _)| names.iter().any(&is_typed));
    row.map(|(_, meaning)| meaning)
}

fn apply(
    meaning: &Meaning,
    typed: &str,
    value: Option<OsString>,
    rest: &mut Peekable<impl Iterator<Item = OsString>>,
    ours: &Options,
) -> Result<OwnOption, String> {
    let mut need = |what: &str| rest.next().ok_or(format!("{typed} needs {what}"));
    Ok(match meaning {
        Same(own) => {
            let option = ours.long(own.trim_start_matches('-'));
            return with_value(
                own.to_string(),
                option.is_some_and(takes_next_word),
                value,
                rest,
            );
        }
        Words(words) => OwnOption::words(*words),
        Assignment(own) => {
            let mut assigned = value.map_or_else(|| need("NAME VALUE"), Ok)?;
            if !assigned.as_encoded_bytes().contains(&b'=') {
                let value = need("NAME VALUE")?;
                assigned.push("=");
                assigned.push(value);
            }
            OwnOption::words([OsString::from(own), assigned])
        }
        Forms => {
            let list = value.map_or_else(|| need("a value"), Ok)?;
            OwnOption::words(forms(&list.to_string_lossy())?)
        }
        Always => OwnOption::default(),
        RanksEach(part) => {
            let count = value.map_or_else(|| need("a number of ranks"), Ok)?;
            let map = format!("ppr:{}:{part}", count.to_string_lossy());
            OwnOption::words(["--map-by".to_string(), map])
        }
        Map => OwnOption::words(map(value.map_or_else(|| need("a part"), Ok)?)),
        Order => {
            let part = value.map_or_else(|| need("a part"), Ok)?;
            let part = part.to_string_lossy();
            if part != "slot" {
                return Err(format!("{typed} {part} is not supported: {PLACEMENT}"));
            }
            OwnOption::default()
        }
        Installation => OwnOption {
            asks_installation: true,
            ..Default::default()
        },
        Ignored(count, why) => {
            let mut shown = typed.to_string();
            for _ in value.iter().count()..*count {
                let next = need("a value")?;
                shown = format!("{shown} {}", next.to_string_lossy());
            }
            OwnOption {
                notice: Some(format!("{shown} is ignored: {why}")),
                ..Default::default()
            }
        }
        Refused(advice) => return Err(format!("{typed} is not supported: {advice}")),
    })
}

/// One of our options by its full name, with the value from the command line.
fn with_value(
    own: String,
    takes_value: bool,
    value: Option<OsString>,
    rest: &mut impl Iterator<Item = OsString>,
) -> Result<OwnOption, String> {
    let mut words = vec![OsString::from(&own)];
    match value {
        Some(value) => {
            words[0].push("=");
            words[0].push(value);
        }
        None if takes_value => words.extend(rest.next()),
        None => {}
    }
    Ok(OwnOption::words(words))
}

/// Translates an option of one letter: alone, or with its value in the same word, such as `-n4`.
fn short(
    text: &str,
    rest: &mut impl Iterator<Item = OsString>,
    ours: &Options,
) -> Option<OwnOption> {
    let mut letters = text.chars();
    let letter = letters.next()?;
    let value = letters.as_str();
    let own = match meaning(&letter.to_string(), false) {
        Some(Same(own)) => own.to_string(),
        _ => format!("-{letter}"),
    };
    let option = match own.strip_prefix("--") {
        Some(long) => ours.long(long),
        None => ours.short(letter),
    };
    // The parser of arguments itself adds `-V` and `-h`.
    let is_standard = ["V", "h"].contains(&text);
    if value.is_empty() {
        let takes_value = option.map_or(is_standard.then_some(false), |option| {
            Some(takes_next_word(option))
        })?;
        return with_value(own, takes_value, None, rest).ok();
    }
    let begins_a_number =
        value.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-');
    let begins_a_name =
        letter == 'x' && (value.contains('=') || !value.contains(char::is_lowercase));
    let is_value = option.is_some_and(takes_next_word) && (begins_a_number || begins_a_name);
    let joint = if own.starts_with("--") { "=" } else { "" };
    is_value.then(|| OwnOption::words([format!("{own}{joint}{value}")]))
}

/// Translates Open MPI's `--map-by`. `ppr:COUNT:node`, with or without `:PE=CORES`, becomes
/// `--ppn`.
fn map(distribution: OsString) -> Vec<OsString> {
    let text = distribution.to_string_lossy().to_ascii_lowercase();
    let over_hosts = text.strip_prefix("ppr:").and_then(|rest| {
        let (count, part) = rest.split_once(':')?;
        let mut words = vec!["--ppn", count];
        match part.strip_prefix("node")? {
            "" => {}
            more => words.extend(["--cpus-per-proc", more.strip_prefix(":pe=")?]),
        }
        Some(words)
    });
    match over_hosts {
        Some(words) => words.into_iter().map(OsString::from).collect(),
        None => vec!["--map-by".into(), distribution],
    }
}

/// Translates Open MPI's list of output formats.
fn forms(list: &str) -> Result<Vec<String>, String> {
    let word = |form: &str| match form.split_once('=') {
        None if form == "tag" => Ok("--tag-output".to_string()),
        None if form == "timestamp" => Ok("--timestamp-output".to_string()),
        None if ["merge", "merge-stderr-to-stdout"].contains(&form) => {
            Ok("--merge-stderr-to-stdout".to_string())
        }
        Some(("file", name)) => Ok(format!("--output-filename={name}")),
        _ => Err(format!(
            "--output {list}: `{form}` is not supported; valid are tag, timestamp, merge and file=NAME"
        )),
    };
    // Open MPI 5 takes qualifiers alone, behind a colon.
    let forms = list.strip_prefix(':').unwrap_or(list);
    forms.split([',', ':']).map(word).collect()
}

/// The error for an unknown option, with the names of similar ones.
fn unknown(typed: &str, name: &str, ours: &Options, command: &str) -> String {
    const FEW: usize = 3;
    let habits = HABITS.iter().flat_map(|(names, _)| names.iter().copied());
    let known = habits.chain(ours.longs()).filter(|known| known.len() > 1);
    let close = |known: &str| {
        let distance = strsim::damerau_levenshtein(known, name);
        let begins = name.len() > 2 && (known.starts_with(name) || name.starts_with(known));
        (distance <= known.len().div_ceil(3).min(name.len() / 2) || begins).then_some(distance)
    };
    let mut similar: Vec<(usize, &str)> = known
        .filter_map(|known| Some((close(known)?, known)))
        .collect();
    similar.sort_unstable();
    similar.dedup();
    let hyphens = if typed.starts_with("--") { "--" } else { "-" };
    let names: Vec<String> = similar
        .iter()
        .take(FEW)
        .map(|(_, known)| format!("{hyphens}{known}"))
        .collect();
    let similar = match names.is_empty() {
        true => String::new(),
        false => format!("similar: {}; ", names.join(", ")),
    };
    format!("there is no option {typed}; {similar}see `{command} --help`")
}
