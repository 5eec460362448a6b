//! What the trait promises, on every device: the same tests for each, listed once, below.
//!
//! The tests of `verbs` need RDMA devices and are ignored where none are asked for: `cargo test -- --ignored` runs them,
//! and they fail where there is no device. `verbs_loopback` uses the first device with itself, `verbs` the first with the
//! one that FISHPLATE_TEST_PEER names, which must be reachable from it.

mod common;
mod suite;

/// Each test for each maker of two connected ranks.
macro_rules! on_every_device {
    ($($test:ident)*) => {
        mod model {
            $(#[test] fn $test() { crate::suite::$test(&crate::suite::makers::Model); })*
        }
        mod strict {
            $(#[test] fn $test() {
                for maker in crate::suite::makers::Instant::all() {
                    println!("{maker:?}");
                    crate::suite::$test(&maker);
                }
            })*
        }
        mod verbs {
            $(#[test] #[ignore = "needs RDMA devices: `make test-verbs` runs it, in a machine that has them"] fn $test() {
                crate::suite::$test(&crate::suite::makers::Verbs { peer: true });
            })*
        }
        mod verbs_loopback {
            $(#[test] #[ignore = "needs an RDMA device: `make test-verbs` runs it, in a machine that has one"] fn $test() {
                crate::suite::$test(&crate::suite::makers::Verbs { peer: false });
            })*
        }
    };
}

on_every_device! {
    only_signaled_requests_complete_and_in_order
    a_full_queue_takes_more_only_when_completions_have_been_taken
    bytes_land_where_they_should
    no_bytes_are_a_message_too
    long_messages_are_whole
    inline_payload_has_been_read_when_it_is_posted
    a_peer_may_do_what_it_was_given_and_no_more
    what_is_deregistered_is_left_alone
    a_wrong_local_key_fails_here
    sends_find_receives_in_order_and_wait_for_them
    a_receive_that_is_too_small_fails_at_both_ends
    a_write_with_immediate_uses_up_a_receive
    many_messages_keep_their_order
    a_peer_that_has_failed_is_given_up
    what_is_posted_to_a_queue_pair_in_error_is_flushed
    a_queue_pair_comes_back_from_reset
    a_queue_pair_that_is_gone_says_nothing
    atomics_change_memory_once_and_bring_the_old_value
    datagrams_bring_their_payload_and_nothing_else
    an_unreliable_connection_carries_writes_and_sends
    a_shared_receive_queue_serves_every_queue_pair
    what_cannot_be_is_refused
    words_arrive_in_order_and_whole
    whoever_waits_is_woken
    what_comes_after_arming_raises_an_event
}
