//! Tests of the schedule.
