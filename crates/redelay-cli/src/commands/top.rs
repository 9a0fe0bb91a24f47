//! `redelay top`: the queues of a server, again and again.
//!
//! `state` is what is shown, and `frame` how; both are pure. `screen` is the terminal, and `look` asks the
//! server. Here they meet: each key, signal and answer changes the state, and then a frame is drawn.

mod frame;
mod look;
mod screen;
mod signals;
mod state;

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::connect::Session;
use crate::failure::Failure;
use crate::out::Out;
use look::{Look, Search};
use screen::Screen;
use signals::{Signal, Signals};
use state::{Action, Event, State};

/// The interval while the first search goes on, in which queues appear.
const SEARCHING: Duration = Duration::from_millis(250);

/// Whether there is a terminal to show it on; to be asked before the connection is opened.
pub(super) fn check(out: &Out) -> Result<(), Failure> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    if out.is_json || is_dumb || !io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "top needs a terminal; redelay ls prints the same once, also with --json".into(),
        ));
    }
    Ok(())
}

pub(super) async fn run(
    session: &Session,
    pattern: &[u8],
    interval: Duration,
    out: &Out,
) -> Result<(), Failure> {
    let servers = session.servers(out).await?;
    let prefix = session.name(b"").len();
    let mut signals = Signals::new()?;
    let mut screen = Screen::open().map_err(|error| gone(&error))?;
    let size = screen.size().map_err(|error| gone(&error))?;
    let mut state = State::new(servers.line(), interval, prefix, size);
    let mut keys = keys();
    let mut search = Search::new(session, pattern);
    let mut look = Look::new(session, servers, out);
    // The last look, and the next one.
    let (mut begun, mut due) = (Instant::now(), Instant::now());
    // The user has asked for a look, also while it is paused.
    let mut is_wanted = false;
    loop {
        // No event tells of a change before the keyboard is read for the first time.
        state.size = screen.size().map_err(|error| gone(&error))?;
        screen.draw(|frame| frame::draw(&state, frame)).map_err(|error| gone(&error))?;
        let is_active = !state.is_paused && !state.is_too_small();
        let event = tokio::select! {
            biased;
            signal = signals.next() => match signal {
                Signal::End => return Ok(()),
                Signal::Stop => {
                    screen.stop().map_err(|error| gone(&error))?;
                    continue;
                }
                Signal::Continue => {
                    screen.resume().map_err(|error| gone(&error))?;
                    continue;
                }
            },
            event = keys.recv() => match event {
                Some(event::Event::Key(key)) => Event::Key(key),
                Some(event::Event::Resize(..)) => {
                    screen.clear().map_err(|error| gone(&error))?;
                    continue;
                }
                Some(_) => continue,
                // The terminal is gone.
                None => return Ok(()),
            },
            answer = look.answer() => {
                let interval = if state.calls.is_none() { interval.min(SEARCHING) } else { interval };
                // Where looks take long, half of the time is without one.
                due = begun + interval.max(2 * begun.elapsed());
                answer
            }
            found = search.next(), if is_active => match found {
                Err(error) if state.calls.is_none() => return Err(error),
                Err(error) => Event::Failed(error.to_string()),
                Ok(event) => event,
            },
            () = tokio::time::sleep_until(due), if (is_active || is_wanted) && !look.is_under_way() => {
                (is_wanted, begun) = (false, Instant::now());
                look.begin(&mut state);
                continue;
            }
        };
        match state.on(event) {
            None => {}
            Some(Action::Quit) => return Ok(()),
            Some(Action::Suspend) => signals::stop_job(),
            Some(Action::Look) => (due, is_wanted) = (Instant::now(), true),
            Some(Action::Redraw) => screen.clear().map_err(|error| gone(&error))?,
        }
    }
}

/// A terminal that cannot be used any more has no reader.
fn gone(_: &io::Error) -> Failure {
    Failure::PipeClosed
}

/// Reads the keyboard in a thread of its own, which ends with the process.
fn keys() -> mpsc::UnboundedReceiver<event::Event> {
    let (events, received) = mpsc::unbounded_channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if events.send(event).is_err() {
                break;
            }
        }
    });
    received
}
