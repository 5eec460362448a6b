//! A reader of formatted Rust sources that finds numeric constants, without a parser of Rust.

/// A numeric constant, or a part with numbers of another constant: the field `NAME.field` of a
/// structure, an element of an array, which has the array's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Constant {
    pub(super) name: String,
    /// The value as it is written, on one line.
    pub(super) value: String,
}

/// The types that are numbers, and the words that may stand beside them in a type.
const NUMBERS: [&str; 21] = [
    "usize", "isize", "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f32",
    "f64", "Duration", "std", "time", "libc", "c_int", "c_uint", "Ioctl",
];

/// The constants of a source outside its tests, in their order.
pub(super) fn constants(text: &str) -> Vec<Constant> {
    let code = without_tests(&code(text));
    let starts = ["const ", "static "].map(|word| code.match_indices(word));
    let mut starts: Vec<(usize, &str)> = starts.into_iter().flatten().collect();
    starts.sort_unstable();
    let is_word = |at: usize| !code[..at].ends_with(|c| is_name(c) || "'*".contains(c));
    let starts = starts.into_iter().filter(|(at, _)| is_word(*at));
    let items = starts.filter_map(|(at, word)| item(&code[at + word.len()..]));
    items
        .flat_map(|(name, of, value)| numbers(name, of, value))
        .collect()
}

/// The code without comments. Strings are empty, except names, which conditions contain.
fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let raw = rest
            .strip_prefix('r')
            .map(|rest| rest.trim_start_matches('#'));
        let is_raw = raw.is_some_and(|rest| rest.starts_with('"')) && !code.ends_with(is_name);
        let (length, replacement) = match first {
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), ""),
            _ if rest.starts_with("/*") => (rest.find("*/").map_or(rest.len(), |at| at + 2), ""),
            'r' if is_raw => {
                let hashes = rest.len() - 1 - raw.unwrap_or_default().len();
                let end = format!("\"{}", "#".repeat(hashes));
                let content = &rest[hashes + 2..];
                let length = content.find(&end).unwrap_or(content.len());
                (hashes + 2 + length + end.len(), "\"\"")
            }
            '"' => {
                let length = 1 + quoted(&rest[1..], '"');
                let content = &rest[1..length - 1];
                let is_kept =
                    content.starts_with(char::is_alphabetic) && content.chars().all(is_name);
                (length, if is_kept { &rest[..length] } else { "\"\"" })
            }
            '\'' if rest[1..].starts_with('\\') => (1 + quoted(&rest[1..], '\''), "' '"),
            '\'' if rest.chars().nth(2) == Some('\'') => {
                let length = rest.chars().take(3).map(char::len_utf8).sum();
                (length, "' '")
            }
            _ => (first.len_utf8(), &rest[..first.len_utf8()]),
        };
        code.push_str(replacement);
        rest = &rest[length.min(rest.len())..];
    }
    code
}

/// The length of a literal's content with the quote at its end.
fn quoted(content: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = content.find(|c| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(content.len(), |at| at + 1)
}

/// The code without items that only tests and fuzzing have.
fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(") {
        let end = at + rest[at..].find(']').expect("an attribute ends");
        let is_test = is_of_tests(&rest[at + "#[cfg(".len()..end]);
        kept.push_str(&rest[..at]);
        rest = &rest[end + 1..];
        if is_test {
            rest = &rest[length(rest)..];
        }
    }
    kept + rest
}

/// True for a condition that holds only for tests and fuzzing.
fn is_of_tests(condition: &str) -> bool {
    let words = condition.split(|c| !is_name(c));
    let mut words = words.filter(|word| !["", "any", "all", "feature"].contains(word));
    let is_of_tests = |word: &str| ["test", "fuzzing"].contains(&word);
    match condition {
        _ if condition.contains("not(test)") => false,
        _ if condition.starts_with("any(") => words.all(is_of_tests),
        _ => words.any(is_of_tests),
    }
}

/// The length of the item, statement or field at the start of `code`, which ends with `;`, with its
/// last brace, or before the brace that closes what it is part of.
fn length(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        depth += nesting(c);
        match c {
            _ if depth < 0 => return at,
            ';' | '}' if depth == 0 => return at + 1,
            _ => (),
        }
    }
    code.len()
}

/// Name, type and value of the constant that begins with its name. `None`: it is something else,
/// or has no value.
fn item(code: &str) -> Option<(&str, &str, &str)> {
    let code = code.strip_prefix("mut ").unwrap_or(code);
    let (name, rest) = code.split_at(code.find(|c| !is_name(c))?);
    let rest = rest.strip_prefix(": ").filter(|_| name != "_")?;
    let mut depth = 0;
    let equals = rest.char_indices().find(|&(at, c)| {
        depth += match c {
            '<' => 1,
            '>' if !rest[..at].ends_with('-') => -1,
            c => nesting(c),
        };
        depth < 0 || depth == 0 && "=;,{".contains(c)
    });
    let (end, _) = equals.filter(|(_, c)| *c == '=')?;
    let (of, value) = (rest[..end].trim(), &rest[end + 1..]);
    Some((name, of, &value[..value_length(value)]))
}

/// The length of a value, which a `;` outside all brackets ends.
fn value_length(value: &str) -> usize {
    let mut depth = 0;
    let end = value.find(|c| {
        depth += nesting(c);
        c == ';' && depth == 0
    });
    end.unwrap_or(value.len())
}

/// The numbers of a constant: the whole of a numeric one, the parts with numbers of another.
fn numbers(name: &str, of: &str, value: &str) -> Vec<Constant> {
    let value = one_line(value);
    let constant = |name: String, value: &str| Constant {
        name,
        value: value.to_string(),
    };
    if is_numeric(of) {
        return vec![constant(name.to_string(), &value)];
    }
    let inner = |open: char, close: char| {
        let (before, inner) = value.strip_suffix(close)?.split_once(open)?;
        let is_type = before.chars().all(|c| is_name(c) || ":& ".contains(c));
        is_type.then_some(inner)
    };
    let found: Vec<Constant> = if let Some(elements) = inner('[', ']') {
        let elements = parts(elements).into_iter();
        elements
            .map(|element| constant(name.to_string(), element))
            .collect()
    } else if let Some(fields) = inner('{', '}') {
        let fields = parts(fields).into_iter();
        let fields = fields.filter_map(|field| field.split_once(": "));
        fields
            .map(|(field, value)| constant(format!("{name}.{field}"), value))
            .collect()
    } else {
        vec![constant(name.to_string(), &value)]
    };
    let is_number = |one: &Constant| has_number(&one.value) && !has_closure(&one.value);
    found.into_iter().filter(is_number).collect()
}

/// A value as it would be written on one line.
fn one_line(value: &str) -> String {
    let line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.replace("( ", "(").replace("[ ", "[");
    line.replace(", )", ")")
        .replace(", ]", "]")
        .replace(" ]", "]")
}

/// The parts between commas outside all brackets.
fn parts(list: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = list.split(|c| {
        depth += nesting(c);
        c == ',' && depth == 0
    });
    let parts = parts.map(str::trim);
    parts.filter(|part| !part.is_empty()).collect()
}

fn nesting(c: char) -> i32 {
    i32::from("([{".contains(c)) - i32::from(")]}".contains(c))
}

/// True for numbers, and for arrays and tuples of numbers. Lengths of arrays are constants.
fn is_numeric(of: &str) -> bool {
    let words = of.split(|c| !is_name(c)).filter(|word| !word.is_empty());
    let mut words = words.filter(|word| word.contains(char::is_lowercase));
    words.clone().next().is_some() && words.all(|word| NUMBERS.contains(&word))
}

/// True if the text has a numeric literal.
fn has_number(text: &str) -> bool {
    let mut before = ' ';
    text.chars().any(|c| {
        let is_start = c.is_ascii_digit() && !is_name(before) && before != '.';
        before = c;
        is_start
    })
}

/// True if the text has a closure: its numbers are code.
fn has_closure(text: &str) -> bool {
    let mut parts = text.split('|').skip(1);
    parts.any(|part| !part.is_empty() && part.chars().all(is_name))
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn constants_of_a_sample_are_found() {
    let sample = r##"
//! const IN_A_COMMENT: u32 = 1;
/// The limit.
pub(crate) const LIMIT: usize = 64 << 10; // const NO: u8 = 2;
const TEXT: &str = "const IN_A_STRING: u32 = 3;";
const SETTING: (&str, &str) = ("LIMIT", "64M");
const QUOTE: char = '"';
static WAIT: (Duration, u32) = (
    Duration::from_secs(2),
    MANY,
);
const SIZES: [usize; COUNT] = [
    8, 1 << 4,
];
impl<const N: usize> Costs<N> {
    pub const MEMORY: Costs = Costs { flight_ns: 100, copy_ps: Host::USUAL, unit: 0 };
    pub const fn of(bytes: *const u8, name: &'static str) -> usize {
        const INSIDE: u64 = 9;
        bytes.0
    }
}
trait Named {
    const NAME: u32;
    const NUMBER: u32 = 4;
}
const ROWS: &[Row] = &[
    row(
        A::Linear,
        4 << 10,
    ),
    hosts(A::TwoLevel, R::NONE),
    Row { applies: |case| case.rails > 1 },
];
const FLAG: Flags = Flags(1 << 2);
const _: () = assert!(LIMIT > 5);
static COUNT: AtomicUsize = AtomicUsize::new(NONE);
#[cfg(not(test))]
const REAL: u32 = 6;
#[cfg(any(test, target_arch = "x86_64"))]
const OF_A_PROCESSOR: u32 = 0x20;
#[cfg(any(test, feature = "fuzzing"))]
const OF_BOTH: u32 = 0x21;
#[cfg(all(test, not(loom)))]
pub(crate) mod helper {
    const OF_A_TEST: u32 = '\'' as u32;
}
#[cfg(feature = "fuzzing")]
const OF_FUZZING: u32 = 8;
const LAST: f64 = 0.5;
#[cfg(test)]
mod tests {
    const OF_TESTS: u32 = 7;
}
"##;
    let found = constants(sample);
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|one| (one.name.as_str(), one.value.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("LIMIT", "64 << 10"),
            ("WAIT", "(Duration::from_secs(2), MANY)"),
            ("SIZES", "[8, 1 << 4]"),
            ("MEMORY.flight_ns", "100"),
            ("MEMORY.unit", "0"),
            ("INSIDE", "9"),
            ("NUMBER", "4"),
            ("ROWS", "row(A::Linear, 4 << 10)"),
            ("FLAG", "Flags(1 << 2)"),
            ("REAL", "6"),
            ("OF_A_PROCESSOR", "0x20"),
            ("LAST", "0.5"),
        ]
    );
}
