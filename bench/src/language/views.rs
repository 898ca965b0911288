//! `by_branch`, `in_credit`, `rank`, `richest_10`: the bank's views.

use super::bank::{self, BRANCHES, Model, START, branch_of};
use super::{settings, sizes, sqlite};
use crate::data::{Random, SEED};
use crate::figure::{Bar, Better, Declared, Figure};
use crate::pairs::{Contender, repeat};
use crate::{BenchError, Extent};
use engine::Snapshot;
use rusqlite::Connection;
use serde_json::json;

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

/// Accounts that `rank` is asked for in turn.
const RANKS: usize = 1_000;

/// A view, its calls in turn, and the same in SQL.
struct Asked {
    view: &'static str,
    parameter: &'static str,
    sql: &'static str,
    /// Names of what SQL answers, as the view has them; none of a lone number.
    columns: &'static [&'static str],
    /// The account of `rank`, how many of `richest`; and the answer as numbers, row by row.
    calls: Vec<(Option<i64>, Vec<i64>)>,
}

pub fn measure(declared: Declared, extent: Extent) -> Result<Figure, BenchError> {
    let contenders = |accounts: usize| -> Result<Vec<Box<dyn Contender>>, BenchError> {
        let mut model = Model::new(accounts);
        let connection = sqlite::open_for_views(&mut model)?;
        let snapshot = snapshot(accounts)?;
        let asked = || Asked::of(declared.name, &model);
        Ok(vec![Box::new(Ours { snapshot, asked: asked() }), Box::new(Sqlite { connection, asked: asked() })])
    };
    let asked = Asked::of(declared.name, &Model::new(BRANCHES));
    let settings = settings(&[
        ("seed", json!(SEED)),
        ("branches", json!(BRANCHES)),
        ("sql", json!(asked.sql)),
        ("sqlite_indexes", json!(sqlite::INDEXES)),
        ("sqlite_pragmas", json!(sqlite::PRAGMAS)),
        ("sqlite_options", json!(sqlite::options()?)),
    ]);
    let sizes = sizes(extent, 200, 100_000, &[10_000, 1_000_000]);
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
    fn of(name: &str, model: &Model) -> Asked {
        let balances = &model.balances;
        match name {
            "by_branch" => Asked {
                view: "by_branch",
                parameter: "",
                sql: "SELECT branch, sum(balance), count(*) FROM accounts GROUP BY branch",
                columns: &["branch", "total", "accounts"],
                calls: vec![(None, by_branch(balances))],
            },
            "in_credit" => Asked {
                view: "in_credit",
                parameter: "",
                sql: "SELECT count(*) FROM accounts WHERE balance > 0",
                columns: &[],
                calls: vec![(None, vec![balances.iter().filter(|balance| **balance > 0).count() as i64])],
            },
            "rank" => Asked {
                view: "rank",
                parameter: "account",
                sql: "SELECT 1 + (SELECT count(*) FROM accounts WHERE balance > mine.balance) \
                      FROM accounts AS mine WHERE id = ?1",
                columns: &[],
                calls: ranks(balances),
            },
            _ => Asked {
                view: "richest",
                parameter: "n",
                sql: "SELECT accounts.id, accounts.balance, branches.id FROM accounts \
                      JOIN branches ON branches.id = accounts.branch ORDER BY accounts.balance DESC LIMIT ?1",
                columns: &["id", "balance", "branch"],
                calls: vec![(Some(10), richest(balances, 10))],
            },
        }
    }

    /// An answer as the JSON that the view gives: a number, or a list of objects.
    fn json(&self, values: &[i64]) -> String {
        if self.columns.is_empty() {
            return values.iter().map(i64::to_string).collect();
        }
        let object = |row: &[i64]| {
            let fields = self.columns.iter().zip(row).map(|(column, value)| format!("\"{column}\":{value}"));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        };
        format!("[{}]", values.chunks(self.columns.len()).map(object).collect::<Vec<_>>().join(","))
    }
}

fn by_branch(balances: &[i64]) -> Vec<i64> {
    let mut groups = [(0, 0); BRANCHES];
    for (account, balance) in balances.iter().enumerate() {
        let group = &mut groups[branch_of(account) as usize];
        *group = (group.0 + balance, group.1 + 1);
    }
    let groups = groups.iter().enumerate().filter(|(_, (_, accounts))| *accounts > 0);
    groups.flat_map(|(branch, (total, accounts))| [branch as i64, *total, *accounts]).collect()
}

fn ranks(balances: &[i64]) -> Vec<(Option<i64>, Vec<i64>)> {
    let mut random = Random::new(3);
    let mut sorted = balances.to_vec();
    sorted.sort_unstable();
    let mut call = |_| {
        let account = random.below(balances.len() as u64) as usize;
        let richer = sorted.len() - sorted.partition_point(|balance| *balance <= balances[account]);
        (Some(account as i64), vec![1 + richer as i64])
    };
    (0..RANKS).map(&mut call).collect()
}

fn richest(balances: &[i64], count: usize) -> Vec<i64> {
    let mut accounts: Vec<usize> = (0..balances.len()).collect();
    accounts.sort_by_key(|account| std::cmp::Reverse(balances[*account]));
    let rows = accounts.into_iter().take(count);
    rows.flat_map(|account| [account as i64, balances[account], branch_of(account)]).collect()
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
        let expected: Vec<String> = calls.iter().map(|(_, values)| self.asked.json(values)).collect();
        let queries: Vec<Vec<(String, String)>> = calls
            .iter()
            .map(|(argument, _)| {
                argument.iter().map(|value| ((*parameter).into(), value.to_string())).collect()
            })
            .collect();
        let (times, elapsed) = repeat(|time| {
            let at = time % calls.len();
            let answer = self.snapshot.view(view, &queries[at], "local", START)?;
            match answer == expected[at] {
                true => Ok(()),
                false => BenchError::unless("our view", &expected[at], answer),
            }
        })?;
        Ok(times as f64 / elapsed.as_secs_f64())
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

    fn trial(&mut self, _: usize) -> Result<f64, BenchError> {
        let Asked { sql, calls, columns, .. } = &self.asked;
        let mut statement = self.connection.prepare(sql)?;
        let width = columns.len().max(1);
        let mut found: Vec<i64> = Vec::with_capacity(width * BRANCHES);
        let (times, elapsed) = repeat(|time| {
            let (argument, values) = &calls[time % calls.len()];
            found.clear();
            let mut rows = match argument {
                Some(argument) => statement.query([argument])?,
                None => statement.query([])?,
            };
            while let Some(row) = rows.next()? {
                for column in 0..width {
                    found.push(row.get(column)?);
                }
            }
            match found == *values {
                true => Ok(()),
                false => BenchError::unless("SQLite", format!("{:?}", values), format!("{found:?}")),
            }
        })?;
        Ok(times as f64 / elapsed.as_secs_f64())
    }
}
