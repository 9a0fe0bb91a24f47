//! The commands, a file each: they read, and print.

mod completions_and_man;
mod doctor;
mod due;
#[cfg(feature = "exporter")]
mod exporter;
mod inspect;
mod java_struct;
mod list;
mod ls;
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
use inspect::Reading;

/// Does what the command line says.
pub(crate) async fn run(arguments: Arguments) -> Result<(), Failure> {
    let out = Out::new(arguments.json);
    let session = || Session::open(&arguments.connection);
    match arguments.command {
        Command::Ls { pattern } => ls::run(&session().await?, &bytes(pattern), &out).await,
        Command::Show { queue } => show::run(&session().await?, &bytes(queue), &out).await,
        Command::List { queue, what, limit, after, decoder, classes } => {
            let page = list::Page { what, after, limit: limit as usize };
            let session = session().await?.with_classes(&classes.classes, &out)?;
            list::run(&session, &bytes(queue), page, decoder.decoder, &out).await
        }
        Command::Due { queue, step, count } => {
            due::run(&session().await?, &bytes(queue), step, count.into(), &out).await
        }
        Command::Watch { pattern } => watch::run(&session().await?, &bytes(pattern), &out).await,
        Command::Doctor { patterns } => doctor::run(session().await, patterns, &out).await,
        Command::Pump(pumping) => pump::run(&arguments.connection, pumping, &out).await,
        #[cfg(feature = "exporter")]
        Command::Exporter(exporting) => exporter::run(&session().await?, exporting, &out).await,
        #[cfg(feature = "top")]
        Command::Top { pattern, interval, classes } => {
            top::check(&out)?;
            let session = session().await?.with_classes(&classes.classes, &out)?;
            top::run(&session, &bytes(pattern), interval, &out).await
        }
        Command::Inspect { hex, digits, codec, decoder, classes } => {
            let classes = crate::classes::load(&classes.classes, &out)?;
            inspect::run(hex, digits, Reading { codec, decoder: decoder.decoder, classes }, &out).await
        }
        Command::JavaStruct { class, classes } => java_struct::run(&class, &classes.classes, &out),
        Command::Completions { shell } => completions_and_man::completions(shell, &out),
        Command::Man { into } => completions_and_man::man(into.as_deref(), &out),
    }
}

/// The bytes of an argument, as the shell has passed it.
fn bytes(argument: OsString) -> Vec<u8> {
    argument.into_encoded_bytes()
}
