//! The terminal of `top`: its modes while it shows frames, and before and afterwards those that it had.

use std::io::{self, stdout};
use std::mem::ManuallyDrop;
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::{DefaultTerminal, Frame, Terminal};

use super::signals::stop;

/// Whether the terminal has the modes of a `Screen`.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();

/// The terminal, with frames on it until this is dropped.
pub(super) struct Screen {
    /// Never dropped: on a terminal that is gone, that panics. `leave` does what it would do.
    terminal: ManuallyDrop<DefaultTerminal>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                let was_shown = IS_SHOWN.load(Ordering::SeqCst);
                leave();
                before(info);
                if was_shown {
                    // Other threads would go on, and draw over the message.
                    process::exit(101);
                }
            }));
        });
        enter().inspect_err(|_| leave())?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| leave())?;
        Ok(Self { terminal: ManuallyDrop::new(terminal) })
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    /// Clears the terminal, so that the next frame is drawn as a whole. `Terminal::clear` would ask the
    /// terminal where the cursor is, and the answer goes to the reader of the keys.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Gives the terminal its modes and its text back, and stops the process until something continues it.
    pub(super) fn stop(&mut self) -> io::Result<()> {
        leave();
        stop();
        self.resume()
    }

    /// Takes the terminal again. The program that had it may have changed its modes.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        leave();
        enter()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    IS_SHOWN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen)
}

/// Does nothing if there is nothing to undo: leaving twice would move the cursor.
fn leave() {
    if IS_SHOWN.swap(false, Ordering::SeqCst) {
        // Where there is no terminal any more, there is nothing to restore.
        let _ = disable_raw_mode();
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;

    use redelay_fixture::Terminal;

    use super::*;

    const PANICS: &str = "REDELAY_PANICS_HERE";

    /// In a process of its own, which is this test again.
    #[test]
    fn a_panic_is_seen_on_a_whole_terminal() {
        if env::var_os(PANICS).is_some() {
            let mut screen = Screen::open().unwrap();
            screen.draw(|frame| frame.render_widget("a frame", frame.area())).unwrap();
            // Also that of another thread.
            let _ = std::thread::spawn(|| panic!("on purpose")).join();
            unreachable!("the process has ended");
        }
        let mut terminal = Terminal::new(80, 24);
        let modes = terminal.modes();
        let mut command = Command::new(env::current_exe().unwrap());
        let name = "commands::top::screen::tests::a_panic_is_seen_on_a_whole_terminal";
        command.args(["--exact", name, "--nocapture"]).env(PANICS, "1").env("RUST_BACKTRACE", "0");
        let mut child = terminal.start(&command);
        assert_eq!(child.wait().unwrap().code(), Some(101));
        assert_eq!(terminal.modes(), modes);
        let written = terminal.written();
        let at = |text: &str| written.find(text).unwrap_or_else(|| panic!("{text:?} in {written:?}"));
        let order = ["\x1b[?1049h", "frame", "\x1b[?1049l", "\x1b[?25h", "on purpose"].map(at);
        assert!(order.is_sorted(), "{written:?}");
        assert_eq!(written.matches("\x1b[?1049l").count(), 1, "{written:?}");
    }
}
