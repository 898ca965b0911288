//! Sends records to a receiver of the link that somebody else wrote, from docs/link.md: `--help` says how.

#![allow(clippy::print_stdout, reason = "what it says is its result")]

#[path = "../tests/second_receiver/relay.rs"]
mod relay;
#[path = "../tests/second_receiver/sender.rs"]
mod sender;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use sealing::{Identity, Ticket};
use sha2::{Digest, Sha256};

use crate::relay::Weather;
use crate::sender::{Course, Destination};

/// Sends records to one receiver through a path on loopback that loses, doubles and delays datagrams.
///
/// With --id it says its node id (sv1…), which the receiver has to take as a peer, and ends. Otherwise it says
/// `sent NUMBER LENGTH SHA-256` of each record, sends all of them in one stream (5e, 16 times) from app "sender" to app
/// "receiver", says `delivered NUMBER`, `refused NUMBER REASON` or `answered NUMBER BYTES` once all have an outcome, and ends
/// with 0. Where the receiver misbehaves or takes too long it says why and ends with 1.
#[derive(Parser)]
struct Arguments {
    /// Say this sender's node id and end.
    #[arg(long)]
    id: bool,
    /// The receiver's ticket (svt2…); its card is fetched by it (docs/link.md, 4.6).
    #[arg(long, required_unless_present = "id")]
    ticket: Option<Ticket>,
    /// The receiver's card (the statement's bytes, hexadecimal), so that it is not fetched.
    #[arg(long)]
    card: Option<String>,
    /// Where the receiver is, if not at the ticket's first address.
    #[arg(long)]
    to: Option<SocketAddr>,
    /// How many records.
    #[arg(long, default_value_t = 100)]
    records: u64,
    /// Their lengths in turn, in bytes.
    #[arg(long, value_delimiter = ',', default_value = "61,800,801,1200,20000,0,262144")]
    sizes: Vec<usize>,
    /// How often the sender starts anew in the middle, with its memo.
    #[arg(long, default_value_t = 0)]
    restarts: u64,
    /// Thousandths of datagrams lost, of each direction.
    #[arg(long, default_value_t = 0)]
    lost: u64,
    /// Thousandths that come twice.
    #[arg(long, default_value_t = 0)]
    doubled: u64,
    /// Thousandths that come late, by up to 30 ms.
    #[arg(long, default_value_t = 0)]
    late: u64,
    /// What losses and so on are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Which sender it is: another number, another node.
    #[arg(long, default_value_t = 1)]
    node: u8,
    /// The sender's folder, where its memo file is; without one it has met nobody before.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Seconds until it gives up.
    #[arg(long, default_value_t = 60)]
    patience: u64,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("failed: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let identity = Arc::new(Identity::from_seed(&[arguments.node; 64]));
    let Some(ticket) = arguments.ticket.as_ref().filter(|_| !arguments.id) else {
        println!("{}", identity.id());
        return Ok(());
    };
    let card = match &arguments.card {
        Some(card) => {
            Some(sealing::Card::verify(&bytes_of_hex(card)?).map_err(|error| format!("--card: {error}"))?)
        }
        None => None,
    };
    let address =
        arguments.to.or(ticket.addresses().first().copied()).ok_or("the ticket has no address: --to")?;
    let to = Destination { node: ticket.node(), card_hash: Some(ticket.card_hash()), card, address };
    let course = Course {
        identity,
        records: arguments.records,
        sizes: arguments.sizes.clone(),
        restarts: arguments.restarts,
        weather: Weather {
            seed: arguments.seed,
            lost: arguments.lost,
            doubled: arguments.doubled,
            late: arguments.late,
        },
        patience: Duration::from_secs(arguments.patience),
    };
    for number in 1..=course.records {
        let payload = course.payload(number);
        let hash: String = Sha256::digest(&payload).iter().map(|byte| format!("{byte:02x}")).collect();
        println!("sent {number} {} {hash}", payload.len());
    }
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = arguments.folder.as_deref().unwrap_or(temporary.path());
    for (number, outcome) in course.run(folder, &to)? {
        match outcome {
            None => println!("delivered {number}"),
            Some(link::Outcome::Refused(reason)) => println!("refused {number} {reason}"),
            Some(link::Outcome::Answered(answer)) => println!("answered {number} {}", answer.len()),
        }
    }
    Ok(())
}

fn bytes_of_hex(text: &str) -> Result<Vec<u8>, String> {
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap_or(""));
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).map_err(|error| format!("--card: {pair:?}: {error}")))
        .collect()
}
