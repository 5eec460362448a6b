//! The tests that every device passes. None of them measures time.

mod connections;
pub mod makers;
mod messages;
mod requests;

use std::sync::Arc;

use device::*;

use crate::ends::*;
pub use connections::*;
pub use makers::Maker;
pub use messages::*;
pub use requests::*;

const SEND: Operation = Operation::Send { immediate: None };

/// Runs a body in two connected ranks.
fn two(
    maker: &dyn Maker,
    wish: Wish,
    body: impl Fn(&mut dyn Node, &mut End, usize) + Send + Sync + 'static,
) {
    maker.run(wish, Arc::new(body));
}

fn write_to(end: &End, at: usize) -> Operation {
    Operation::Write {
        to: end.remote(at),
        immediate: None,
    }
}

/// The ids and statuses of the next `count` completions.
fn statuses(node: &mut dyn Node, end: &End, count: usize) -> Vec<(u64, Status)> {
    let next = |_| {
        let one = end.completion(node);
        (one.id, one.status)
    };
    (0..count).map(next).collect()
}

/// Waits until a queue pair is in a state.
fn comes_to(node: &mut dyn Node, end: &End, state: State) {
    wait_for(node, |node| {
        let device = node.rail(end.rail);
        // Some devices notice only when polled.
        device.poll(end.cq, &mut []).unwrap();
        (device.state(end.qp).unwrap() == state).then_some(())
    });
}

/// A device without datagrams and unreliable connections refuses a queue pair of this service.
fn is_refused(maker: &dyn Maker, transport: Transport) {
    two(maker, Wish::default(), move |node, end, _| {
        let device = node.rail(0);
        assert!(!device.attributes().datagrams);
        let wanted = QpWanted {
            transport,
            send_cq: end.cq,
            receive_cq: end.cq,
            srq: None,
            sends: 4,
            receives: 4,
            inline: 0,
        };
        let refused = device.create_qp(&wanted);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    });
}

/// Makes a module of tests: each test of the suite, with each of the makers. The attributes go to
/// every test.
#[macro_export]
macro_rules! device_suite {
    ($name:ident, $makers:expr $(, #[$attribute:meta])* $(,)?) => {
        mod $name {
            use super::*;

            $crate::device_suite! { @tests $makers, [$(#[$attribute])*]
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
                invalid_calls_are_refused
                words_arrive_in_order_and_whole
                whoever_waits_is_woken
                what_comes_after_arming_raises_an_event
            }
        }
    };
    (@tests $makers:expr, $attributes:tt $($test:ident)*) => {
        $($crate::device_suite! { @test $makers, $attributes $test })*
    };
    (@test $makers:expr, [$(#[$attribute:meta])*] $test:ident) => {
        #[test]
        $(#[$attribute])*
        fn $test() {
            for maker in $makers {
                println!("{maker:?}");
                $crate::suite::$test(&maker);
            }
        }
    };
}
