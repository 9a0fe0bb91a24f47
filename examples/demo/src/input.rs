//! Keys, as the commands they stand for.

use std::thread;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tokio::sync::mpsc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Cancel,
    Reschedule,
    KillConsumer,
    FailHandler,
    DeadLetters,
    KillConnections,
    Pause,
    Quit,
    /// The terminal has another size.
    Redraw,
}

/// Reads the keyboard in a thread of its own, which ends with the process.
pub(crate) fn commands() -> mpsc::UnboundedReceiver<Command> {
    let (commands, received) = mpsc::unbounded_channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if let Some(command) = command(&event)
                && commands.send(command).is_err()
            {
                break;
            }
        }
    });
    received
}

fn command(event: &Event) -> Option<Command> {
    match event {
        Event::Resize(..) => Some(Command::Redraw),
        Event::Key(key) if key.kind != KeyEventKind::Release => of_key(*key),
        _ => None,
    }
}

fn of_key(key: KeyEvent) -> Option<Command> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return matches!(key.code, KeyCode::Char('c' | 'd')).then_some(Command::Quit);
    }
    match key.code {
        KeyCode::Char('c') => Some(Command::Cancel),
        KeyCode::Char('r') => Some(Command::Reschedule),
        KeyCode::Char('k') => Some(Command::KillConsumer),
        KeyCode::Char('f') => Some(Command::FailHandler),
        KeyCode::Char('d') => Some(Command::DeadLetters),
        KeyCode::Char('x') => Some(Command::KillConnections),
        KeyCode::Char(' ') => Some(Command::Pause),
        KeyCode::Char('q') | KeyCode::Esc => Some(Command::Quit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys() {
        let of = |code, modifiers| command(&Event::Key(KeyEvent::new(code, modifiers)));
        let plain = |key| of(KeyCode::Char(key), KeyModifiers::NONE);
        assert_eq!(plain('c'), Some(Command::Cancel));
        assert_eq!(plain('d'), Some(Command::DeadLetters));
        assert_eq!(of(KeyCode::Char('d'), KeyModifiers::CONTROL), Some(Command::Quit));
        assert_eq!(of(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Command::Quit));
        assert_eq!(of(KeyCode::Char('k'), KeyModifiers::CONTROL), None);
        assert_eq!(plain(' '), Some(Command::Pause));
        assert_eq!(of(KeyCode::Esc, KeyModifiers::NONE), Some(Command::Quit));
        assert_eq!(plain('y'), None);
        assert_eq!(command(&Event::Resize(80, 24)), Some(Command::Redraw));
    }
}
