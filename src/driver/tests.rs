use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_test::task::{self, Spawn};
use tokio_test::{assert_pending, assert_ready_eq};

use super::*;

type Question = (u32, oneshot::Sender<u32>);

/// Asks a task that answers each question with its number.
struct Asker {
    driver: Driver,
    questions: UnboundedSender<Question>,
    /// How often the future was polled.
    polls: Arc<AtomicUsize>,
    panicked: Arc<OnceLock<&'static str>>,
}

/// A question and its answer.
struct Asked {
    caller: Caller,
    question: Option<Question>,
    questions: UnboundedSender<Question>,
    answer: oneshot::Receiver<u32>,
}

impl Future for Asked {
    type Output = Option<u32>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<u32>> {
        let Self { caller, question, questions, answer } = &mut *self;
        let is_driving = caller.poll(cx, || {
            let _ = question.take().map(|question| questions.send(question));
        });
        poll_answer(answer, cx, is_driving)
    }
}

impl Asker {
    fn start<F>(answers: impl FnOnce(UnboundedReceiver<Question>) -> F) -> (Self, JoinHandle<()>)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (questions, asked) = mpsc::unbounded_channel();
        let polls = Arc::<AtomicUsize>::default();
        let panicked = Arc::<OnceLock<&str>>::default();
        let (counted, mut answers) = (polls.clone(), Box::pin(answers(asked)));
        let (driver, task) = Driver::new(
            poll_fn(move |cx| {
                counted.fetch_add(1, Ordering::Relaxed);
                answers.as_mut().poll(cx)
            }),
            LOOK,
            {
                let panicked = panicked.clone();
                move |panic| panicked.set(*panic.downcast_ref::<&str>().unwrap()).unwrap()
            },
        );
        (Self { driver, questions, polls, panicked }, tokio::spawn(task))
    }

    /// It has been polled by its task, which waits now.
    async fn ready(answers: Duration) -> (Self, JoinHandle<()>) {
        let started = Self::start(move |asked| answer_each(asked, answers));
        tokio::time::sleep(Duration::from_millis(1)).await;
        started
    }

    fn ask(&self, number: u32) -> Asked {
        let (answer, receiver) = oneshot::channel();
        Asked {
            caller: self.driver.caller(),
            question: Some((number, answer)),
            questions: self.questions.clone(),
            answer: receiver,
        }
    }

    fn spawn(&self, number: u32) -> Spawn<Asked> {
        task::spawn(self.ask(number))
    }

    fn polls(&self) -> usize {
        self.polls.load(Ordering::Relaxed)
    }
}

async fn answer_each(mut asked: UnboundedReceiver<Question>, after: Duration) {
    while let Some((number, answer)) = asked.recv().await {
        if !after.is_zero() {
            sleep(after).await;
        }
        let _ = answer.send(number);
    }
}

const AT_ONCE: Duration = Duration::ZERO;
const LATER: Duration = Duration::from_millis(5);
const NEVER: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_lone_caller_polls_the_future_and_wakes_nothing() {
    let (asker, _task) = Asker::ready(AT_ONCE).await;
    let mut asked = asker.spawn(7);
    assert_ready_eq!(asked.poll(), Some(7));
    assert!(!asked.is_woken());
}

#[tokio::test(start_paused = true)]
async fn what_wakes_the_future_wakes_the_caller() {
    let (asker, _task) = Asker::ready(LATER).await;
    let mut asked = asker.spawn(7);
    assert_pending!(asked.poll());
    let polls = asker.polls();
    assert!(!asked.is_woken());
    sleep(2 * LATER).await;
    assert!(asked.is_woken());
    assert_eq!(asker.polls(), polls, "its task does not poll it");
    assert_ready_eq!(asked.poll(), Some(7));
}

#[tokio::test(start_paused = true)]
async fn the_task_goes_on_for_a_caller_that_is_dropped() {
    let (asker, _task) = Asker::ready(LATER).await;
    let mut dropped = asker.spawn(1);
    assert_pending!(dropped.poll());
    drop(dropped);
    let (answer, answered) = oneshot::channel();
    asker.questions.send((2, answer)).unwrap();
    assert_eq!(answered.await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn the_task_takes_over_from_a_caller_that_is_not_polled() {
    let (asker, _task) = Asker::ready(LATER).await;
    let mut stuck = asker.spawn(1);
    assert_pending!(stuck.poll());
    let (answer, answered) = oneshot::channel();
    asker.questions.send((2, answer)).unwrap();
    assert_eq!(timeout(3 * LOOK, answered).await, Ok(Ok(2)));
    assert!(stuck.is_woken());
    assert_ready_eq!(stuck.poll(), Some(1));
}

#[tokio::test(start_paused = true)]
async fn the_task_takes_over_when_another_caller_comes() {
    let (asker, _task) = Asker::ready(LATER).await;
    let mut first = asker.spawn(1);
    assert_pending!(first.poll());
    let begun = Instant::now();
    assert_eq!(asker.ask(2).await, Some(2));
    assert!(begun.elapsed() < LOOK);
    assert!(first.is_woken());
    assert_ready_eq!(first.poll(), Some(1));
}

/// The first of several that are answered at the same time asks again, and the others are about to.
#[tokio::test(start_paused = true)]
async fn after_several_callers_the_first_of_them_does_not_drive() {
    let (asker, _task) = Asker::ready(LATER).await;
    let answers = futures::future::join_all((0..3).map(|number| asker.ask(number))).await;
    assert_eq!(answers, [0, 1, 2].map(Some));
    let polls = asker.polls();
    let mut next = asker.spawn(3);
    assert_pending!(next.poll());
    assert_eq!(asker.polls(), polls, "its task polls it");
    assert_eq!(next.await, Some(3));
    let mut alone = asker.spawn(4);
    assert_pending!(alone.poll());
    assert!(asker.polls() > polls + 1, "the last one was alone, so this one drives");
}

/// While the task polls the future, which takes that long here, a caller comes and asks. The future is not
/// lost.
#[test]
fn a_caller_that_comes_while_the_task_polls_changes_nothing() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (polled, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let (questions, mut asked) = mpsc::unbounded_channel::<Question>();
    let mut is_first = true;
    let (driver, task) = Driver::new(
        poll_fn(move |cx| {
            // Not its first poll, which tells the callers where the task runs.
            if !std::mem::take(&mut is_first) {
                polled.send(()).unwrap();
                may_go_on.recv().unwrap();
            }
            while let Poll::Ready(Some((number, answer))) = asked.poll_recv(cx) {
                let _ = answer.send(number);
            }
            Poll::Pending
        }),
        LOOK,
        |_| (),
    );
    let task = runtime.spawn(task);
    while driver.0.state().runtime.is_none()
        || driver.0.state().polled_by.is_some()
        || driver.0.is_woken.load(Acquire)
    {
        thread::yield_now();
    }
    let (answer, _) = oneshot::channel();
    questions.send((1, answer)).unwrap();
    has_begun.recv().unwrap();
    let _here = runtime.enter();
    let (answer, mut answered) = oneshot::channel();
    let (mut caller, mut question) = (driver.caller(), Some((2, answer)));
    let mut waiting = task::spawn(poll_fn(|cx| {
        let is_driving = caller.poll(cx, || {
            let _ = question.take().map(|question| questions.send(question));
        });
        poll_answer(&mut answered, cx, is_driving)
    }));
    assert_pending!(waiting.poll());
    assert_eq!(driver.0.state().polled_by, Some(By::Task));
    (0..3).for_each(|_| go_on.send(()).unwrap());
    while !waiting.is_woken() {
        thread::yield_now();
    }
    assert_ready_eq!(waiting.poll(), Some(2));
    assert!(!task.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_future_that_wakes_itself_goes_on() {
    let (asker, _task) = Asker::start(|mut asked| async move {
        while let Some((number, answer)) = asked.recv().await {
            for _ in 0..number {
                crate::pacing::yield_once().await;
            }
            let _ = answer.send(number);
        }
    });
    tokio::task::yield_now().await;
    let mut quick = asker.spawn(2);
    assert_ready_eq!(quick.poll(), Some(2));
    assert!(!quick.is_woken());
    drop(quick);
    assert_eq!(asker.ask(100).await, Some(100));
}

#[tokio::test(start_paused = true)]
async fn a_caller_is_answered_by_the_end_of_the_task() {
    let (asker, task) = Asker::ready(NEVER).await;
    let mut asked = asker.spawn(1);
    assert_pending!(asked.poll());
    task.abort();
    tokio::task::yield_now().await;
    assert!(asked.is_woken());
    assert_ready_eq!(asked.poll(), None);
    assert_eq!(asker.ask(2).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_the_task_and_not_its_caller() {
    let (asker, task) = Asker::start(|mut asked| async move {
        asked.recv().await;
        panic!("by mistake");
    });
    tokio::task::yield_now().await;
    assert_eq!(asker.ask(1).await, None);
    task.await.unwrap();
    assert_eq!(asker.ask(2).await, None);
    assert_eq!(asker.panicked.get(), Some(&"by mistake"));
}

#[test]
fn a_caller_in_another_runtime_does_not_drive() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (asker, _task) = runtime.block_on(Asker::ready(LATER));
    let polls = asker.polls();
    let mut elsewhere = asker.spawn(1);
    assert_pending!(elsewhere.poll());
    drop(elsewhere);
    let here = Builder::new_current_thread().build().unwrap();
    assert_eq!(here.block_on(asker.ask(2)), Some(2));
    assert!(asker.polls() > polls);
}

/// The future uses timers of the runtime of its task, and needs one.
#[test]
fn a_caller_that_moves_to_another_runtime_drives_no_more() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (asker, _task) = runtime.block_on(Asker::ready(LATER));
    let elsewhere = Builder::new_current_thread().build().unwrap();
    for other in [None, Some(&elsewhere)] {
        let mut asked = asker.spawn(1);
        {
            let _here = runtime.enter();
            assert_pending!(asked.poll());
            assert!(asker.driver.0.state().driving.is_some());
        }
        let answered = match other {
            None => futures::executor::block_on(asked),
            Some(other) => other.block_on(asked),
        };
        assert_eq!(answered, Some(1));
    }
}

/// Callers of several threads that come, wait for a while, are dropped or forget to poll: each that waits is
/// answered.
#[test]
fn many_callers_are_answered() {
    let runtime = Builder::new_multi_thread().worker_threads(3).enable_all().build().unwrap();
    let (asker, _task) = runtime.block_on(Asker::ready(Duration::ZERO));
    let asker = Arc::new(asker);
    let callers = (0..4u64).map(|seed| {
        let asker = asker.clone();
        runtime.spawn(async move {
            let mut random = fastrand::Rng::with_seed(seed);
            for number in 0..2_000 {
                match random.u32(..20) {
                    0 => {
                        let mut stuck = asker.spawn(number);
                        let _ = stuck.poll();
                        thread::sleep(Duration::from_micros(100));
                        tokio::task::yield_now().await;
                    }
                    1 => drop(timeout(Duration::ZERO, asker.ask(number)).await),
                    2 => drop(asker.driver.caller()),
                    _ => assert_eq!(timeout(MINUTE, asker.ask(number)).await, Ok(Some(number))),
                }
            }
        })
    });
    let callers: Vec<_> = callers.collect();
    for caller in callers {
        runtime.block_on(caller).unwrap();
    }
    assert_eq!(runtime.block_on(asker.ask(1)), Some(1));
}

const MINUTE: Duration = Duration::from_secs(60);
