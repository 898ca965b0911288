//! `transfer_256`, `transfer_indexed`: the bank's transfer, published every 256 events.

use super::bank::{self, BRANCHES, Model, START};
use super::{settings, sizes, sqlite};
use crate::data::SEED;
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use crate::{BenchError, Extent};
use engine::{App, Snapshot};
use rusqlite::Connection;
use serde_json::json;
use std::time::Instant;

/// Events of one published batch, transfers of one of SQLite's larger transactions.
const PUBLISHED: usize = 256;
/// Transfers of a trial.
const TRANSFERS: usize = 400 * PUBLISHED;
const TRANSFERS_IN_SHORT: usize = 2 * PUBLISHED;

pub const TRANSFER_256: Declared = Declared {
    name: "transfer_256",
    unit: "events/s",
    better: Better::Higher,
    counter: false,
    bars: &[
        Bar { of: "ours", against: Some("sqlite_each"), limit: 8.0 },
        Bar { of: "ours", against: Some("sqlite_256"), limit: 4.0 },
    ],
};
pub const TRANSFER_INDEXED: Declared = Declared {
    name: "transfer_indexed",
    bars: &[Bar { of: "ours", against: Some("sqlite_256"), limit: 2.5 }],
    ..TRANSFER_256
};

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let (our_indexes, indexes) = match declared.name {
        "transfer_indexed" => (" index balance", sqlite::INDEX_ON_BALANCE),
        _ => ("", ""),
    };
    let count = if extent == Extent::Short { TRANSFERS_IN_SHORT } else { TRANSFERS };
    let contenders = |accounts: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let ours = Ours {
            app: bank::open(accounts, our_indexes)?,
            published: None,
            plan: Plan::new(accounts, count),
        };
        let sqlite = |in_one| -> Result<Box<dyn Contender>, BenchError> {
            let connection = sqlite::open(accounts, indexes)?;
            Ok(Box::new(Sqlite { connection, in_one, plan: Plan::new(accounts, count) }))
        };
        Ok(vec![Box::new(ours), sqlite(1)?, sqlite(PUBLISHED)?])
    };
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("branches", json!(BRANCHES)),
        ("transfers_a_trial", json!(count)),
        ("events_a_snapshot", json!(PUBLISHED)),
        ("our_indexes", json!(our_indexes.trim())),
        ("sqlite_indexes", json!(indexes)),
        ("sqlite_pragmas", json!(sqlite::PRAGMAS)),
        ("sqlite_options", json!(sqlite::options()?)),
    ]);
    let sizes = sizes(extent, 200, 100_000, &[10_000, 1_000_000]);
    super::measure(declared, &sizes, |accounts| format!("{accounts} accounts"), contenders, settings)
}

/// What a contender does next.
struct Plan {
    model: Model,
    count: usize,
}

impl Plan {
    fn new(accounts: usize, count: usize) -> Plan {
        Plan { model: Model::new(accounts), count }
    }
}

struct Ours {
    app: App,
    published: Option<Snapshot>,
    plan: Plan,
}

impl Contender for Ours {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, round: usize) -> Result<f64, BenchError> {
        let transfers = self.plan.model.round(round, self.plan.count);
        let asked = transfers.iter().map(|(transfer, balance)| (bank::arguments(transfer), *balance));
        let asked: Vec<(String, i64)> = asked.collect();
        let mut now = START;
        let started = Instant::now();
        for batch in asked.chunks(PUBLISHED) {
            for (arguments, balance) in batch {
                bank::transfer(&mut self.app, arguments, *balance, now)?;
                now += 1;
            }
            self.published = Some(self.app.snapshot());
        }
        Ok(transfers.len() as f64 / started.elapsed().as_secs_f64())
    }
}

struct Sqlite {
    connection: Connection,
    in_one: usize,
    plan: Plan,
}

impl Contender for Sqlite {
    fn name(&self) -> String {
        let name = if self.in_one == 1 { "sqlite_each" } else { "sqlite_256" };
        format!("{name} {}", rusqlite::version())
    }

    fn trial(&mut self, round: usize) -> Result<f64, BenchError> {
        let transfers = self.plan.model.round(round, self.plan.count);
        let mut statements = sqlite::Transfers::new(&self.connection)?;
        let started = Instant::now();
        statements.run(&transfers, self.in_one)?;
        Ok(transfers.len() as f64 / started.elapsed().as_secs_f64())
    }
}
