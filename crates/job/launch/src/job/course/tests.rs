//! Tests of the course of a job, one event at a time.

use pmi::{FromRank, RankStatus};

use super::*;
use crate::process_exit::ProcessExit;

/// Ranks that have completed MPI_Init.
fn ranks(count: usize) -> Vec<RankState> {
    let rank = |number| {
        let mut rank = RankState::new(number);
        let pid = 100 + number as u32;
        rank.handle_packet(&FromRank::Init { pid }.to_string());
        rank
    };
    (0..count).map(rank).collect()
}

fn course(ranks: usize, now: Instant) -> Course {
    Course::new(Some(Duration::from_secs(60)), None, ranks, now)
}

fn killed() -> Cause {
    Cause::Signal { signal: 9 }
}

/// Lets a rank fail, which must end the job.
fn fail(course: &mut Course, ranks: &[RankState], number: usize, now: Instant) {
    let Judgement::End(verdict) = course.judge(ranks, number, killed()) else {
        panic!("a failure");
    };
    let asked = course.fail(ranks, verdict, TERMINATE, now);
    assert_eq!(asked, Some(Order::AskStatus));
}

#[test]
fn a_failed_job_ends_when_its_ranks_have_answered() {
    let now = Instant::now();
    let (mut course, mut ranks) = (course(3, now), ranks(3));
    ranks[1].ended(ProcessExit::Signal(9), true);
    fail(&mut course, &ranks, 1, now);
    assert!(course.is_ending() && course.take_signal(true, now).is_none());
    assert!(matches!(course.judge(&ranks, 2, killed()), Judgement::Late));
    assert_eq!(course.check(&ranks, now), [], "two ranks have not answered");
    assert_eq!(course.next(), Some(now + LAST_WORDS));
    for rank in [0, 2] {
        ranks[rank].answer = Some(RankStatus::default());
    }
    let orders = course.check(&ranks, now);
    let line = FailureLine {
        rank: Some(1),
        text: killed().text(),
        with_others: true,
    };
    assert_eq!(orders, [Order::Say(line), Order::End(TERMINATE)]);
    assert_eq!(course.verdict().and_then(|verdict| verdict.rank), Some(1));
}

#[test]
fn signals_are_sent_each_after_its_time_until_no_process_is_left() {
    let now = Instant::now();
    let mut course = course(1, now);
    assert_eq!(course.take_signal(true, now), None);
    course.interrupt(Signal::SIGTERM, true);
    assert_eq!(course.end(TERMINATE, true, now), [Order::End(TERMINATE)]);
    let term = Some((Signal::SIGTERM, true));
    assert_eq!(course.take_signal(true, now), term);
    assert_eq!(course.take_signal(true, now), None);
    let later = now + GRACE;
    let kill = Some((Signal::SIGKILL, false));
    assert_eq!(course.take_signal(true, later), kill);
    assert!(!course.leaves_output(), "it is repeated");
    let later = course.next().unwrap();
    assert_eq!(course.take_signal(true, later), kill);
    let later = course.next().unwrap();
    assert_eq!(course.take_signal(false, later), None);
    assert!(course.leaves_output());
    assert!(!course.has_given_up(later));
    assert!(course.has_given_up(course.next().unwrap()));
}

#[test]
fn a_second_interrupt_waits_for_no_status() {
    let now = Instant::now();
    let (mut course, ranks) = (course(2, now), ranks(2));
    let (verdict, steps) = course.interrupt(Signal::SIGINT, false).unwrap();
    assert_eq!(steps.len(), 3);
    assert!(course.fail(&ranks, verdict, steps, now).is_some());
    assert!(course.interrupt(Signal::SIGINT, false).is_none());
    let orders = course.end(&[Signal::SIGKILL], true, now);
    assert!(matches!(&orders[..], [Order::Say(line), Order::End(_)] if !line.with_others));
    let code = course.verdict().map(|verdict| verdict.cause.exit_code());
    assert_eq!(code, Some(130));
}

#[test]
fn a_rank_that_fails_past_mpi_finalize_ends_no_other() {
    let now = Instant::now();
    let (mut course, mut ranks) = (course(2, now), ranks(2));
    ranks[0].finalized = true;
    ranks[0].ended(ProcessExit::Code(3), true);
    let judged = course.judge(&ranks, 0, Cause::Exit { code: 3 });
    assert!(matches!(judged, Judgement::Line(_)));
    assert!(!course.is_ending());
    ranks[1].ended(ProcessExit::Code(0), true);
    let judged = course.judge(&ranks, 1, Cause::NoFinalize);
    assert!(matches!(judged, Judgement::End(_)));
    let code = course.verdict().map(|verdict| verdict.cause.exit_code());
    assert_eq!(code, Some(3), "the first failure");
}

#[test]
fn a_deadlock_is_of_no_rank_and_waits_for_all_reports() {
    let now = Instant::now();
    let (mut course, mut ranks) = (course(2, now), ranks(2));
    ranks[1].deadlocked = true;
    let Judgement::End(verdict) = course.judge(&ranks, 1, Cause::Exit { code: 6 }) else {
        panic!("a failure");
    };
    assert!(verdict.rank.is_none());
    course.fail(&ranks, verdict, TERMINATE, now);
    assert_eq!(course.check(&ranks, now + LAST_WORDS), []);
    ranks[0].deadlocked = true;
    assert_eq!(course.check(&ranks, now + LAST_WORDS).len(), 2);
}

#[test]
fn ranks_that_leave_others_behind_are_found() {
    let now = Instant::now();
    let (course, mut ranks) = (course(2, now), ranks(2));
    assert!(course.early_leaver(&ranks, |_| true).is_none());
    ranks[0].finalized = true;
    ranks[0].ended(ProcessExit::Code(0), true);
    let found = course.early_leaver(&ranks, |rank| rank == 0);
    assert!(matches!(found, Some((0, Cause::LeftFence))));
    assert!(course.early_leaver(&ranks, |_| false).is_none());
    ranks[0].init = None;
    let found = course.early_leaver(&ranks, |_| false);
    assert!(matches!(found, Some((0, Cause::NoInit))));
}

#[test]
fn the_time_of_a_job_ends_once() {
    let now = Instant::now();
    let mut course = course(1, now);
    assert!(course.time_out(now).is_none());
    let end = course.next().unwrap();
    assert_eq!(end, now + Duration::from_secs(60));
    let verdict = course.time_out(end).unwrap();
    assert_eq!(verdict.cause.exit_code(), 124);
    assert!(course.time_out(end).is_none());
}

#[test]
fn a_standstill_is_reported_and_ends_nothing() {
    let now = Instant::now();
    let patience = Duration::from_secs(4);
    let mut course = Course::new(None, Some(patience), 1, now);
    let mut ranks = ranks(1);
    let mut reports = Vec::new();
    let mut at = now;
    for _ in 0..12 {
        at = course.next().unwrap();
        for order in course.check(&ranks, at) {
            match order {
                Order::AskStatus => ranks[0].answer = Some(RankStatus::default()),
                Order::Report(title) => reports.push(title),
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(at > now + patience && !course.is_ending());
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(reports[0].starts_with("no rank made progress for "));
}
