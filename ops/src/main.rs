//! The `selvedge` command: everything a person does is one of its subcommands.
//!
//! `arguments` is what was asked for, parsed without looking at the machine; a module for each subcommand makes it real.
//! `node` runs a node, `peer` asks a node or its folder, `store` looks at what a folder holds, `demo` runs two nodes and what lies between them, `app` is for
//! writing apps and needs no node, `manual` describes the command itself. `control` is
//! the way to a running node, `output` the way to whoever asked, `nearby` what a mistyped path likely meant. Nothing here knows how a node works: what is more than
//! asking and showing belongs to the node. `anyhow` is used here and nowhere else.

mod app;
mod arguments;
mod control;
mod demo;
mod manual;
mod nearby;
mod node;
mod output;
mod peer;
mod signals;
mod store;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::arguments::{Arguments, Command, PeerCommand};
use crate::output::Output;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut output = Output::new(arguments.json());
    run(arguments, &mut output).unwrap_or_else(|error| {
        // Whoever read has read enough, as `head` has: nothing is left to be told, and nobody to tell it to.
        if output::is_abandoned(&error) {
            return ExitCode::FAILURE;
        }
        output.error(&output::in_words(&error));
        ExitCode::FAILURE
    })
}

fn run(arguments: Arguments, output: &mut Output) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Node(arguments) => block_on(node::run(arguments, output)),
        Command::Demo(arguments) => block_on(demo::run(arguments, output)),
        Command::App(command) => app::run(command, output),
        Command::Completions { shell } => manual::completions(shell, output),
        Command::Man { dir } => manual::pages(&dir, output),
        Command::Id { at, qr } => peer::id(&at.dir, qr, output).map(|()| ExitCode::SUCCESS),
        Command::Status(at) => peer::status(&at.dir, output).map(|()| ExitCode::SUCCESS),
        Command::Store(command) => store::run(command, output),
        Command::Peer(PeerCommand::Add { at, ticket, name, addresses }) => {
            peer::add(&at.dir, &ticket, &name, &addresses, output).map(|()| ExitCode::SUCCESS)
        }
        Command::Peer(PeerCommand::SafetyNumber { at, peer }) => {
            peer::safety_number(&at.dir, peer, output).map(|()| ExitCode::SUCCESS)
        }
        Command::Peer(PeerCommand::List(at)) => peer::list(&at.dir, output).map(|()| ExitCode::SUCCESS),
        Command::Peer(PeerCommand::Resume { at, peer }) => {
            peer::resume(&at.dir, peer, output).map(|()| ExitCode::SUCCESS)
        }
        Command::Peer(PeerCommand::Remove { at, peer }) => {
            peer::remove(&at.dir, peer, output).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Runtime::new().context("cannot start threads")?;
    let result = runtime.block_on(future);
    // A request that is still under way holds nothing that must be finished.
    runtime.shutdown_background();
    result
}
