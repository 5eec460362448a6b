//! Tests of `fishplate run --explain`, with a simulated rank 0.

use crate::common::{Folder, ranks, run};

/// The explanation of a rank with peers over two rails, as JSON.
const CHOICES: &str = r#"{"rank":0,"peers":[{"ranks":[1,2,3,5],"transport":"RDMA","rails":2,"sizes":[
{"size":8,"protocol":"eager","predicted_ns":1300,"not_taken":[{"choice":"rendezvous by packets","predicted_ns":4500}],
 "rails":{"choice":"rail 0","shares":[{"rail":0,"bytes":8}],"predicted_ns":1300,"not_taken":[{"choice":"rail 1","predicted_ns":1500}],"limit":null}},
{"size":1048576,"protocol":"read rendezvous","predicted_ns":170000,"not_taken":[{"choice":"ready to receive","predicted_ns":165000},
 {"choice":"write rendezvous","predicted_ns":170000}],"rails":{"choice":"split 50:50","shares":[{"rail":0,"bytes":524288},
 {"rail":1,"bytes":524288}],"predicted_ns":166000,"not_taken":[{"choice":"rail 0","predicted_ns":330000}],"limit":"bus"}}]}],
"collectives":[{"collective":"barrier","sizes":[{"size":0,"algorithm":"shared","predicted_ns":null,"not_taken":[]}]},
{"collective":"bcast","sizes":[{"size":8,"algorithm":"binomial","predicted_ns":1300,"not_taken":[{"choice":"linear","predicted_ns":1400}]},
{"size":64,"algorithm":"binomial","predicted_ns":1310,"not_taken":[{"choice":"linear","predicted_ns":1410}]},
{"size":1024,"algorithm":"two-level","predicted_ns":1600,"not_taken":[]}]}],
"costs":[{"of":"fetch","path":"read","from":262144,"situation":"far, alone","ps_per_byte":98,"source":"this job"},
{"of":"fetch","path":"packets","from":262144,"situation":"far, alone","ps_per_byte":61,"source":"earlier jobs"},
{"of":"alltoall","path":"direct","from":65536,"situation":"pair","ps_per_byte":120,"source":"this job"}]}"#;

/// A larger message size, with the same choices except the shares of the rails.
const LARGER: &str = r#"{"size":2097152,"protocol":"read rendezvous","predicted_ns":340000,"not_taken":[],
"rails":{"choice":"split 49:51","shares":[],"predicted_ns":331000,"not_taken":[],"limit":"bus"}}"#;

/// The steps of the simulated rank 0 that store an explanation.
pub(crate) fn explanation(text: &str) -> Vec<String> {
    let bytes: Vec<u8> = text.bytes().collect();
    let hex = |part: &[u8]| {
        part.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let parts = bytes.chunks(1536).enumerate();
    let parts = parts.map(|(number, part)| format!("0:put=explanation.{number} {}", hex(part)));
    [
        vec!["init".into()],
        parts.collect(),
        vec!["finalize".into()],
    ]
    .concat()
}

fn explained(options: &[&str]) -> crate::common::Done {
    let steps = explanation(&CHOICES.replace('\n', ""));
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    ranks(&[&["-n", "2"], options].concat(), &steps).finish()
}

#[test]
fn a_short_table_has_the_sizes_from_which_another_choice_is_taken() {
    let text = CHOICES.replace("}]}],\n\"coll", &format!("}},{LARGER}]}}],\n\"coll"));
    let steps = explanation(&text.replace('\n', ""));
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let job = ranks(&["-n", "2", "--explain"], &steps).finish();
    let expected = "\
Messages of rank 0 to ranks 1-3,5 (RDMA, 2 rails); predicted times in µs:
 from    protocol          rails                           time   next best
─────────────────────────────────────────────────────────────────────────────────────────────
 8 B     eager             rail 0 1.30                     1.30   rendezvous by packets 4.50
 1 MiB   read rendezvous   split 50:50 166, bound by bus   170    write rendezvous 170
Ready to receive is taken where the receiver has announced its buffer beforehand.

Collectives on MPI_COMM_WORLD:
 collective   algorithm
─────────────────────────────────────────────
 barrier      shared
 bcast        binomial, two-level from 1 KiB

--explain=all shows more sizes, and all choices that are not taken.
";
    assert_eq!(job.code(0).stderr, expected);
    assert_eq!(job.stdout, "");
}

#[test]
fn a_faster_choice_that_is_not_taken_has_its_reason() {
    let faster = r#""not_taken":[{"choice":"eager","predicted_ns":900,"ruled_out_by":"FISHPLATE_EAGER_LIMIT"},"#;
    let text = CHOICES.replace(
        r#""not_taken":[{"choice":"ready to receive","#,
        &format!(r#"{faster}{{"choice":"ready to receive","#),
    );
    let steps = explanation(&text.replace('\n', ""));
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let job = ranks(&["-n", "2", "--explain"], &steps).finish();
    let line = "The eager protocol is predicted to be faster at 1 MiB, but FISHPLATE_EAGER_LIMIT rules it out.\n";
    assert!(job.stderr.contains(line), "{}", job.stderr);
}

#[test]
fn all_choices_are_shown_as_a_table_on_standard_error() {
    let job = explained(&["--explain=all"]);
    let expected = "\
Messages of rank 0 to ranks 1-3,5 (RDMA, 2 rails); predicted times in µs:
 from    protocol          rails                           time   not taken
───────────────────────────────────────────────────────────────────────────────────────────────────
 8 B     eager             rail 0 1.30                     1.30   rendezvous by packets 4.50,
                                                                  rail 1 1.50
 1 MiB   read rendezvous   split 50:50 166, bound by bus   170    ready to receive 165,
                                                                  write rendezvous 170, rail 0 330
Ready to receive is taken where the receiver has announced its buffer beforehand.

Collectives on MPI_COMM_WORLD; predicted or measured times in µs:
 collective   from    algorithm   time   not taken
─────────────────────────────────────────────────────
 barrier      0 B     shared      –
 bcast        8 B     binomial    1.30   linear 1.40
              1 KiB   two-level   1.60

Measured costs within the host, by which choices are made:
 for                 from      cores or members   ps a byte, least first
─────────────────────────────────────────────────────────────────────────
 announced message   256 KiB   far, alone         packets 61*, read 98
 alltoall            64 KiB    2 members          direct 120
* of earlier jobs, from the user's cache.
";
    assert_eq!(job.code(0).stderr, expected);
    assert_eq!(job.stdout, "");
}

#[test]
fn choices_are_shown_as_json_and_in_a_file() {
    let job = explained(&["--explain", "--json"]);
    let json = CHOICES.replace('\n', "") + "\n";
    assert_eq!(job.code(0).stderr, json);
    let folder = Folder::new("explain");
    let file = folder.0.join("choices");
    let option = format!("--explain={}", file.display());
    explained(&[&option, "--json"]).code(0).silent();
    assert_eq!(std::fs::read_to_string(file).unwrap(), json);
}

#[test]
fn an_explanation_that_cannot_be_had_is_an_error() {
    run(&["-n", "2", "--explain", "true"])
        .finish()
        .code(1)
        .one_line(&["--explain: rank 0 has explained nothing", "MPI_Finalize"]);
    run(&["--explain=/nowhere/file", "true"])
        .finish()
        .code(2)
        .one_line(&["--explain=/nowhere/file: No such file"]);
    let cut = explanation(&"x".repeat(4000));
    let cut: Vec<&str> = cut
        .iter()
        .map(String::as_str)
        .filter(|step| !step.contains(".2 "))
        .collect();
    ranks(&["-n", "1", "--explain"], &cut).finish().code(1);
    let bad = explanation("no json");
    let bad: Vec<&str> = bad.iter().map(String::as_str).collect();
    ranks(&["-n", "1", "--explain"], &bad)
        .finish()
        .code(1)
        .one_line(&["rank 0's answer is damaged"]);
    let failed = ranks(&["-n", "1", "--explain"], &["init", "exit=3"]).finish();
    failed.code(3).one_line(&["rank 0", "exit"]);
    // Without `--explain`, the stored explanation is not shown.
    let steps = explanation(CHOICES);
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    ranks(&["-n", "1"], &steps).finish().code(0).silent();
}

#[test]
fn shared_sends_have_a_line_that_says_what_they_are() {
    let text = CHOICES.replace("read rendezvous", "shared send or eager pieces");
    let steps = explanation(&text.replace('\n', ""));
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let job = ranks(&["-n", "2", "--explain"], &steps).finish();
    let line = "A shared send does not wait for its receive: the receiver reads the message, or the sender copies it.\n";
    assert!(job.stderr.contains(line), "{}", job.stderr);
}
