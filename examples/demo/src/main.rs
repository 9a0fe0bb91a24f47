//! Orders with delays of their own, offered and handled in the terminal, with keys to try to lose one.
//!
//!     make demo                           (with a separate server)
//!     make demo JAVA=1                    (with a Java process, on Redisson, on the same queue)
//!     REDIS_URL=redis://… make demo       (with that server)
//!
//! Three processes handle them, each with a worker. Every order is in a ledger, by its id: "lost" and
//! "handled twice" are counted by it. Lateness is by the clock of this process: from the moment the offer
//! began, plus the delay, until it reads that a handler has begun. Left alone the demo ends after about 20
//! seconds.
#![allow(missing_docs, reason = "a program has no API")]

mod consumer;
mod event;
mod fleet;
mod input;
mod java;
mod lateness;
mod layout;
mod ledger;
mod model;
mod order;
#[cfg(test)]
mod picture;
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

use crate::fleet::Fleet;
use crate::input::Command;
use crate::java::Java;
use crate::model::{Consumer, Model, Phase};
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
    let url = std::env::var("REDIS_URL").unwrap_or_else(|_| "redis://localhost".into());
    let java = match Role::of(std::env::args().skip(1))? {
        Role::Consumer { queue } => return Ok(consumer::run(&url, &queue).await?),
        Role::Demo { java } => java,
    };
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
    let fleet = Fleet::start(&shop, &url);
    let mut model = Model::new();
    let end = demonstrate(&shop, &fleet, java, events, &view, &mut model).await;
    fleet.stop().await;
    finish(&shop, &model, end?, view.java).await
}

/// What this process is.
enum Role {
    Demo {
        /// `--java <directory>`: where the Java peer is built.
        java: Option<PathBuf>,
    },
    /// `--consumer <queue>`, as the demo starts it.
    Consumer { queue: String },
}

impl Role {
    fn of(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        match (args.next().as_deref(), args.next(), args.next()) {
            (None, ..) => Ok(Self::Demo { java: None }),
            (Some("--java"), Some(build), None) => Ok(Self::Demo { java: Some(build.into()) }),
            (Some("--consumer"), Some(queue), None) => Ok(Self::Consumer { queue }),
            _ => Err("usage: redelay-demo [--java compat/java/target/VERSION]".into()),
        }
    }
}

async fn demonstrate(
    shop: &Arc<Shop>,
    fleet: &Fleet,
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
                obey(shop, fleet, model, command);
                true
            }
            () = signals.any() => break End::Stopped,
            _ = frames.tick() => true,
        };
        if let Some((order, number)) = model.take_doomed() {
            fleet.fail(number, order);
        }
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

fn obey(shop: &Arc<Shop>, fleet: &Fleet, model: &mut Model, command: Command) {
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
        // The one with the youngest order: it is in the middle of its handler.
        Command::KillConsumer => {
            let alive = |(_, number): &(u32, usize)| model.consumers[*number] == Consumer::Alive;
            match model.ledger.in_hand().into_iter().find(alive) {
                Some((_, number)) => {
                    // At once, so that the next key means another one.
                    model.consumers[number] = Consumer::Gone;
                    fleet.kill(number);
                }
                None => shop.note("no consumer has an order now: orders wait in Redis"),
            }
        }
        Command::FailHandler => model.doom(now),
        Command::DeadLetters => model.dead_letters_only = !model.dead_letters_only,
        Command::KillConnections => drop(tokio::spawn(shop.kill_connections())),
        Command::Pause => model.paused = !model.paused,
        Command::Quit | Command::Redraw => {}
    }
}

async fn finish(shop: &Shop, model: &Model, end: End, java: bool) -> Result<ExitCode, Box<dyn Error>> {
    let cleared = shop.clear().await;
    let left = shop.sizes().await;
    shop.close().await;
    let mut lines = plain::summary(model, end != End::Over, java);
    let name = &shop.name;
    lines.push(match left {
        Ok(sizes) if sizes.is_empty() => {
            format!("left in Redis: no order; redis-cli del redelay:control:{{{name}}} redelay:receipts:{{{name}}}")
        }
        _ => format!("left in Redis: redis-cli --scan --pattern '*{name}*'"),
    });
    let printed = plain::print(&lines);
    Ok(match end {
        _ if !cleared => ExitCode::FAILURE,
        End::Stopped => ExitCode::from(130),
        End::Quit => ExitCode::SUCCESS,
        End::Over if printed.is_ok() && model.kept() => ExitCode::SUCCESS,
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
