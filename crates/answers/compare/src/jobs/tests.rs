use super::*;
use crate::too_different::too_different;
use profile::Differences;

#[test]
fn the_reason_of_a_failed_job_is_ours_before_the_banner_of_the_program() {
    let said = "  :-) GROMACS - gmx mdrun (-:\n\nExecutable: gmx\nWorking dir: /tmp\nCommand line:\n  gmx mdrun\n\
                fishplate: MPI_Bcast: rank 1: its call 7 is MPI_Bcast\nfishplate: MPI_Bcast: rank 1: its call 7 is MPI_Bcast\n\
                fishplate: rank 1 ended with code 16\n";
    assert_eq!(
        reason(said),
        "MPI_Bcast: rank 1: its call 7 is MPI_Bcast; rank 1 ended with code 16; Executable: gmx; Working dir: /tmp; \
         Command line:; gmx mdrun"
    );
    assert_eq!(reason("\n \n"), "");
}

#[test]
fn a_replay_may_differ_by_a_tenth() {
    let of = |invented_s, left_out_s, share| Differences {
        invented_s,
        left_out_s,
        share,
        rank: 3,
        first: "its call 7 is MPI_Send, and MPI_Recv was recorded there".into(),
    };
    assert_eq!(too_different(&of(0.1, 0.05, 0.1)), None);
    let why = too_different(&of(0.1, 0.3, 0.3)).unwrap();
    assert_eq!(
        why,
        "the program decides by time: rank 3: its call 7 is MPI_Send, and MPI_Recv was recorded there; 30 % of the \
         recorded computing would be left out, more than 10 %"
    );
}
