//! `redelay top` on a terminal: what it shows, and that the terminal has its modes again afterwards, however
//! it ends.

use std::process::{Child, Command};

use redelay_fixture::{Server, Terminal, until};

use super::{LONG, Ran, fill, program, redelay};

const ENTER: &str = "\x1b[?1049h";
const LEAVE: &str = "\x1b[?1049l";

/// The program on this terminal.
fn top(terminal: &Terminal, url: &str, words: &[&str]) -> Child {
    let mut command = program();
    command.env("REDIS_URL", url).args([LONG, "top"]).args(words);
    terminal.start(&command)
}

fn signal(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// The letter of the state of a process.
fn state(child: &Child) -> char {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap()
}

/// Whether the terminal is as it was, and shows what it had shown.
#[track_caller]
fn is_whole(terminal: &mut Terminal, modes: &str) {
    let written = terminal.written();
    assert_eq!(terminal.modes(), modes);
    assert_eq!(written.matches(ENTER).count(), written.matches(LEAVE).count(), "{written:?}");
    assert!(written.rfind(LEAVE) > written.rfind(ENTER), "{written:?}");
    assert!(written.rfind("\x1b[?25h") > written.rfind("\x1b[?25l"), "the cursor is seen: {written:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_shown_and_opened() {
    let server = Server::start();
    fill(&server).await;
    let mut terminal = Terminal::new(120, 30);
    let modes = terminal.modes();
    let mut child = top(&terminal, &server.url(), &[]);
    terminal.shows("orders");
    terminal.shows("dead letters");
    assert_ne!(terminal.modes(), modes, "keys come one by one");
    terminal.press("\r");
    terminal.shows("UNCONFIRMED POPS");
    terminal.shows("order-7");
    assert!(!terminal.written().contains("hello"), "no payload is shown without a request");
    terminal.press("v");
    terminal.shows("\"hello\"");
    terminal.press("\x1b");
    terminal.shows("NEXT DUE");
    terminal.resize(46, 20);
    terminal.shows("this terminal has");
    terminal.resize(120, 30);
    terminal.shows("dead letters");
    terminal.press("/no such\r");
    terminal.shows("no queue has that in its name");
    terminal.press("q");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    is_whole(&mut terminal, &modes);
    assert!(terminal.written().contains("\x1b[38;5;"), "it has colours");
}

#[test]
fn every_end_leaves_the_terminal_whole() {
    let server = Server::start();
    let mut terminal = Terminal::new(80, 24);
    let modes = terminal.modes();
    // Signals, and keys.
    for (at, end) in (1..).zip(["-INT", "-TERM", "-HUP", "-QUIT", "\x03", "q"]) {
        let mut child = top(&terminal, &server.url(), &[]);
        until("it is shown", || terminal.written().matches(ENTER).count() == at);
        terminal.shows("no queues");
        if end.starts_with('-') {
            signal(&child, end)
        } else {
            terminal.press(end)
        }
        assert_eq!(child.wait().unwrap().code(), Some(0), "{at}");
        is_whole(&mut terminal, &modes);
    }
}

#[test]
fn others_have_the_terminal_while_it_is_stopped() {
    let server = Server::start();
    let mut terminal = Terminal::new(80, 24);
    let modes = terminal.modes();
    let mut child = top(&terminal, &server.url(), &[]);
    terminal.shows("no queues");
    let own = terminal.modes();
    for round in 1..=3 {
        match round {
            1 => signal(&child, "-TSTP"),
            2 => terminal.press("\x1a"),
            // This one cannot be noticed, so a shell has to restore its modes by itself.
            _ => signal(&child, "-STOP"),
        }
        until(&format!("it is stopped, {round}"), || state(&child) == 'T');
        if round < 3 {
            is_whole(&mut terminal, &modes);
        }
        signal(&child, "-CONT");
        until("it is shown again", || terminal.written().matches(ENTER).count() > round);
        terminal.shows("no queues");
        until("it has the terminal", || terminal.modes() == own);
    }
    terminal.press("q");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    is_whole(&mut terminal, &modes);
}

/// Neither hides the other, whichever the program hears of first.
#[test]
fn a_key_and_a_new_size_may_come_at_once() {
    let server = Server::start();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "1", "\x01x\x01\0\0\0\0\0\0\x007"]);
    for _ in 0..3 {
        let mut terminal = Terminal::new(46, 20);
        let mut child = top(&terminal, &server.url(), &[]);
        terminal.shows("this terminal has");
        signal(&child, "-STOP");
        until("it is stopped", || state(&child) == 'T');
        terminal.press("p");
        terminal.resize(80, 24);
        signal(&child, "-CONT");
        // Where there is no room, nothing is looked for.
        terminal.shows("paused");
        terminal.press("p");
        terminal.shows("stands still");
        terminal.press("q");
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn it_ends_with_its_terminal() {
    let server = Server::start();
    let mut terminal = Terminal::new(80, 24);
    let mut child = top(&terminal, &server.url(), &[]);
    terminal.shows("no queues");
    drop(terminal);
    child.wait().unwrap();
}

#[test]
fn a_server_that_goes_away_is_said_and_waited_for() {
    let server = Server::start();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "4102444800000", "\x01x\x01\0\0\0\0\0\0\x007"]);
    let mut terminal = Terminal::new(80, 24);
    let mut command = program();
    command.env("REDIS_URL", server.url()).args(["--timeout=10s", "top", "--interval=500ms"]);
    let mut child = terminal.start(&command);
    terminal.shows("ok");
    server.kill_9();
    terminal.shows("no answer");
    server.start_again();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "1", "\x01x\x01\0\0\0\0\0\0\x007"]);
    terminal.shows("stands still");
    terminal.press("q");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_right_that_it_cannot_do_without_is_named_on_a_whole_terminal() {
    let server = Server::start();
    server.cmd(["ACL", "SETUSER", "blind", "on", ">secret", "~*", "&*", "+@all", "-scan"]);
    let url = server.url().replace("redis://", "redis://blind:secret@");
    let mut terminal = Terminal::new(80, 24);
    let modes = terminal.modes();
    let mut child = top(&terminal, &url, &[]);
    assert_eq!(child.wait().unwrap().code(), Some(4));
    is_whole(&mut terminal, &modes);
    let written = terminal.written();
    let said = written.rsplit(LEAVE).next().unwrap();
    assert!(said.contains("the missing permission: +scan"), "{written:?}");
}

#[test]
fn where_there_is_no_terminal_it_says_so() {
    let server = Server::start();
    for words in [&["top"][..], &["top", "--json"]] {
        let said = redelay(&server, words).failed(2);
        assert!(said.contains("top needs a terminal; redelay ls"), "{said}");
    }
    // The screen is not taken before there is something to show.
    let mut terminal = Terminal::new(80, 24);
    let mut command = program();
    command.env("REDIS_URL", "redis://127.0.0.1:1").args(["--timeout=1s", "top"]);
    let mut child = terminal.start(&command);
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(!terminal.written().contains(ENTER));
    let output = program().args(["top", "--interval", "10ms"]).output().unwrap();
    assert!(Ran::new(&output).failed(2).contains("at least 500ms"));
}

#[test]
fn no_color_is_respected() {
    let server = Server::start();
    server.cmd(["ZADD", "redisson_delay_queue_timeout:{q}", "1", "\x01x\x01\0\0\0\0\0\0\x007"]);
    let mut terminal = Terminal::new(80, 24);
    let mut command = program();
    command.env("REDIS_URL", server.url()).env("NO_COLOR", "1").args([LONG, "top"]);
    let mut child = terminal.start(&command);
    terminal.shows("stands still");
    terminal.press("q");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!terminal.written().contains("\x1b[38;5;"));
}
