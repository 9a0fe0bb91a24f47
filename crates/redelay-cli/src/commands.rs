//! The commands, a file each: they read, and print.

mod due;
#[cfg(feature = "exporter")]
mod exporter;
mod inspect;
mod list;
mod ls;
mod pages;
mod pump;
mod show;
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
        Command::List { queue, what, limit, after } => {
            list::run(
                &session().await?,
                &bytes(queue),
                list::Page { what, after, limit: limit as usize },
                &out,
            )
            .await
        }
        Command::Due { queue, step, count } => {
            due::run(&session().await?, &bytes(queue), step, count.into(), &out).await
        }
        Command::Watch { pattern } => watch::run(&session().await?, &bytes(pattern), &out).await,
        Command::Pump(pumping) => pump::run(&arguments.connection, pumping, &out).await,
        #[cfg(feature = "exporter")]
        Command::Exporter(exporting) => exporter::run(&session().await?, exporting, &out).await,
        Command::Inspect { hex, digits, codec } => inspect::run(hex, digits, codec, &out),
        Command::Completions { shell } => pages::completions(shell, &out),
        Command::Man { into } => pages::man(into.as_deref(), &out),
    }
}

/// The bytes of an argument, as the shell has passed it.
fn bytes(argument: OsString) -> Vec<u8> {
    argument.into_encoded_bytes()
}
