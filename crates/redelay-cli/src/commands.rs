//! The commands, a file each: they read, and print.

mod doctor;
mod due;
#[cfg(feature = "exporter")]
mod exporter;
mod inspect;
mod list;
mod ls;
mod pages;
mod pump;
mod show;
#[cfg(feature = "top")]
mod top;
mod watch;

use std::ffi::OsString;

use crate::args::{Arguments, Command};
use crate::connect::Session;
use crate::failure::Failure;
use crate::out::Out;

/// Does what the command line says.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let out = Out::new(arguments.json);
    let session = || Session::open(&arguments.connection);
    match arguments.command {
        Command::Ls { pattern } => ls::run(&session().await?, &bytes(pattern), &out).await,
        Command::Show { queue } => show::run(&session().await?, &bytes(queue), &out).await,
        Command::List { queue, what, limit, after, decoder } => {
            let page = list::Page { what, after, limit: limit as usize };
            list::run(&session().await?, &bytes(queue), page, decoder.decoder, &out).await
        }
        Command::Due { queue, step, count } => {
            due::run(&session().await?, &bytes(queue), step, count.into(), &out).await
        }
        Command::Watch { pattern } => watch::run(&session().await?, &bytes(pattern), &out).await,
        Command::Doctor { queues } => doctor::run(session().await, queues, &out).await,
        Command::Pump(pumping) => pump::run(&arguments.connection, pumping, &out).await,
        #[cfg(feature = "exporter")]
        Command::Exporter(exporting) => exporter::run(&session().await?, exporting, &out).await,
        #[cfg(feature = "top")]
        Command::Top { pattern, interval } => {
            top::check(&out)?;
            top::run(&session().await?, &bytes(pattern), interval, &out).await
        }
        Command::Inspect { hex, digits, codec, decoder } => {
            inspect::run(hex, digits, codec, decoder.decoder, &out).await
        }
        Command::Completions { shell } => pages::completions(shell, &out),
        Command::Man { into } => pages::man(into.as_deref(), &out),
    }
}

/// The bytes of an argument, as the shell has passed it.
fn bytes(argument: OsString) -> Vec<u8> {
    argument.into_encoded_bytes()
}
