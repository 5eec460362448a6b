//! The concurrent execution of two futures of one collective operation.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use crate::Result;

/// Drives two futures of an operation until both have ended or one has failed.
pub(super) async fn both(
    one: impl Future<Output = Result<()>>,
    other: impl Future<Output = Result<()>>,
) -> Result<()> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    let (mut first, mut second) = (None, None);
    poll_fn(move |context| {
        if first.is_none()
            && let Poll::Ready(result) = one.as_mut().poll(context)
        {
            first = Some(result);
        }
        if second.is_none()
            && let Poll::Ready(result) = other.as_mut().poll(context)
        {
            second = Some(result);
        }
        match (&first, &second) {
            (Some(Err(_)), _) | (_, Some(Err(_))) | (Some(_), Some(_)) => {
                let first = first.take().unwrap_or(Ok(()));
                Poll::Ready(first.and(second.take().unwrap_or(Ok(()))))
            }
            _ => Poll::Pending,
        }
    })
    .await
}
