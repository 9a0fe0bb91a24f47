//! A future that is polled again at once if it was woken while it was polled.
//!
//! A runner that receives polls the task of its receiver (see [`driver`](crate::driver)), and so it answers
//! its own last settlement, which wakes it. On several threads, tokio wakes another thread for that.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::BoxFuture;

/// The future of a task. It is polled twice in a row at most: one that always wakes itself lets others run.
pub(super) struct Repolled<T> {
    future: BoxFuture<'static, T>,
    shared: Arc<Shared>,
}

struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    is_polled: bool,
    /// It was woken while it was polled.
    is_woken: bool,
    task: Option<Waker>,
}

impl<T> Repolled<T> {
    pub(super) fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Self { future: Box::pin(future), shared: Arc::new(Shared(Mutex::default())) }
    }
}

impl<T> Future for Repolled<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Self { future, shared } = &mut *self;
        let waker = Waker::from(shared.clone());
        for is_last in [false, true] {
            shared.begin(cx);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(output);
            }
            if !shared.end() {
                break;
            }
            if is_last {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, cx: &Context<'_>) {
        let mut state = self.state();
        state.is_polled = true;
        state.is_woken = false;
        match &mut state.task {
            Some(task) => task.clone_from(cx.waker()),
            task => *task = Some(cx.waker().clone()),
        }
    }

    /// Whether it was woken since the poll began.
    fn end(&self) -> bool {
        let mut state = self.state();
        state.is_polled = false;
        state.is_woken
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.state();
        let task = if state.is_polled { None } else { state.task.clone() };
        state.is_woken = true;
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;

    use futures::FutureExt;
    use futures::task::{ArcWake, waker};
    use tokio::sync::oneshot;

    use super::*;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl ArcWake for Wakes {
        fn wake_by_ref(wakes: &Arc<Self>) {
            wakes.0.fetch_add(1, SeqCst);
        }
    }

    /// Polls it once. Returns how often the task was woken by that.
    fn poll<T>(future: &mut Repolled<T>, wakes: &Arc<Wakes>) -> (Poll<T>, usize) {
        let before = wakes.0.load(SeqCst);
        let polled = future.poll_unpin(&mut Context::from_waker(&waker(wakes.clone())));
        (polled, wakes.0.load(SeqCst) - before)
    }

    #[test]
    fn what_wakes_itself_is_polled_again_without_the_scheduler() {
        let wakes = Arc::<Wakes>::default();
        let (answer, mut answered) = oneshot::channel();
        let mut answer = Some(answer);
        let mut future = Repolled::new(poll_fn(move |cx| {
            let polled = answered.poll_unpin(cx);
            if let Some(answer) = answer.take() {
                answer.send(7).unwrap();
            }
            polled
        }));
        assert_eq!(poll(&mut future, &wakes), (Poll::Ready(Ok(7)), 0));
    }

    #[test]
    fn what_wakes_itself_always_lets_others_run() {
        let wakes = Arc::<Wakes>::default();
        let polls = Arc::<Wakes>::default();
        let mut future = Repolled::new(poll_fn({
            let polls = polls.clone();
            move |cx| {
                polls.0.fetch_add(1, SeqCst);
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            }
        }));
        assert_eq!(poll(&mut future, &wakes), (Poll::Pending, 1));
        assert_eq!(polls.0.load(SeqCst), 2);
    }

    #[test]
    fn whoever_wakes_it_later_wakes_its_task() {
        let wakes = Arc::<Wakes>::default();
        let (answer, answered) = oneshot::channel();
        let mut future = Repolled::new(answered);
        assert_eq!(poll(&mut future, &wakes), (Poll::Pending, 0));
        thread::spawn(|| answer.send(7).unwrap()).join().unwrap();
        assert_eq!(wakes.0.load(SeqCst), 1);
        assert_eq!(poll(&mut future, &wakes), (Poll::Ready(Ok(7)), 0));
    }

    #[test]
    fn a_task_that_moves_is_woken_where_it_is() {
        let (first, second) = (Arc::<Wakes>::default(), Arc::<Wakes>::default());
        let (answer, answered) = oneshot::channel::<u8>();
        let mut future = Repolled::new(async {
            let _ = answered.await;
            pending::<()>().await;
        });
        assert!(poll(&mut future, &first).0.is_pending());
        assert!(poll(&mut future, &second).0.is_pending());
        drop(answer);
        assert_eq!((first.0.load(SeqCst), second.0.load(SeqCst)), (0, 1));
    }
}
