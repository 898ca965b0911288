//! `by_branch`, `in_credit`, `rank`, `richest_10`: the bank's views.

use super::bank::{self, BRANCHES, Model, START, branch_of};
use super::{settings, sizes, sqlite};
use crate::BenchError;
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::Contender;
use engine::Snapshot;
use rusqlite::Connection;
use serde_json::json;
use std::fmt::Write;
use std::time::Instant;

pub const BY_BRANCH: Declared = Declared {
    name: "by_branch",
    unit: "calls/s",
    better: Better::Higher,
    counter: false,
    bars: &[Bar { of: "ours", against: Some("sqlite"), limit: 5.0 }],
};
pub const IN_CREDIT: Declared = Declared { name: "in_credit", ..BY_BRANCH };
pub const RANK: Declared = Declared { name: "rank", ..BY_BRANCH };
pub const RICHEST_10: Declared = Declared {
    name: "richest_10",
    bars: &[Bar { of: "ours", against: Some("sqlite"), limit: 1.0 }],
    ..BY_BRANCH
};

/// One call of a view.
struct Call {
    /// The account of `rank`, how many of `richest`.
    argument: Option<i64>,
    /// The answer as our JSON.
    expected: String,
}

/// A view, its calls of a trial, and the same in SQL.
struct Asked {
    view: &'static str,
    parameter: &'static str,
    sql: &'static str,
    /// Names of what SQL answers, as the view has them; none of a lone number.
    columns: &'static [&'static str],
    calls: Vec<Call>,
}

pub fn measure(declared: Declared, short: bool) -> Result<Figure, BenchError> {
    let contenders = |accounts: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let mut model = Model::new(accounts);
        let connection = sqlite::open_for_views(&mut model)?;
        let snapshot = snapshot(accounts)?;
        let asked = || Asked::of(declared.name, &model, short);
        Ok(vec![Box::new(Ours { snapshot, asked: asked() }), Box::new(Sqlite { connection, asked: asked() })])
    };
    let asked = Asked::of(declared.name, &Model::new(BRANCHES), short);
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("branches", json!(BRANCHES)),
        ("calls_a_trial", json!(asked.calls.len())),
        ("sql", json!(asked.sql)),
        ("sqlite_indexes", json!(sqlite::INDEXES)),
        ("sqlite_pragmas", json!(sqlite::PRAGMAS)),
        ("sqlite_options", json!(sqlite::options()?)),
    ]);
    let sizes = sizes(short, 200, 100_000, &[10_000, 1_000_000]);
    super::measure(declared, &sizes, |accounts| format!("{accounts} accounts"), contenders, settings)
}

fn snapshot(accounts: usize) -> Result<Snapshot, BenchError> {
    let mut app = bank::open_indexed(accounts)?;
    for (transfer, balance) in Model::new(accounts).one_each() {
        bank::transfer(&mut app, &bank::arguments(&transfer), balance, START)?;
    }
    Ok(app.snapshot())
}

impl Asked {
    fn of(name: &str, model: &Model, short: bool) -> Asked {
        let often = |times: usize| if short { 2 } else { times };
        let balances = &model.balances;
        let repeated = |times: usize, argument: Option<i64>, expected: String| -> Vec<Call> {
            (0..often(times)).map(|_| Call { argument, expected: expected.clone() }).collect()
        };
        match name {
            "by_branch" => Asked {
                view: "by_branch",
                parameter: "",
                sql: "SELECT branch, sum(balance), count(*) FROM accounts GROUP BY branch",
                columns: &["branch", "total", "accounts"],
                calls: repeated(40, None, by_branch(balances)),
            },
            "in_credit" => Asked {
                view: "in_credit",
                parameter: "",
                sql: "SELECT count(*) FROM accounts WHERE balance > 0",
                columns: &[],
                calls: repeated(
                    200,
                    None,
                    balances.iter().filter(|balance| **balance > 0).count().to_string(),
                ),
            },
            "rank" => Asked {
                view: "rank",
                parameter: "account",
                sql: "SELECT 1 + (SELECT count(*) FROM accounts WHERE balance > mine.balance) \
                      FROM accounts AS mine WHERE id = ?1",
                columns: &[],
                calls: ranks(balances, often(200)),
            },
            _ => Asked {
                view: "richest",
                parameter: "n",
                sql: "SELECT accounts.id, accounts.balance, branches.id FROM accounts \
                      JOIN branches ON branches.id = accounts.branch ORDER BY accounts.balance DESC LIMIT ?1",
                columns: &["id", "balance", "branch"],
                calls: repeated(4_000, Some(10), richest(balances, 10)),
            },
        }
    }
}

fn by_branch(balances: &[i64]) -> String {
    let mut groups = [(0, 0); BRANCHES];
    for (account, balance) in balances.iter().enumerate() {
        let group = &mut groups[branch_of(account) as usize];
        *group = (group.0 + balance, group.1 + 1);
    }
    let rows = groups.iter().enumerate().filter(|(_, (_, accounts))| *accounts > 0);
    let rows = rows.map(|(branch, (total, accounts))| vec![branch as i64, *total, *accounts]);
    objects(&["branch", "total", "accounts"], rows)
}

fn ranks(balances: &[i64], calls: usize) -> Vec<Call> {
    let mut random = Random::new(3);
    let mut sorted = balances.to_vec();
    sorted.sort_unstable();
    let mut call = || {
        let account = random.below(balances.len() as u64) as usize;
        let richer = sorted.len() - sorted.partition_point(|balance| *balance <= balances[account]);
        Call { argument: Some(account as i64), expected: (1 + richer).to_string() }
    };
    (0..calls).map(|_| call()).collect()
}

/// Accounts of one balance stand in order of their keys.
fn richest(balances: &[i64], count: usize) -> String {
    let mut accounts: Vec<usize> = (0..balances.len()).collect();
    accounts.sort_by_key(|account| (std::cmp::Reverse(balances[*account]), *account));
    let rows = accounts
        .iter()
        .take(count)
        .map(|account| vec![*account as i64, balances[*account], branch_of(*account)]);
    objects(&["id", "balance", "branch"], rows)
}

/// Rows as the JSON that a view answers.
fn objects(columns: &[&str], rows: impl Iterator<Item = Vec<i64>>) -> String {
    let mut text = String::from("[");
    for (at, row) in rows.enumerate() {
        text.push_str(if at > 0 { ",{" } else { "{" });
        for (at, (column, value)) in columns.iter().zip(row).enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(text, "{comma}\"{column}\":{value}");
        }
        text.push('}');
    }
    text.push(']');
    text
}

struct Ours {
    snapshot: Snapshot,
    asked: Asked,
}

impl Contender for Ours {
    fn name(&self) -> String {
        "ours".into()
    }

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let Asked { view, parameter, calls, .. } = &self.asked;
        let queries: Vec<Vec<(String, String)>> = calls
            .iter()
            .map(|call| call.argument.iter().map(|value| ((*parameter).into(), value.to_string())).collect())
            .collect();
        let started = Instant::now();
        for (call, query) in calls.iter().zip(&queries) {
            let answer = self.snapshot.view(view, query, "local", START)?;
            if answer != call.expected {
                BenchError::unless("our view", &call.expected, answer)?;
            }
        }
        Ok(calls.len() as f64 / started.elapsed().as_secs_f64())
    }
}

struct Sqlite {
    connection: Connection,
    asked: Asked,
}

impl Contender for Sqlite {
    fn name(&self) -> String {
        format!("sqlite {}", rusqlite::version())
    }

    fn trial(&mut self, round: usize) -> Result<f64, BenchError> {
        let Asked { sql, calls, columns, .. } = &self.asked;
        let mut statement = self.connection.prepare(sql)?;
        let width = columns.len().max(1);
        // What came is compared after the clock: making JSON of it is no part of SQLite's work.
        let mut found: Vec<i64> = Vec::with_capacity(calls.len() * width * BRANCHES);
        let mut ends = Vec::with_capacity(calls.len());
        let started = Instant::now();
        for call in calls {
            let mut rows = match call.argument {
                Some(argument) => statement.query([argument])?,
                None => statement.query([])?,
            };
            while let Some(row) = rows.next()? {
                for column in 0..width {
                    found.push(row.get(column)?);
                }
            }
            ends.push(found.len());
        }
        let seconds = started.elapsed().as_secs_f64();
        let mut begins = 0;
        for (call, end) in calls.iter().zip(ends) {
            let values = &found[begins..end];
            begins = end;
            let answer = match columns.is_empty() {
                true => values.iter().map(i64::to_string).collect(),
                false => objects(columns, values.chunks(width).map(<[i64]>::to_vec)),
            };
            BenchError::unless(&format!("SQLite in round {round}"), &call.expected, answer)?;
        }
        Ok(calls.len() as f64 / seconds)
    }
}
