use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// Polls a future at most `n` times and drops it right after the last; its output if it got there.
pub(crate) async fn at_most_polls<F: Future>(n: usize, future: F) -> Option<F::Output> {
    let (mut future, mut left) = (Box::pin(future), n);
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Polls a future once, for nobody: it is not told when to poll again.
pub(crate) fn poll_once<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
