use std::{future::poll_fn, task::Poll};

/// Runs futures side by side, and returns what each resolved to, in order.
pub(super) async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, output) in running.iter_mut().filter(|(_, output)| output.is_none()) {
            if let Poll::Ready(resolved) = future.as_mut().poll(context) {
                *output = Some(resolved);
            }
        }
        if running.iter().any(|(_, output)| output.is_none()) {
            return Poll::Pending;
        }
        Poll::Ready(running.drain(..).filter_map(|(_, output)| output).collect())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, task::Context};

    use super::*;

    #[test]
    fn futures_run_side_by_side_and_answer_in_order() {
        let mut context = Context::from_waker(std::task::Waker::noop());
        let late = |turns: u32| {
            let mut left = turns;
            poll_fn(move |_| {
                left -= 1;
                if left == 0 { Poll::Ready(turns) } else { Poll::Pending }
            })
        };
        let mut running = pin!(all([late(3), late(1), late(2)].into_iter()));
        assert!(running.as_mut().poll(&mut context).is_pending());
        assert!(running.as_mut().poll(&mut context).is_pending());
        assert_eq!(running.as_mut().poll(&mut context), Poll::Ready(vec![3, 1, 2]));
    }
}
