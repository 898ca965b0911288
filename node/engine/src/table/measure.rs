//! What things cost, for who changes them: `cargo test --release -p selvedge-engine --lib measure -- --ignored --nocapture`.

use super::tests::{Random, layout};
use super::{Keyed, Slot, Source};
use crate::keyed::{Key, Range};
use std::hint::black_box;
use weft::Value;
use weft::module::Type;

/// Nanoseconds that this thread ran so far, as Linux counts them: other work on the machine is not among them.
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn ran() -> u64 {
    let said = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    said.split(' ').next().and_then(|ran| ran.parse().ok()).unwrap_or_default()
}

/// Says how many nanoseconds each of so many took.
fn time(what: &str, count: u64, mut work: impl FnMut()) {
    work();
    // The clock goes in steps of 4 ms.
    let (begin, mut rounds) = (ran(), 0);
    while ran() - begin < 150_000_000 {
        work();
        rounds += 1;
    }
    let each = (ran() - begin) as f64 / (rounds * count) as f64;
    println!("{what:50} {each:8.1} ns");
}

fn table(rows: u64, key: impl Fn(u64) -> i64, indexes: &[&[u16]], covers: &[&[u16]]) -> Keyed {
    let mut table = Keyed::new(layout(&vec![Type::Int; 5], &[0], indexes, covers));
    for at in 0..rows {
        let row = [key(at), at as i64 * 7919 % 1000, 2, 3, at as i64].map(Value::Word);
        table.put(&Key::Word(key(at)), &row);
    }
    table
}

#[test]
#[ignore = "it measures"]
fn measure() {
    const ROWS: u64 = 100_000;
    let words: Vec<i64> = (0..3_000_000).map(|at| Random(at).next() as i64).collect();
    time("sum 1,000,000 times three words", 1_000_000, || {
        black_box(words.iter().sum::<i64>());
    });
    time("one of 3,000,000 words at random", 1_000_000, || {
        let mut at = 0;
        for _ in 0..1_000_000 {
            at = (words[at] as usize ^ at) % words.len();
        }
        black_box(at);
    });
    let mixed = |at: u64| Random(at).next() as i64;
    time("a new row, dense key", ROWS, || drop(black_box(table(ROWS, |at| at as i64, &[], &[]))));
    time("a new row, random key", ROWS, || drop(black_box(table(ROWS, mixed, &[], &[]))));
    for (name, rows) in [("100,000", ROWS), ("1,000,000", 1_000_000)] {
        for (kind, of) in
            [("dense", (|at| at as i64) as fn(u64) -> i64), ("random", |at| Random(at).next() as i64)]
        {
            let table = table(rows, of, &[], &[]);
            println!("{kind} {name}: {:.1} bytes a row", table.memory() as f64 / rows as f64);
            let mut random = Random(1);
            let keys: Vec<Key> = (0..rows).map(|_| Key::Word(of(random.below(rows)))).collect();
            time(&format!("find at random, {kind} {name}"), rows, || {
                for key in &keys {
                    black_box(table.find(key));
                }
            });
            time(&format!("find in order, {kind} {name}"), rows, || {
                for at in 0..rows {
                    black_box(table.find(&Key::Word(of(at))));
                }
            });
            time(&format!("walk, {kind} {name}"), rows, || {
                let mut walk = table.walk(&Range::ALL, false);
                while walk.advance() {
                    black_box(walk.word(0));
                }
            });
        }
    }
    for held in [false, true] {
        for (what, indexes) in [("a word", &[][..]), ("an indexed word", &[&[1][..]][..])] {
            let mut table = table(ROWS, |at| at as i64, indexes, &[]);
            let mut random = Random(3);
            let mut kept = held.then(|| table.clone());
            time(&format!("set {what}, a copy every 256: {held}"), ROWS, || {
                for at in 0..ROWS {
                    if held && at % 256 == 0 {
                        kept = Some(table.clone());
                    }
                    let slot = Slot(random.below(ROWS) as u32);
                    black_box(table.set(slot, 1, Value::Word(random.below(1000) as i64)));
                }
            });
            drop(kept);
        }
    }
    for (name, rows) in [("100,000", ROWS), ("1,000,000", 1_000_000)] {
        let table = table(rows, |at| at as i64, &[&[1]], &[&[4]]);
        println!(
            "with an index of two words and one covered: {:.1} bytes a row",
            table.memory() as f64 / rows as f64
        );
        time(&format!("walk an index, {name}"), rows, || {
            let mut walk = table.walk_index(0, &Range::ALL, false);
            while walk.advance() {
                black_box(walk.word(2));
            }
        });
        time(&format!("walk an index backward, {name}"), rows, || {
            let mut walk = table.walk_index(0, &Range::ALL, true);
            while walk.advance() {
                black_box(walk.word(2));
            }
        });
        time(&format!("open an index and take one, {name}"), 100_000, || {
            for at in 0..100_000 {
                let value = [Value::Word(at * 7 % 1000)];
                let mut walk = table.walk_index(0, &Range { equal: &value, ..Range::ALL }, false);
                walk.advance();
                black_box(walk.word(2));
            }
        });
        time(&format!("count a range, {name}"), 100_000, || {
            for at in 0..100_000 {
                let value = Value::Word(at * 7 % 1000);
                let from = std::ops::Bound::Excluded(&value);
                black_box(table.count_index(0, &Range { from, ..Range::ALL }));
            }
        });
    }
    let million = table(1_000_000, |at| at as i64, &[], &[]);
    let to = |indexes: &[&[u16]]| layout(&vec![Type::Int; 6], &[0], indexes, &[&[]]);
    let sources: Vec<Source<'_>> =
        (0..5).map(Source::Field).chain([Source::Constant(Value::Word(7))]).collect();
    for (what, to) in [("", to(&[])), (" and an index", to(&[&[1]]))] {
        time(&format!("add a field{what} to 1,000,000 rows"), 1, || {
            drop(black_box(million.changed(to.clone(), &sources, &|| true)))
        });
    }
    time("copy a table of 1,000,000 rows", 1, || drop(black_box(million.clone())));
}
