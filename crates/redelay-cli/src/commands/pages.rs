//! `redelay completions` and `redelay man`: what is generated from the command line.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::out::Out;

pub(crate) fn completions(shell: Shell, out: &Out) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "redelay", &mut script);
    out.raw(&script)
}

pub(crate) fn man(into: Option<&Path>, out: &Out) -> Result<(), Failure> {
    let Some(folder) = into else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut page)?;
        return out.raw(&page);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .map_err(|error| Failure::Usage(format!("{} cannot be written: {error}", folder.display())))
}
