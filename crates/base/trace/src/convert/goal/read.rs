//! The text of a schedule.

use std::collections::HashMap;

use super::{Kind, Op};

/// The most ranks of a schedule.
const MOST_RANKS: usize = 1 << 20;
/// The most bytes of a message, and the greatest tag: MPI counts both with 31 bits.
const MOST: u64 = i32::MAX as u64;

/// A dependency that has been read: the line, both labels, and whether the second must have ended.
type Dependency<'a> = (usize, &'a str, &'a str, bool);

/// A rank whose block of lines is being read.
#[derive(Default)]
struct Block<'a> {
    rank: usize,
    ops: Vec<Op>,
    labels: HashMap<&'a str, u32>,
    dependencies: Vec<Dependency<'a>>,
    /// The processor of the first operation, and its line.
    cpu: Option<(u64, usize)>,
}

/// Reads the operations of each rank from the text of a schedule.
pub(super) fn schedule(text: &str) -> Result<Vec<Vec<Op>>, String> {
    let mut ranks: Option<Vec<Option<Vec<Op>>>> = None;
    let mut block: Option<Block> = None;
    let mut is_comment = false;
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let wrong = |why: String| format!("line {number}: {why}");
        let words = words(line, &mut is_comment);
        let mut words = Words { words: &words };
        if words.words.is_empty() {
            continue;
        }
        let Some(open) = &mut block else {
            match (words.word()?, &mut ranks) {
                ("num_ranks", None) => {
                    let count = words.number("the number of ranks").map_err(wrong)? as usize;
                    if !(1..=MOST_RANKS).contains(&count) {
                        return Err(wrong(format!("{count} ranks; valid are 1 to {MOST_RANKS}")));
                    }
                    ranks = Some(vec![None; count]);
                }
                ("rank", Some(ranks)) => {
                    let rank = words.number("the number of a rank").map_err(wrong)? as usize;
                    match ranks.get(rank) {
                        Some(None) => (),
                        Some(Some(_)) => return Err(wrong(format!("rank {rank} has come before"))),
                        None => {
                            let all = ranks.len();
                            return Err(wrong(format!("rank {rank}, and num_ranks is {all}")));
                        }
                    }
                    words.expect("{").map_err(wrong)?;
                    block = Some(Block {
                        rank,
                        ..Block::default()
                    });
                }
                ("rank", None) => return Err(wrong("num_ranks is missing before it".into())),
                (word, _) => {
                    return Err(wrong(format!(
                        "`{word}`, where `num_ranks` or `rank` should be"
                    )));
                }
            }
            words.end().map_err(wrong)?;
            continue;
        };
        if words.words == ["}"] {
            let rank = open.rank;
            let ops = block.take().map_or(Ok(Vec::new()), Block::finish)?;
            if let Some(ranks) = &mut ranks {
                ranks[rank] = Some(ops);
            }
            continue;
        }
        let all = ranks.as_ref().map_or(0, Vec::len);
        open.line(number, &mut words, all).map_err(wrong)?;
    }
    if let Some(block) = block {
        let rank = block.rank;
        return Err(format!("the end is missing: rank {rank} has no `}}`"));
    }
    let ranks = ranks.ok_or("num_ranks is missing: it is no GOAL text")?;
    Ok(ranks.into_iter().map(Option::unwrap_or_default).collect())
}

impl<'a> Block<'a> {
    /// Reads a line of the block: an operation or a dependency.
    fn line(&mut self, line: usize, words: &mut Words<'a, '_>, ranks: usize) -> Result<(), String> {
        let mut word = words.word()?;
        let is_operation = |word: &str| ["calc", "recv", "send"].contains(&word);
        if !is_operation(word) {
            let label = word;
            match words.word()? {
                ":" => {
                    if self.labels.insert(label, self.ops.len() as u32).is_some() {
                        return Err(format!("the label {label} has come before"));
                    }
                    word = words.word()?;
                }
                which @ ("requires" | "irequires") => {
                    let dependency = (line, label, words.word()?, which == "requires");
                    self.dependencies.push(dependency);
                    return words.end();
                }
                other => {
                    return Err(format!(
                        "`{other}`, where `:`, `requires` or `irequires` should be"
                    ));
                }
            }
        }
        let kind = match word {
            "calc" => Kind::Calc,
            "send" => Kind::Send,
            "recv" => Kind::Recv,
            other => {
                return Err(format!(
                    "`{other}`, where `calc`, `send` or `recv` should be"
                ));
            }
        };
        let op = self.operation(line, kind, words, ranks)?;
        self.ops.push(op);
        Ok(())
    }

    fn operation(
        &mut self,
        line: usize,
        kind: Kind,
        words: &mut Words,
        ranks: usize,
    ) -> Result<Op, String> {
        let (mut peer, mut tag) = (None, (kind != Kind::Calc).then_some(0));
        let size = match kind {
            Kind::Calc => words.number("the nanoseconds")?,
            _ => words.bytes()?,
        };
        if kind != Kind::Calc {
            if size > MOST {
                return Err(format!("{size} bytes; MPI has at most {MOST} in a message"));
            }
            words.expect(if kind == Kind::Send { "to" } else { "from" })?;
            peer = match words.word()? {
                "-1" if kind == Kind::Recv => None,
                word => {
                    let rank = number(word, "the number of a rank")?;
                    let rank = usize::try_from(rank).ok().filter(|rank| *rank < ranks);
                    Some(rank.ok_or(format!("there is no rank {word}: num_ranks is {ranks}"))?)
                }
            };
        }
        while let Some((word, rest)) = words.words.split_first() {
            words.words = rest;
            match *word {
                "tag" if kind != Kind::Calc => {
                    tag = match words.word()? {
                        "-1" if kind == Kind::Recv => None,
                        word => match number(word, "a tag")? {
                            tag @ 0..=MOST => Some(tag as i64),
                            tag => {
                                return Err(format!("tag {tag}; MPI has tags up to {MOST}"));
                            }
                        },
                    };
                }
                "cpu" => {
                    let cpu = words.number("the number of a processor")?;
                    let (first, at) = *self.cpu.get_or_insert((cpu, line));
                    if first != cpu {
                        return Err(format!(
                            "cpu {cpu}, and the rank has cpu {first} in line {at}: an MPI rank has one thread; give each processor a rank"
                        ));
                    }
                }
                // The machine and its library choose the rail of a message.
                "nic" => drop(words.number("the number of a card")?),
                other => return Err(format!("`{other}` is no word of an operation")),
            }
        }
        // Without the word it is processor 0.
        self.cpu.get_or_insert((0, line));
        Ok(Op {
            line,
            kind,
            size,
            peer,
            tag,
            requires: Vec::new(),
            follows: Vec::new(),
        })
    }

    fn finish(mut self) -> Result<Vec<Op>, String> {
        for (line, label, other, must_end) in self.dependencies {
            let find = |label: &str| {
                let found = self.labels.get(label).copied();
                found.ok_or(format!(
                    "line {line}: rank {} has no label {label}",
                    self.rank
                ))
            };
            let (op, before) = (find(label)?, find(other)?);
            let op = &mut self.ops[op as usize];
            match must_end {
                true => op.requires.push(before),
                false => op.follows.push(before),
            }
        }
        Ok(self.ops)
    }
}

/// The words of a schedule's line that are still to be read.
struct Words<'a, 'b> {
    words: &'b [&'a str],
}

impl<'a> Words<'a, '_> {
    fn word(&mut self) -> Result<&'a str, String> {
        let (word, rest) = self.words.split_first().ok_or("the line is cut off")?;
        self.words = rest;
        Ok(word)
    }

    fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.word()? {
            word if word == wanted => Ok(()),
            word => Err(format!("`{word}`, where `{wanted}` should be")),
        }
    }

    fn number(&mut self, what: &str) -> Result<u64, String> {
        number(self.word()?, what)
    }

    /// Reads a number of bytes, such as `8b` or `8 b`.
    fn bytes(&mut self) -> Result<u64, String> {
        let word = self.word()?;
        match word.strip_suffix('b') {
            Some(digits) => number(digits, "the bytes"),
            None => {
                let bytes = number(word, "the bytes")?;
                self.expect("b").map(|()| bytes)
            }
        }
    }

    fn end(&self) -> Result<(), String> {
        match self.words.first() {
            None => Ok(()),
            Some(word) => Err(format!("`{word}` is one word too many")),
        }
    }
}

fn number(word: &str, what: &str) -> Result<u64, String> {
    let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = word.parse().ok().filter(|_| is_number);
    parsed.ok_or(format!("`{word}`, where {what} should be"))
}

/// The words of a line without its comments. `is_comment`: a comment of several lines is open.
fn words<'a>(line: &'a str, is_comment: &mut bool) -> Vec<&'a str> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        if *is_comment {
            match rest.split_once("*/") {
                Some((_, behind)) => (rest, *is_comment) = (behind, false),
                None => return words,
            }
        }
        let begin = rest.find("//").into_iter().chain(rest.find("/*")).min();
        let (text, comment) = rest.split_at(begin.unwrap_or(rest.len()));
        for word in text.split_whitespace() {
            let mut word = word;
            // A colon or a brace is a word of its own.
            while let Some(at) = word.find([':', '{', '}']) {
                let (before, behind) = word.split_at(at);
                words.extend((!before.is_empty()).then_some(before));
                words.push(&behind[..1]);
                word = &behind[1..];
            }
            words.extend((!word.is_empty()).then_some(word));
        }
        match comment.strip_prefix("/*") {
            Some(behind) => (rest, *is_comment) = (behind, true),
            None => return words,
        }
    }
}
