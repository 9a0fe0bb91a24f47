//! A task whose future a lone caller polls itself.
//!
//! A caller that asks a task, and waits for its answer, wakes the task and is woken by it. On several
//! threads, tokio wakes another thread each time, which costs as much as the rest of a call. So a [`Caller`]
//! polls the future of the task itself while no other caller waits. What the future starts, awaits and owns
//! is the same. Whatever answers a caller must be awaited by the future: nothing else wakes a caller that
//! drives.
//!
//! | if … | then … |
//! |---|---|
//! | several callers wait | the task polls its future, so that what they ask for is sent together |
//! | the caller is dropped | the task polls its future |
//! | the caller is no longer polled, and not dropped either | the task polls its future when another caller comes, and after two looks at the latest |
//! | the caller waits for longer than that | the same |
//! | the caller runs in another runtime, or moves there | the task polls its future: the timers in it belong to its runtime |
//! | the future panics | it is dropped, callers get the end of their channels, and `on_panic` the text |
//! | the task is dropped with its runtime | its future is dropped with it |

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
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

/// The shortest interval at which the task checks on a caller that polls its future.
pub(crate) const LOOK: Duration = Duration::from_millis(100);
/// How often a caller polls the future in a row if that wakes itself. Then the task goes on.
const IN_A_ROW: usize = 4;

/// The handle of such a task, for its callers.
#[derive(Clone)]
pub(crate) struct Driver(Arc<Shared>);

struct Shared {
    callers: Callers,
    /// The future was woken after its last poll began. The task or caller that polls it now checks this
    /// afterwards. If neither does, the driving caller was woken, or the task if no caller drives.
    is_woken: AtomicBool,
    state: Mutex<State>,
    on_panic: OnPanic,
}

/// Hears what a panic says.
type OnPanic = Box<dyn Fn(&(dyn Any + Send)) + Send + Sync>;

/// They decide who drives, and nothing else. So callers of several threads need no lock as long as nobody
/// does.
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
    /// The caller that drives it: its number, and what wakes it.
    driving: Option<(u64, Waker)>,
    /// Whether the task checks on the caller that drives.
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

impl Driver {
    /// The driver of a future, and the task, which checks on a caller that drives at this interval.
    pub(crate) fn new(
        future: impl Future<Output = ()> + Send + 'static,
        look: Duration,
        on_panic: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static,
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
            on_panic: Box::new(on_panic),
        });
        let ends = EndOnDrop(shared.clone());
        let task = async move {
            let shared = &ends.0;
            shared.state().runtime = here();
            let mut watch = Watch { look, next: None };
            poll_fn(|cx| shared.poll_task(cx, &mut watch)).await;
        };
        (Self(shared), task)
    }

    /// A new caller, which asks the task for something and waits for the answer.
    pub(crate) fn caller(&self) -> Caller {
        Caller { driver: self.clone(), number: 0, is_alone: false, drives: false }
    }
}

fn here() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|here| here.id())
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// A caller. It waits for an answer of the task, from its first poll on. Dropping it lets the task go on by
/// itself.
#[derive(Debug)]
pub(crate) struct Caller {
    driver: Driver,
    /// 0 before it comes, and when it has left.
    number: u64,
    /// Nobody else waited when it came. If nobody came since, the next one may drive.
    is_alone: bool,
    /// Whether it drove when it was last polled.
    drives: bool,
}

impl Caller {
    /// Asks the task for something, if there is something to ask for, and polls the future if this caller
    /// drives. Returns whether it does: then it is woken with the future, and not with its answer.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, ask: impl FnOnce()) -> bool {
        if self.number == 0 {
            let Callers { waiting, count, are_several } = &self.driver.0.callers;
            self.number = count.fetch_add(1, Relaxed) + 1;
            self.is_alone = waiting.fetch_add(1, AcqRel) == 0;
            if self.is_alone {
                self.drives = self.driver.0.drive(self.number, cx);
            } else if !are_several.swap(true, AcqRel) {
                self.driver.0.release();
            }
        }
        let Self { driver: Driver(shared), number, drives, .. } = self;
        if *drives && shared.begin(*number, cx) {
            let asked = catch_unwind(AssertUnwindSafe(ask));
            shared.poll_future(By::Caller);
            asked.unwrap_or_else(|panic| resume_unwind(panic));
        } else {
            ask();
        }
        *drives = *drives && shared.state().is_driven_by(*number);
        *drives
    }

    /// It has its answer, or does not wait for it.
    pub(crate) fn leave(&mut self) {
        let Self { driver: Driver(shared), number, is_alone, drives } = self;
        if *number == 0 {
            return;
        }
        let number = std::mem::take(number);
        let Callers { waiting, count, are_several } = &shared.callers;
        waiting.fetch_sub(1, AcqRel);
        if *is_alone && count.load(Relaxed) == number {
            are_several.store(false, Relaxed);
        }
        if !*drives {
            return;
        }
        let mut state = shared.state();
        let driving = state.driving.take_if(|(driving, _)| *driving == number);
        let task = if driving.is_some() { shared.responsible(&state) } else { None };
        drop(state);
        // Its own waker is not needed any more.
        drop(driving);
        task.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.leave();
    }
}

/// An answer of the task; `None` if it gives none. A caller that drives is woken with the future, and need
/// not be woken for the answer.
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

/// The runtime may end before the future does.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        let Self(shared) = self;
        let mut state = shared.state();
        state.is_over = true;
        let future = state.future.take();
        drop(state);
        // What it has not answered is answered by this.
        drop(future);
        shared.release();
    }
}

impl State {
    fn is_driven_by(&self, number: u64) -> bool {
        self.driving.as_ref().is_some_and(|(driving, _)| *driving == number)
    }
}

/// When the task looks at the callers, and how many there had been when it did so last.
struct Watch {
    look: Duration,
    next: Option<(u64, Pin<Box<Sleep>>)>,
}

impl Watch {
    /// Whether a caller has driven for longer than between two looks. Any other one that came would have
    /// ended that.
    fn is_over(&mut self, shared: &Shared, state: &mut State, cx: &mut Context<'_>) -> bool {
        loop {
            let count = shared.callers.count.load(Relaxed);
            match &mut self.next {
                None if !state.is_watching => return false,
                None => self.next = Some((count, Box::pin(sleep(self.look)))),
                Some((seen, next)) => {
                    if next.as_mut().poll(cx).is_pending() {
                        return false;
                    }
                    if *seen == count {
                        self.next = None;
                        state.is_watching = false;
                        return true;
                    }
                    *seen = count;
                    next.as_mut().reset(Instant::now() + self.look);
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
        let waker = state.driving.as_ref().map(|(_, waker)| waker).or(state.task.as_ref());
        waker.cloned().filter(|_| is_due)
    }

    /// No caller drives any more. The one that did is woken, and waits for its answer in another way.
    fn release(&self) {
        let mut state = self.state();
        let driving = state.driving.take();
        let task = self.responsible(&state);
        drop(state);
        driving.map(|(_, waker)| waker).into_iter().chain(task).for_each(Waker::wake);
    }

    /// Lets a caller drive that is alone, unless others have come since.
    fn drive(&self, number: u64, cx: &Context<'_>) -> bool {
        let Callers { waiting, are_several, .. } = &self.callers;
        if are_several.load(Relaxed) {
            return false;
        }
        let mut state = self.state();
        let is_alone = state.driving.is_none() && !are_several.load(Acquire) && waiting.load(Acquire) == 1;
        if !is_alone || state.is_over || state.runtime.is_none() || here() != state.runtime {
            return false;
        }
        state.driving = Some((number, cx.waker().clone()));
        let is_watching = std::mem::replace(&mut state.is_watching, true);
        let task = if is_watching { None } else { state.task.clone() };
        drop(state);
        task.into_iter().for_each(Waker::wake);
        true
    }

    /// Whether this caller drives, and nobody polls the future now. From then on, what wakes it wakes nobody.
    fn begin(&self, number: u64, cx: &Context<'_>) -> bool {
        let mut state = self.state();
        let Some((_, waker)) = state.driving.as_mut().filter(|(driving, _)| *driving == number) else {
            return false;
        };
        let is_known = waker.will_wake(cx.waker());
        let earlier = if is_known { None } else { Some(std::mem::replace(waker, cx.waker().clone())) };
        let is_at_home = here() == state.runtime;
        let begins = is_at_home && state.polled_by.is_none();
        if begins {
            state.polled_by = Some(By::Caller);
        }
        drop(state);
        // Without the lock: with the last waker of a task, an executor may drop the task.
        drop(earlier);
        if !is_at_home {
            self.release();
        }
        begins
    }

    fn poll_task(self: &Arc<Self>, cx: &mut Context<'_>, watch: &mut Watch) -> Poll<()> {
        let mut state = self.state();
        match &mut state.task {
            Some(task) => task.clone_from(cx.waker()),
            task => *task = Some(cx.waker().clone()),
        }
        let driving = if watch.is_over(self, &mut state, cx) { state.driving.take() } else { None };
        let polls = state.driving.is_none() && state.polled_by.is_none() && self.is_woken.load(Acquire);
        if polls {
            state.polled_by = Some(By::Task);
        }
        drop(state);
        driving.into_iter().for_each(|(_, waker)| waker.wake());
        if polls {
            self.poll_future(By::Task);
        }
        if self.state().is_over { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Polls the future if it was woken; `polled_by` is set. For a caller, it does so again if the future
    /// wakes itself: to wake the caller for that would wake another thread. The task ends its turn instead,
    /// because the future may want to let others run.
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
        let is_left = self.is_woken.load(Acquire) || state.is_over;
        match by {
            // The task goes on, and the caller waits for its answer in another way.
            By::Caller if is_left => {
                drop(state);
                self.release();
            }
            By::Caller => {}
            // It is woken if there is more to do. The answer for a caller that drives may have come with
            // this.
            By::Task => {
                let driving = state.driving.as_ref().map(|(_, waker)| waker.clone());
                drop(state);
                driving.into_iter().for_each(Waker::wake);
            }
        }
        if let Some(Err(panic)) = over {
            (self.on_panic)(&*panic);
        }
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
            // It looks at that when it has polled the future.
            Some(By::Caller) => None,
            None => self.responsible(&state),
        };
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests;
