//! `selvedge store`: what lies in a node's folder, looked at, written into one file, made anew of one.
//!
//! `look` says what is there, `backup` takes it elsewhere and back, `salvage` saves what can be saved,
//! `lines` is rows as people read them.

mod backup;
mod lines;
mod look;
mod salvage;

use std::process::ExitCode;

use crate::arguments::StoreCommand;
use crate::output::Output;

/// Does what was asked for.
///
/// # Errors
/// It was not done, and why; nobody reads any more.
pub fn run(command: StoreCommand, output: &mut Output) -> anyhow::Result<ExitCode> {
    match command {
        StoreCommand::Check(at) => look::check(&at.dir, output),
        StoreCommand::Stat(at) => look::stat(&at.dir, output),
        StoreCommand::Backup { of, with_identity } => backup::back_up(&of, with_identity, output),
        StoreCommand::Salvage { at, to } => salvage::salvage(&at.dir, to.as_deref(), output),
        StoreCommand::Export { of } => lines::export(&of, output),
        StoreCommand::Import { new } => lines::import(&new, output),
        StoreCommand::Restore { new } => backup::restore(&new, output),
    }
}
