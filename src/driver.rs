//! A task whose future a lone caller polls itself.
//!
//! A caller that asks a task, and waits for its answer, wakes the task and is woken by it. On several threads,
//! tokio wakes another thread each time, which costs as much as the rest of a call. So whoever waits for an
//! answer is a [`Caller`], and polls the future of the task while nobody else waits. The future does not
//! notice: what it starts, awaits and owns is the same.
//!
//! | if … | then … |
//! |---|---|
//! | several callers wait | the task polls its future, so that what they ask for is sent together |
//! | the caller is dropped | the task polls its future |
//! | the caller is no longer polled, and not dropped either | the task polls its future when another caller comes, and after 200 ms at the latest |
//! | the caller waits for long | the same |
//! | the caller runs in another runtime | the task polls its future: the timers in it belong to its runtime |
//! | the future panics | it is dropped, as that of any task |
//! | the task is dropped with its runtime | its future is dropped with it |

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::future::{BoxFuture, poll_fn};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::time::{Instant, Sleep, sleep};

/// How often the task looks after a caller that polls its future.
const LOOK: Duration = Duration::from_millis(100);
/// How often a caller polls the future in a row if that wakes itself. Then the task goes on.
const IN_A_ROW: usize = 4;

/// The handle of such a task, for its callers.
#[derive(Clone)]
pub(crate) struct Driver(Arc<Shared>);

struct Shared {
    callers: Callers,
    /// The future was woken since it was last polled. If nobody polls it now, the caller that drives it was
    /// woken for it, or has yet to be polled for the first time; without such a caller, the task was.
    is_woken: AtomicBool,
    state: Mutex<State>,
}

/// They decide who drives, and nothing else. So callers of several threads need no lock as long as nobody does.
#[derive(Default)]
struct Callers {
    /// Those that wait.
    waiting: AtomicUsize,
    /// All so far.
    count: AtomicU64,
    /// Whether callers have waited at the same time, and none has been alone since then.
    are_several: AtomicBool,
}

struct State {
    /// `None` while it is polled, and after its end.
    future: Option<BoxFuture<'static, ()>>,
    polled_by: Option<By>,
    is_over: bool,
    /// The caller that drives it.
    driving: Option<Driving>,
    /// Whether the task looks after the caller that drives.
    is_watching: bool,
    task: Option<Waker>,
    /// Where the task runs.
    runtime: Option<runtime::Id>,
}

/// Who polls the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Task,
    Caller,
}

struct Driving {
    number: u64,
    /// `None` until it is polled for the first time.
    waker: Option<Waker>,
}

impl Driver {
    /// The driver of a future, and the task.
    pub(crate) fn new(
        future: impl Future<Output = ()> + Send + 'static,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let shared = Arc::new(Shared {
            callers: Callers::default(),
            is_woken: AtomicBool::new(true),
            state: Mutex::new(State {
                future: Some(Box::pin(future)),
                polled_by: None,
                is_over: false,
                driving: None,
                is_watching: false,
                task: None,
                runtime: None,
            }),
        });
        let ends = EndOnDrop(shared.clone());
        let task = async move {
            let shared = &ends.0;
            shared.state().runtime = Some(Handle::current().id());
            let mut watch = Watch::default();
            poll_fn(|cx| shared.poll_task(cx, &mut watch)).await;
        };
        (Self(shared), task)
    }

    /// Somebody will ask the task for something, and wait for the answer.
    pub(crate) fn caller(&self) -> Caller {
        Caller { driver: self.clone(), number: 0, is_alone: false, is_counted: false, drives: false }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// One that waits for an answer of the task, from its first question or poll on. Dropping it lets the task go
/// on by itself.
#[derive(Debug)]
pub(crate) struct Caller {
    driver: Driver,
    /// 0 before it comes, and when it has left.
    number: u64,
    /// Nobody else waited when it came.
    is_alone: bool,
    /// It is one of those that wait.
    is_counted: bool,
    /// It drives, as far as it knows.
    drives: bool,
}

impl Caller {
    /// Asks the task for something. If this caller drives, that wakes nobody: it is to be polled next.
    pub(crate) fn ask<R>(&mut self, ask: impl FnOnce() -> R) -> R {
        self.come();
        let Self { driver: Driver(shared), number, drives, .. } = self;
        let _asking = (*drives && shared.begin(*number)).then(|| Asking(shared, *number));
        ask()
    }

    /// Polls the future if it was woken and this caller drives. Returns whether this task is woken with the
    /// future from now on, so that it need not wait for the answer in another way.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        self.come();
        let Self { driver: Driver(shared), number, is_counted, drives, .. } = self;
        if !*drives {
            return false;
        }
        let mut state = shared.state();
        let Some(driving) = &mut state.driving else {
            *drives = false;
            return false;
        };
        if driving.number != *number {
            // Another caller of the same task may have come since, and drives for both.
            return driving.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        }
        if !std::mem::replace(is_counted, true) {
            shared.callers.waiting.fetch_add(1, Relaxed);
        }
        let is_known = driving.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        let earlier = if is_known { None } else { driving.waker.replace(cx.waker().clone()) };
        drop(state);
        // Without the lock: with the last waker of a task, an executor may drop the task.
        drop(earlier);
        if shared.begin(*number) {
            shared.poll_future(By::Caller);
        }
        shared.state().is_driven_by(*number)
    }

    fn come(&mut self) {
        if self.number > 0 {
            return;
        }
        let Driver(shared) = &self.driver;
        let Callers { waiting, count, are_several } = &shared.callers;
        self.number = count.fetch_add(1, Relaxed) + 1;
        // One that has asked, and was not polled so far, is no company: the next one drives for both.
        self.is_alone = waiting.load(Relaxed) == 0;
        self.drives = !are_several.load(Relaxed) && shared.drive(self.number, self.is_alone);
        self.is_counted = !self.drives;
        waiting.fetch_add(usize::from(self.is_counted), Relaxed);
    }

    /// It has its answer, or does not wait for it.
    pub(crate) fn leave(&mut self) {
        let Self { driver: Driver(shared), number, is_alone, is_counted, drives } = self;
        if *number == 0 {
            return;
        }
        let number = std::mem::take(number);
        let Callers { waiting, count, are_several } = &shared.callers;
        waiting.fetch_sub(usize::from(*is_counted), Relaxed);
        if *is_alone && count.load(Relaxed) == number {
            are_several.store(false, Relaxed);
        }
        if !*drives {
            return;
        }
        let mut state = shared.state();
        let Wakers { caller, task } = match state.is_driven_by(number) {
            true => shared.release(&mut state),
            false => Wakers::default(),
        };
        drop(state);
        // Its own waker is not needed any more.
        drop(caller);
        task.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.leave();
    }
}

/// An answer of the task; `None` if it gives none. A caller that drives is woken with the future, and need not
/// be woken for the answer.
pub(crate) fn poll_answer<T>(
    answer: &mut oneshot::Receiver<T>,
    cx: &mut Context<'_>,
    is_driving: bool,
) -> Poll<Option<T>> {
    if !is_driving {
        return Pin::new(answer).poll(cx).map(Result::ok);
    }
    match answer.try_recv() {
        Err(TryRecvError::Empty) => Poll::Pending,
        Err(TryRecvError::Closed) => Poll::Ready(None),
        Ok(answer) => Poll::Ready(Some(answer)),
    }
}

/// A caller that drives asks for something.
struct Asking<'a>(&'a Shared, u64);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let Self(shared, number) = self;
        let mut state = shared.state();
        state.polled_by = None;
        let waker = if state.is_driven_by(*number) { None } else { shared.responsible(&state) };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// The runtime may end before the future does.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let Self(shared) = self;
        let mut state = shared.state();
        state.is_over = true;
        let future = state.future.take();
        let wakers = shared.release(&mut state);
        drop(state);
        // What it has not answered is answered by this.
        drop(future);
        wakers.wake();
    }
}

impl State {
    fn is_driven_by(&self, number: u64) -> bool {
        self.driving.as_ref().is_some_and(|driving| driving.number == number)
    }
}

/// What to wake when the lock is released.
#[derive(Default)]
struct Wakers {
    caller: Option<Waker>,
    task: Option<Waker>,
}

impl Wakers {
    fn wake(self) {
        self.caller.into_iter().chain(self.task).for_each(Waker::wake);
    }
}

/// When the task looks at the callers, and how many there had been when it did so last.
#[derive(Default)]
struct Watch(Option<(u64, Pin<Box<Sleep>>)>);

impl Watch {
    /// Takes over from a caller that has driven for longer than between two looks. Returns whom to wake.
    fn poll(&mut self, shared: &Shared, state: &mut State, cx: &mut Context<'_>) -> Wakers {
        loop {
            let count = shared.callers.count.load(Relaxed);
            match &mut self.0 {
                None if !state.is_watching => return Wakers::default(),
                None => self.0 = Some((count, Box::pin(sleep(LOOK)))),
                Some((seen, look)) => {
                    if look.as_mut().poll(cx).is_pending() {
                        return Wakers::default();
                    }
                    if *seen == count {
                        self.0 = None;
                        state.is_watching = false;
                        return shared.release(state);
                    }
                    *seen = count;
                    look.as_mut().reset(Instant::now() + LOOK);
                }
            }
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who is to poll the future, if it was woken and nobody polls it now.
    fn responsible(&self, state: &State) -> Option<Waker> {
        let is_due = state.is_over || state.polled_by.is_none() && self.is_woken.load(Acquire);
        let waker = state.driving.as_ref().map_or(&state.task, |driving| &driving.waker);
        waker.clone().filter(|_| is_due)
    }

    /// No caller drives any more. The one that did is woken, and waits for its answer in another way.
    fn release(&self, state: &mut State) -> Wakers {
        let caller = state.driving.take().and_then(|driving| driving.waker);
        Wakers { caller, task: self.responsible(state) }
    }

    /// Lets a caller drive, if it is alone. If it is not, nobody drives any more.
    fn drive(&self, number: u64, is_alone: bool) -> bool {
        let here = Handle::try_current().ok().map(|here| here.id());
        let mut state = self.state();
        // It may have been polled since this one has looked.
        let is_alone = is_alone && state.driving.as_ref().is_none_or(|driving| driving.waker.is_none());
        let drives = is_alone && !state.is_over && here.is_some() && here == state.runtime;
        let mut wakers = Wakers::default();
        if drives {
            state.driving = Some(Driving { number, waker: None });
            if !std::mem::replace(&mut state.is_watching, true) {
                wakers.task = state.task.clone();
            }
        } else if !is_alone {
            self.callers.are_several.store(true, Relaxed);
            wakers = self.release(&mut state);
        }
        drop(state);
        wakers.wake();
        drives
    }

    /// Whether this caller drives, and nobody polls the future now. From then on, what wakes it wakes nobody.
    fn begin(&self, number: u64) -> bool {
        let mut state = self.state();
        let begins = state.is_driven_by(number) && state.polled_by.is_none();
        if begins {
            state.polled_by = Some(By::Caller);
        }
        begins
    }

    fn poll_task(self: &Arc<Self>, cx: &mut Context<'_>, watch: &mut Watch) -> Poll<()> {
        let mut state = self.state();
        match &mut state.task {
            Some(task) => task.clone_from(cx.waker()),
            task => *task = Some(cx.waker().clone()),
        }
        let wakers = watch.poll(self, &mut state, cx);
        let polls = state.driving.is_none() && state.polled_by.is_none() && self.is_woken.load(Acquire);
        if polls {
            state.polled_by = Some(By::Task);
        }
        drop(state);
        wakers.caller.into_iter().for_each(Waker::wake);
        if polls {
            self.poll_future(By::Task);
        }
        if self.state().is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Polls the future if it was woken. For a caller, it does so again if the future wakes itself: to wake
    /// the caller for that would wake another thread. The task ends its turn instead, because the future may
    /// want to let others run.
    fn poll_future(self: &Arc<Self>, by: By) {
        let waker = Waker::from(self.clone());
        let mut left = if by == By::Task { 1 } else { IN_A_ROW };
        let mut over = None;
        let mut state = self.state();
        while left > 0
            && self.is_woken.swap(false, AcqRel)
            && let Some(mut future) = state.future.take()
        {
            left -= 1;
            drop(state);
            let polled = catch_unwind(AssertUnwindSafe(|| {
                let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
                (polled, future)
            }));
            state = self.state();
            match polled {
                Ok((Poll::Pending, future)) if !state.is_over => state.future = Some(future),
                ended => {
                    state.is_over = true;
                    over = Some(ended);
                }
            }
        }
        state.polled_by = None;
        let wakers = match by {
            By::Caller if !self.is_woken.load(Acquire) && !state.is_over => Wakers::default(),
            // The caller waits for its answer in another way.
            By::Caller => self.release(&mut state),
            By::Task if state.is_over => self.release(&mut state),
            // The answer for a caller that drives may have come with this.
            By::Task => Wakers { caller: state.driving.as_ref().and_then(|by| by.waker.clone()), task: None },
        };
        drop(state);
        wakers.wake();
        drop(over);
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, AcqRel) {
            return;
        }
        let state = self.state();
        let waker = match state.polled_by {
            Some(By::Task) => state.task.clone(),
            // It looks when it has polled, or asked.
            Some(By::Caller) => None,
            None => self.responsible(&state),
        };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
