//! The bank of `apps/bank` on our side, and what every bank here must come to.

use super::{app, input};
use crate::BenchError;
use crate::data::Random;
use engine::{App, Context, Event};

const BANK: &str = include_str!("../../../apps/bank/bank.weft");
const INDEXES: &str = " index branch index balance";
/// Branches; the accounts are spread over them evenly.
pub const BRANCHES: usize = 100;
/// The one teller that `open` makes.
pub const TELLER: i64 = 1;
/// Every transfer is at this time, and each after it a millisecond later.
pub const START: i64 = 1_767_603_600_000;

/// The branch of an account.
pub fn branch_of(account: usize) -> i64 {
    (account % BRANCHES) as i64
}

/// What moves in one transfer.
#[derive(Debug, Clone, Copy)]
pub struct Transfer {
    pub account: usize,
    pub delta: i64,
}

/// What the accounts hold: the model that every answer is compared with. Accounts are numbers from 0.
#[derive(Debug, Clone)]
pub struct Model {
    pub balances: Vec<i64>,
}

impl Model {
    pub fn new(accounts: usize) -> Model {
        Model { balances: vec![0; accounts] }
    }

    /// The transfers of a round, to accounts at random, and the balance that each leaves.
    pub fn round(&mut self, round: usize, count: usize) -> Vec<(Transfer, i64)> {
        let mut random = Random::new(100 + round as u64);
        let accounts = self.balances.len() as u64;
        let accounts: Vec<usize> = (0..count).map(|_| random.below(accounts) as usize).collect();
        self.transfers(&accounts, 5_000, &mut random)
    }

    /// One transfer of each account, in order of their numbers: of sums so far apart that the richest differ.
    pub fn one_each(&mut self) -> Vec<(Transfer, i64)> {
        let accounts: Vec<usize> = (0..self.balances.len()).collect();
        self.transfers(&accounts, 5_000_000_000, &mut Random::new(2))
    }

    fn transfers(&mut self, accounts: &[usize], most: u64, random: &mut Random) -> Vec<(Transfer, i64)> {
        let transfer = |account: &usize| {
            // Never 0: a row that stays what it was is none that changed.
            let amount = 1 + random.below(most) as i64;
            let delta = if random.next() & 1 == 0 { amount } else { -amount };
            self.balances[*account] += delta;
            (Transfer { account: *account, delta }, self.balances[*account])
        };
        accounts.iter().map(transfer).collect()
    }
}

/// The bank's app with its accounts open, under another choice of indexes.
pub fn open(accounts: usize, indexes: &str) -> Result<App, BenchError> {
    let source = BANK.replacen(INDEXES, indexes, 1);
    if indexes != INDEXES && source == BANK {
        return Err(BenchError::Compile(format!("apps/bank has no `{INDEXES}` any more")));
    }
    let mut app = app(&source, "bank.weft")?;
    for account in 0..accounts {
        let arguments = format!(r#"{{"account":{account},"branch":{}}}"#, branch_of(account));
        input(&mut app, "open", &arguments, START)?;
    }
    Ok(app)
}

/// The bank's app as it is.
pub fn open_indexed(accounts: usize) -> Result<App, BenchError> {
    open(accounts, INDEXES)
}

/// A transfer's arguments as JSON.
pub fn arguments(transfer: &Transfer) -> String {
    let Transfer { account, delta } = transfer;
    let branch = branch_of(*account);
    format!(r#"{{"account":{account},"teller":{TELLER},"branch":{branch},"delta":{delta}}}"#)
}

/// One transfer, its answer and the number of rows that it changed checked.
pub fn transfer(app: &mut App, arguments: &str, balance: i64, now: i64) -> Result<(), BenchError> {
    let context = Context { now, entropy: [0; 32], room: 0 };
    let event = Event::Input { name: "transfer", arguments: arguments.as_bytes(), by: "local" };
    let applied = app.event(event, &context)?;
    let answer = applied.answer.as_deref().and_then(|answer| answer.parse().ok());
    // The account, the teller, the branch, the entry, and the number that the entry took.
    if answer != Some(balance) || applied.deltas.len() != 5 {
        let found = format!("{:?} and {} changed rows", applied.answer, applied.deltas.len());
        return Err(BenchError::Wrong {
            who: "our transfer".into(),
            expected: format!("{balance} and 5"),
            found,
        });
    }
    Ok(())
}
