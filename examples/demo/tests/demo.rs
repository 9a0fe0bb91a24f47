//! The demo on a terminal, at each usual size: whatever is pressed, nothing is lost.
#![allow(missing_docs, reason = "a test has no API")]

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use redelay_fixture::{Server, Terminal, until};

struct Demo {
    server: Server,
    terminal: Terminal,
    child: Child,
}

impl Demo {
    fn start(width: u16, height: u16) -> Self {
        let (server, mut terminal) = (Server::start(), Terminal::new(width, height));
        let mut command = Command::new(env!("CARGO_BIN_EXE_redelay-demo"));
        command.env("REDIS_URL", server.url());
        let child = terminal.start(&command);
        terminal.shows("in flight, attempt, lease: ");
        Self { server, terminal, child }
    }

    /// Presses a key until this is on the screen, and not while `effect` is there.
    #[track_caller]
    fn press_until(&mut self, key: &str, effect: &str, text: &str) {
        let terminal = &mut self.terminal;
        until(text, || {
            let screen = terminal.screen();
            if !screen.contains(text) && !screen.contains(effect) {
                terminal.press(key);
            }
            screen.contains(text)
        });
    }

    /// What it says after the picture.
    fn end(mut self) -> String {
        self.terminal.press("q");
        let status = self.child.wait().expect("it ends");
        let written = self.terminal.written();
        let said = written.rsplit("\x1b[?1049l").next().unwrap_or_default();
        assert!(status.success(), "{status}: {said}");
        assert!(said.contains("lost 0, handled twice "), "{said}");
        assert!(said.contains("left in Redis: no order"), "{said}");
        said.to_owned()
    }
}

#[test]
fn orders_of_a_killed_consumer_are_handled_by_another_one() {
    let mut demo = Demo::start(120, 40);
    demo.press_until("k", "killed", "died with order");
    demo.terminal.shows("2nd attempt");
    let said = demo.end();
    assert!(said.contains("survived: ") && !said.contains("survived: 0 kill -9"), "{said}");
    assert!(said.contains("orders that killed consumers held, and others got: "), "{said}");
}

#[test]
fn what_fails_three_times_is_a_dead_letter() {
    let mut demo = Demo::start(80, 24);
    // An order that has failed fails again.
    demo.press_until("f", "is to fail", "times: a dead letter");
    demo.terminal.press("d");
    demo.terminal.shows("(d: back)");
    demo.terminal.shows("3 failed: the cup broke");
    demo.terminal.press("d");
    demo.terminal.shows("waiting for a retry");
    assert!(demo.end().contains("dead letters: "));
}

#[test]
fn cut_connections_come_back() {
    let mut demo = Demo::start(46, 24);
    // It says so for a moment, which a busy machine may not show.
    let (text, mut pressed) = ("connections cut: redelay connects again", None::<Instant>);
    until(text, || {
        if pressed.is_none_or(|at| at.elapsed() > Duration::from_secs(10)) {
            demo.terminal.press("x");
            pressed = Some(Instant::now());
        }
        demo.terminal.screen().contains(text)
    });
    let connections = |demo: &Demo| demo.server.clients_named("demo-");
    // The demo and three consumers.
    until("connections of four processes", || connections(&demo) >= 8);
    assert!(!demo.end().contains(", 0 cut connections"));
}
