//! Tests of the translation of each option of other launchers.

use std::ffi::OsString;

use super::{Translated, translate};

fn translated(line: &str) -> Result<Translated, String> {
    let words = line.split(' ').filter(|word| !word.is_empty());
    translate(words.map(OsString::from).collect(), "mpiexec")
}

/// The command line translated to our spelling, with ` : ` between programs.
fn ours(line: &str) -> String {
    let translated = translated(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    let programs = translated.programs.iter().map(|words| {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    });
    programs.collect::<Vec<_>>().join(" : ")
}

fn refused(line: &str) -> String {
    match translated(line) {
        Ok(translated) => panic!("{line}: {translated:?}"),
        Err(why) => why,
    }
}

#[test]
fn every_habit_has_its_word() {
    for (typed, expected) in [
        ("-n 4 a", "-n 4 a"),
        ("-np 4 a", "--ranks 4 a"),
        ("--np 4 a", "--ranks 4 a"),
        ("-n4 a", "-n4 a"),
        ("-c 4 a", "--ranks 4 a"),
        ("-c4 a", "--ranks=4 a"),
        ("-N 2 a", "--ppn 2 a"),
        ("-npernode 2 a", "--ppn 2 a"),
        ("--npernode 2 a", "--ppn 2 a"),
        ("-pernode a", "--ppn 1 a"),
        ("-ppn 2 a", "--ppn 2 a"),
        ("-d a", "--verbose a"),
        ("-H a -H b a", "--hosts a --hosts b a"),
        ("-perhost 2 a", "--ppn 2 a"),
        ("-H a:2,b a", "--hosts a:2,b a"),
        ("-host a a", "--hosts a a"),
        ("--host a a", "--hosts a a"),
        ("-hosts a a", "--hosts a a"),
        ("-f h a", "--hostfile h a"),
        ("-hostfile h a", "--hostfile h a"),
        ("--hostfile h a", "--hostfile h a"),
        ("-machinefile h a", "--hostfile h a"),
        ("--machinefile=h a", "--hostfile=h a"),
        ("-env A 1 a", "-x A=1 a"),
        ("-env A=1 a", "-x A=1 a"),
        ("-genv A 1 a", "--genv A=1 a"),
        ("-genv A=1=2 a", "--genv A=1=2 a"),
        ("-genvall a", "a"),
        ("-genvlist A,B a", "--genvlist A,B a"),
        ("-genvnone a", "--genvnone a"),
        ("-envlist A a", "--envlist A a"),
        ("-envnone -envall a", "--envnone a"),
        ("-x A a", "-x A a"),
        ("-xA=1 a", "-xA=1 a"),
        ("-l a", "--tag-output a"),
        ("-prepend-rank a", "--tag-output a"),
        ("--tag-output a", "--tag-output a"),
        (
            "--output tag,merge a",
            "--tag-output --merge-stderr-to-stdout a",
        ),
        ("--output :tag a", "--tag-output a"),
        ("--output file=o a", "--output-filename=o a"),
        ("--output-filename o a", "--output-filename o a"),
        ("-outfile-pattern o.%r a", "--outfile-pattern o.%r a"),
        ("--merge-stderr-to-stdout a", "--merge-stderr-to-stdout a"),
        ("--timestamp-output a", "--timestamp-output a"),
        ("-s all a", "--stdin all a"),
        ("-rmk slurm a", "--allocation slurm a"),
        ("--stdin none a", "--stdin none a"),
        ("-v a", "-v a"),
        ("-wdir / a", "--wdir / a"),
        ("-wd / a", "--wdir / a"),
        ("-timeout 5 a", "--timeout 5 a"),
        (
            "--oversubscribe --allow-run-as-root -q a",
            "--oversubscribe a",
        ),
        ("--nooversubscribe a", "--nooversubscribe a"),
        ("-help", "--help"),
        ("-V", "-V"),
        ("--compute measured a", "--compute measured a"),
        ("--explain a", "--explain a"),
        ("--explain=f a", "--explain=f a"),
        ("-n 2 a -genv x -q : b", "-n 2 a -genv x -q : b"),
        ("-- a : b", "-- a : b"),
    ] {
        assert_eq!(ours(typed), expected, "{typed}");
    }
}

#[test]
fn distributions_over_hosts_are_numbers_of_ranks() {
    for (typed, expected) in [
        ("--map-by ppr:2:node a", "--ppn 2 a"),
        ("-map-by=PPR:2:Node a", "--ppn 2 a"),
        ("--map-by ppr:2:node:PE=3 a", "--ppn 2 --cpus-per-proc 3 a"),
        ("--map-by ppr:2:socket a", "--map-by ppr:2:socket a"),
        ("--map-by ppr:2:node:span a", "--map-by ppr:2:node:span a"),
        ("--map-by node a", "--map-by node a"),
        ("-npersocket 2 a", "--map-by ppr:2:socket a"),
        ("--npersocket=2 a", "--map-by ppr:2:socket a"),
        ("--rank-by slot a", "a"),
        ("-byslot a", "a"),
    ] {
        assert_eq!(ours(typed), expected, "{typed}");
    }
}

#[test]
fn programs_are_separated() {
    let line = "-l -n 1 a x : -n 2 -env A 1 -wdir / b : c";
    let programs = translated(line).unwrap().programs;
    assert_eq!(programs.len(), 3);
    assert_eq!(
        ours(line),
        "--tag-output -n 1 a x : -n 2 -x A=1 --wdir / b : c"
    );
    // After `--`, colons are arguments of the program.
    assert_eq!(translated("-n 1 -- a : b").unwrap().programs.len(), 1);
    for (line, expected) in [
        ("-n 1 a :", "none after it"),
        (": a", "none before it"),
        ("-n 1 a : -timeout 5 b", "-timeout is for the whole job"),
        ("-n 1 a : -genv A 1 b", "-genv is for the whole job"),
        ("-n 1 a : -l b", "-l is for the whole job"),
    ] {
        assert!(refused(line).contains(expected), "{}", refused(line));
    }
}

#[test]
fn options_without_meaning_are_named() {
    for (line, expected) in [
        (
            "--mca btl self,sm a",
            "--mca btl self,sm is ignored: a parameter of Open MPI",
        ),
        ("-mca a b a", "-mca a b is ignored"),
        ("-iface eth0 a", "-iface eth0 is ignored"),
        (
            "-bootstrap ssh a",
            "-bootstrap ssh is ignored: --launch-with",
        ),
        ("-usize 4 a", "MPI_UNIVERSE_SIZE is the number"),
        (
            "--with-ft no a",
            "--with-ft no is ignored: a rank that fails",
        ),
        (
            "--stream-buffering 1 a",
            "--stream-buffering 1 is ignored: output is",
        ),
        (
            "--use-hwthread-cpus a",
            "--use-hwthread-cpus is ignored: ranks may outnumber the cores",
        ),
    ] {
        let translated = translated(line).unwrap();
        assert_eq!(translated.programs, [[OsString::from("a")]], "{line}");
        let [notice] = &translated.notices[..] else {
            panic!("{line}: {:?}", translated.notices);
        };
        assert!(notice.contains(expected), "{notice}");
    }
    for (line, expected) in [
        ("-nolocal a", "-nolocal is not supported: name the hosts"),
        ("-gdb a", "-gdb is not supported: start the debugger"),
        (
            "-path /x a",
            "-path is not supported: give the program's path",
        ),
        ("--output xml a", "`xml` is not supported"),
        (
            "--rank-by node a",
            "--rank-by node is not supported: ranks fill",
        ),
        ("--rank-by", "--rank-by needs a part"),
        ("--mca btl", "--mca needs a value"),
        ("-env A", "-env needs NAME VALUE"),
    ] {
        let why = refused(line);
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn a_question_about_the_installation_needs_no_program() {
    for (line, expected) in [("-info", true), ("--info", true), ("-n 1 a -info", false)] {
        assert_eq!(translated(line).unwrap().asks_installation, expected);
    }
}

#[test]
fn an_unknown_option_is_named_whole_with_similar_ones() {
    for (line, expected) in [
        ("-gnev A 1 a", "there is no option -gnev; similar: -genv"),
        (
            "--tag-ouput a",
            "there is no option --tag-ouput; similar: --tag-output",
        ),
        (
            "-zzzzzzzz a",
            "there is no option -zzzzzzzz; see `mpiexec --help`",
        ),
        ("-nx a", "there is no option -nx;"),
        ("-Z a", "there is no option -Z;"),
    ] {
        let why = refused(line);
        assert!(why.starts_with(expected), "{why}");
    }
}
