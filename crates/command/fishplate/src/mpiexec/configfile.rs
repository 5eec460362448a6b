//! Files that list programs: `-configfile FILE`. Each line is a program with its options.

use std::ffi::OsString;

/// The names of the option for such a file.
const NAMES: [&str; 4] = ["-configfile", "--configfile", "-app", "--app"];

/// If the last option of a command line names a file of programs, replaces the option by the words
/// of the file.
pub(super) fn expand(mut words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let options = words
        .iter()
        .take_while(|word| super::is_option(word))
        .count();
    let place = words[..options]
        .iter()
        .position(|word| NAMES.iter().any(|name| word == name));
    let Some(at) = place else {
        return Ok(words);
    };
    let option = words[at].to_string_lossy().into_owned();
    let file = words.get(at + 1).ok_or(format!("{option} needs a file"))?;
    if let Some(more) = words.get(at + 2) {
        let more = more.to_string_lossy();
        return Err(format!(
            "{option} names a file with all programs: `{more}` cannot follow it"
        ));
    }
    let text = std::fs::read_to_string(file)
        .map_err(|why| format!("{option} {}: {why}", file.to_string_lossy()))?;
    let read = read(&text).map_err(|why| format!("{}:{why}", file.to_string_lossy()))?;
    words.truncate(at);
    words.extend(read);
    Ok(words)
}

/// The words of a file: those of its lines, with `:` between lines. A line that begins with `#` is
/// a comment, and `\` at the end of a line continues it. An error begins with the line's number.
fn read(text: &str) -> Result<Vec<OsString>, String> {
    let mut words = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let mut line = line.to_string();
        while let Some(begun) = line.strip_suffix('\\') {
            let next = lines.next().map_or("", |(next, _)| next);
            line = format!("{begun} {next}");
        }
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let split = shlex::split(&line).ok_or(format!("{number}: a quote is open"))?;
        if !words.is_empty() {
            words.push(":".into());
        }
        words.extend(split.into_iter().map(OsString::from));
    }
    match words.is_empty() {
        true => Err("1: the file names no program".into()),
        false => Ok(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_programs() {
        let text = "# a job\n-n 1 ./a 'two words'\n\n -n 2 \\\n  ./b x # y\n";
        let expected = ["-n", "1", "./a", "two words", ":", "-n", "2", "./b", "x"];
        assert_eq!(read(text).unwrap(), expected.map(OsString::from));
        assert_eq!(read("-n 1 'a\n").unwrap_err(), "1: a quote is open");
        assert_eq!(read("# a\n").unwrap_err(), "1: the file names no program");
    }
}
