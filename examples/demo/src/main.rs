//! Orders with delays of their own, offered and taken in the terminal, with keys to try to lose one.
//!
//!     make demo                           (with a server of its own)
//!     make demo JAVA=1                    (with a Java process, on Redisson, on the same queue)
//!     REDIS_URL=redis://… make demo       (with that server)
//!
//! Every order is in a ledger, by its id: "lost" and "twice" are counted by it. Lateness is by one monotonic clock: from
//! the moment the offer began, plus the delay, until the order is decoded. Two trips to the server are in it, the
//! scheduler of this machine, and this program's own work. Left alone the demo ends after about 20 seconds.
#![allow(missing_docs, reason = "a program has no API")]

mod event;
mod input;
mod java;
mod lateness;
mod layout;
mod ledger;
mod model;
mod order;
mod plain;
mod rows;
mod screen;
mod server;
mod shop;
mod theme;
mod view;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use redelay::Client;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::input::Command;
use crate::java::Java;
use crate::model::{CONSUMERS, Model, Phase};
use crate::screen::Screen;
use crate::shop::{Events, Shop};
use crate::view::View;

const FRAME: Duration = Duration::from_millis(66);

/// How the demo ended.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// All orders are through.
    Over,
    /// `q`, or Ctrl-C as a key.
    Quit,
    /// A signal; or nobody looks any more.
    Stopped,
}

#[tokio::main]
async fn main() -> ExitCode {
    run().await.unwrap_or_else(|error| {
        eprintln!("demo: {error}");
        ExitCode::FAILURE
    })
}

async fn run() -> Result<ExitCode, Box<dyn Error>> {
    let java = java_build(std::env::args().skip(1))?;
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let shown = server::shown(&url).to_owned();
    let java_too = if java.is_some() { "Rust and Java on " } else { "" };
    plain::print(&[format!("{java_too}{shown}: orders, due 0.3 to 6 s after they are offered")])?;
    // A name of this run, so that nobody else's orders are taken, and nobody else's connections killed.
    let queue = format!("demo-{}", std::process::id());
    let client = Client::builder().url(&url).client_name(&queue).connect().await?;
    let view =
        View { theme: theme::Theme::from_env(), server: shown, queue: queue.clone(), java: java.is_some() };
    let java = match java {
        Some(build) => Some(
            Java::start(&build, &url, &queue)
                .await
                .map_err(|error| format!("the Java process does not start: {error}"))?,
        ),
        None => None,
    };
    let (shop, events) = Shop::new(client, &queue, &url);
    let mut model = Model::new();
    let end = demonstrate(&shop, java, events, &view, &mut model).await?;
    finish(&shop, &model, end, view.java).await
}

/// `--java <directory>`: where the Java peer is built.
fn java_build(mut args: impl Iterator<Item = String>) -> Result<Option<PathBuf>, String> {
    match (args.next().as_deref(), args.next(), args.next()) {
        (None, ..) => Ok(None),
        (Some("--java"), Some(build), None) => Ok(Some(build.into())),
        _ => Err("usage: redelay-demo [--java compat/java/target/VERSION]".into()),
    }
}

async fn demonstrate(
    shop: &Arc<Shop>,
    java: Option<Java>,
    mut events: Events,
    view: &View,
    model: &mut Model,
) -> Result<End, Box<dyn Error>> {
    let mut signals = Signals::new()?;
    let (mut screen, mut commands) = Screen::open();
    shop.start();
    let java = java.map(|java| tokio::spawn(java.run(shop.clone())));
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let end = loop {
        let draw = tokio::select! {
            Some((at, event)) = events.recv() => {
                model.apply(at, event);
                false
            }
            Some(command) = commands.recv() => {
                if command == Command::Quit {
                    break End::Quit;
                }
                obey(shop, model, command);
                true
            }
            () = signals.any() => break End::Stopped,
            _ = frames.tick() => true,
        };
        let now = shop.now();
        let phase = model.phase(now);
        shop.set_offering(phase == Phase::Offering);
        if phase == Phase::Over {
            break End::Over;
        }
        if draw && screen.show(view, model, phase, now).is_err() {
            break End::Stopped;
        }
    };
    if let Some(java) = java {
        // Dropped with it, the process ends.
        java.abort();
        let _ = java.await;
    }
    Ok(end)
}

fn obey(shop: &Arc<Shop>, model: &mut Model, command: Command) {
    let now = shop.now();
    if command != Command::Redraw {
        model.attended(now);
    }
    let shop = shop.clone();
    match command {
        Command::Cancel | Command::Reschedule => match model.ledger.next_to_change(now) {
            Some(id) if command == Command::Cancel => drop(tokio::spawn(shop.cancel(id))),
            Some(id) => drop(tokio::spawn(shop.reschedule(id))),
            None => shop.note("there is no order pending with a ticket of this process"),
        },
        Command::KillConsumer => {
            let alive: Vec<_> = (0..CONSUMERS).filter(|number| !model.consumers_gone[*number]).collect();
            match fastrand::choice(alive) {
                Some(number) => {
                    // At once, so that the next key means another one.
                    model.consumers_gone[number] = true;
                    tokio::spawn(shop.kill_consumer(number));
                }
                None => shop.note("every consumer is killed: orders wait in Redis until one is back"),
            }
        }
        Command::KillConnections => drop(tokio::spawn(shop.kill_connections())),
        Command::Pause => model.paused = !model.paused,
        Command::Quit | Command::Redraw => {}
    }
}

async fn finish(shop: &Shop, model: &Model, end: End, java: bool) -> Result<ExitCode, Box<dyn Error>> {
    let cleared = end == End::Over || shop.clear().await;
    let left = shop.sizes().await;
    shop.close().await;
    let mut lines = plain::summary(model, end != End::Over, java);
    lines.push(match left {
        Some(sizes) if sizes.ready + sizes.timeout_set + sizes.ordered_list == 0 => {
            "left in Redis: nothing".into()
        }
        _ => format!("left in Redis: redis-cli --scan --pattern '*{}*'", shop.name),
    });
    let printed = plain::print(&lines);
    Ok(match end {
        _ if !cleared => ExitCode::FAILURE,
        End::Stopped => ExitCode::from(130),
        End::Quit => ExitCode::SUCCESS,
        End::Over if printed.is_ok() && model.excused() => ExitCode::SUCCESS,
        End::Over => ExitCode::FAILURE,
    })
}

/// What asks a program to end. As a key Ctrl-C is a command.
struct Signals([Signal; 3]);

impl Signals {
    fn new() -> std::io::Result<Self> {
        let [interrupt, terminate, hangup] =
            [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Self([interrupt?, terminate?, hangup?]))
    }

    async fn any(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
