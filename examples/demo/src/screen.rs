//! Where the demo is seen: a picture on a terminal, plain lines elsewhere. The terminal is always restored.

use std::io::{self, IsTerminal};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use tokio::sync::mpsc;

use crate::input::{self, Command};
use crate::model::{Model, Phase};
use crate::plain::Plain;
use crate::view::View;

/// Nothing is drawn any more: the message is on the terminal.
static PANICKED: AtomicBool = AtomicBool::new(false);

pub(crate) enum Screen {
    /// Never dropped: on a terminal that is gone, that panics. `restore` does what it would do.
    Picture(ManuallyDrop<DefaultTerminal>),
    Lines(Plain),
}

impl Screen {
    /// The picture where there is a terminal that can show it. With it come the commands of the keyboard.
    pub(crate) fn open() -> (Self, mpsc::UnboundedReceiver<Command>) {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if io::stdout().is_terminal() && !dumb {
            if let Ok(terminal) = ratatui::try_init() {
                end_at_panic();
                return (Self::Picture(ManuallyDrop::new(terminal)), input::commands());
            }
            restore();
        }
        end_at_panic();
        (Self::Lines(Plain::default()), mpsc::unbounded_channel().1)
    }

    /// Fails when the terminal or the reader of the lines is gone.
    pub(crate) fn show(&mut self, view: &View, model: &Model, phase: Phase, now: Duration) -> io::Result<()> {
        match self {
            Self::Picture(_) if PANICKED.load(Ordering::Relaxed) => Ok(()),
            Self::Picture(terminal) => terminal.draw(|frame| view.draw(frame, model, phase, now)).map(drop),
            Self::Lines(plain) => plain.show(model, now),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if matches!(self, Self::Picture(_)) {
            restore();
        }
    }
}

fn restore() {
    // Where there is no terminal any more, there is nothing to restore.
    let _ = ratatui::try_restore();
    let _ = execute!(io::stdout(), Show);
}

/// A panic in one task ends all: the others would go on, and draw over its message. The hooks before this one
/// restore the terminal and print.
fn end_at_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICKED.store(true, Ordering::Relaxed);
        before(info);
        std::process::exit(101);
    }));
}
