//! The bank in SQLite, in memory, as quick as its documentation knows.

use super::bank::{Model, START, TELLER, Transfer, branch_of};
use crate::BenchError;
use rusqlite::{Connection, OpenFlags, Statement, params};

const SCHEMA: &str = "
    CREATE TABLE accounts (id INTEGER PRIMARY KEY, branch INTEGER NOT NULL, balance INTEGER NOT NULL);
    CREATE TABLE tellers (id INTEGER PRIMARY KEY, branch INTEGER NOT NULL, balance INTEGER NOT NULL);
    CREATE TABLE branches (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
    CREATE TABLE history (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, teller INTEGER NOT NULL,
        branch INTEGER NOT NULL, delta INTEGER NOT NULL, at INTEGER NOT NULL);
";
/// As the engine's options for speed are described in <https://sqlite.org/pragma.html>.
pub const PRAGMAS: &str = "
    PRAGMA journal_mode = MEMORY;
    PRAGMA synchronous = OFF;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -1048576;
";
/// What a database administrator would add for the views: the first covers `by_branch`, the second the rest.
pub const INDEXES: &str = "
    CREATE INDEX accounts_by_branch ON accounts (branch, balance);
    CREATE INDEX accounts_by_balance ON accounts (balance);
";
pub const INDEX_ON_BALANCE: &str = "CREATE INDEX accounts_by_balance ON accounts (balance);";

/// A database with the bank's accounts.
pub fn open(accounts: usize, indexes: &str) -> Result<Connection, BenchError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_in_memory_with_flags(flags)?;
    connection.execute_batch(PRAGMAS)?;
    connection.execute_batch(SCHEMA)?;
    connection.execute_batch(indexes)?;
    let transaction = connection.transaction()?;
    {
        let mut open = transaction.prepare("INSERT INTO accounts VALUES (?1, ?2, 0)")?;
        let mut branch = transaction.prepare("INSERT OR IGNORE INTO branches VALUES (?1, 0)")?;
        for account in 0..accounts {
            open.execute(params![account as i64, branch_of(account)])?;
            branch.execute(params![branch_of(account)])?;
        }
        transaction.execute("INSERT INTO tellers VALUES (?1, 0, 0)", [TELLER])?;
    }
    transaction.commit()?;
    Ok(connection)
}

/// The options that SQLite was built with.
pub fn options() -> Result<Vec<String>, BenchError> {
    let connection = Connection::open_in_memory()?;
    let mut statement = connection.prepare("PRAGMA compile_options")?;
    let options = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(options)
}

/// The statements of a transfer, prepared once.
pub struct Transfers<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    account: Statement<'c>,
    teller: Statement<'c>,
    branch: Statement<'c>,
    entry: Statement<'c>,
}

impl<'c> Transfers<'c> {
    pub fn new(connection: &'c Connection) -> Result<Transfers<'c>, BenchError> {
        Ok(Transfers {
            begin: connection.prepare("BEGIN")?,
            commit: connection.prepare("COMMIT")?,
            account: connection
                .prepare("UPDATE accounts SET balance = balance + ?1 WHERE id = ?2 RETURNING balance")?,
            teller: connection.prepare("UPDATE tellers SET balance = balance + ?1 WHERE id = ?2")?,
            branch: connection.prepare("UPDATE branches SET balance = balance + ?1 WHERE id = ?2")?,
            entry: connection.prepare(
                "INSERT INTO history (account, teller, branch, delta, at) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?,
        })
    }

    /// Transfers in transactions of so many.
    pub fn run(&mut self, transfers: &[(Transfer, i64)], in_one: usize) -> Result<(), BenchError> {
        let mut now = START;
        for transaction in transfers.chunks(in_one) {
            self.begin.execute([])?;
            for (transfer, balance) in transaction {
                self.transfer(transfer, *balance, now)?;
                now += 1;
            }
            self.commit.execute([])?;
        }
        Ok(())
    }

    /// One transfer, its answer and the number of rows that it changed checked.
    fn transfer(&mut self, transfer: &Transfer, balance: i64, now: i64) -> Result<(), BenchError> {
        let Transfer { account, delta } = *transfer;
        let branch = branch_of(account);
        let found: i64 = self.account.query_row(params![delta, account as i64], |row| row.get(0))?;
        let others =
            self.teller.execute(params![delta, TELLER])? + self.branch.execute(params![delta, branch])?;
        let entries = self.entry.execute(params![account as i64, TELLER, branch, delta, now])?;
        if found != balance || others + entries != 3 {
            let found = format!("{found} and {others} + {entries} changed rows");
            return Err(BenchError::Wrong {
                who: "SQLite".into(),
                expected: format!("{balance} and 2 + 1"),
                found,
            });
        }
        Ok(())
    }
}

/// A database whose accounts had one transfer each, with the indexes of the views, analyzed.
pub fn open_for_views(model: &mut Model) -> Result<Connection, BenchError> {
    let connection = open(model.balances.len(), INDEXES)?;
    let transfers = model.one_each();
    Transfers::new(&connection)?.run(&transfers, 256)?;
    connection.execute_batch("ANALYZE")?;
    Ok(connection)
}
