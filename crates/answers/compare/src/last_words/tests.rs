use super::*;

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
    let library = "fishplate: predicting the MPI library that qdr names: a=b";
    assert_eq!(reason(&format!("{library}\nfishplate: no")), "no");
}
