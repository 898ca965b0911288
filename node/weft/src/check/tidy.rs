//! Leaves out of a function's code what does nothing: jumps to jumps, jumps to what comes next, and what is never reached.
//! Looking for a row and asking whether there is one becomes one operation.

use crate::code::{Operation, Target};

/// Jumps that are followed from one jump: some, however they lie.
const FOLLOWED_MAX: usize = 16;

/// The same code without what does nothing.
pub(super) fn tidied(mut code: Vec<Operation>) -> Vec<Operation> {
    join_looks(&mut code);
    for at in 0..code.len() {
        let Some(mut to) = code[at].target().copied() else { continue };
        for _ in 0..FOLLOWED_MAX {
            let Some(Operation::Jump { to: next }) = code.get(to as usize) else { break };
            to = *next;
        }
        if let Some(target) = code[at].target() {
            *target = to;
        }
    }
    let mut kept = reached(&mut code);
    // From the end: whether a jump leads to what comes next depends on what is kept behind it.
    let mut next = code.len();
    for at in (0..code.len()).rev().filter(|at| kept[*at]).collect::<Vec<usize>>() {
        if let Operation::Jump { to } = code[at]
            && to as usize > at
            && to as usize <= next
        {
            kept[at] = false;
        } else {
            next = at;
        }
    }
    let mut places: Vec<Target> = Vec::with_capacity(code.len() + 1);
    let mut place = 0;
    for kept in &kept {
        places.push(place);
        place += Target::from(*kept);
    }
    let mut kept = kept.iter();
    code.retain(|_| kept.next().is_some_and(|kept| *kept));
    for operation in &mut code {
        if let Some(to) = operation.target() {
            *to = places.get(*to as usize).copied().unwrap_or(place);
        }
    }
    code
}

/// Joins `KeyNow` and the jump that follows by what it found, where nothing else leads to that.
fn join_looks(code: &mut [Operation]) {
    let mut aimed = vec![false; code.len()];
    for operation in &mut *code {
        if let Some(place) = operation.target().and_then(|to| aimed.get_mut(*to as usize)) {
            *place = true;
        }
    }
    for at in 1..code.len() {
        let Operation::KeyNow { out, list, key } = code[at - 1] else { continue };
        let (wanted, to) = match code[at] {
            Operation::JumpIfThere { value, to } if value == out && !aimed[at] => (true, to),
            Operation::JumpIfNone { value, to } if value == out && !aimed[at] => (false, to),
            _ => continue,
        };
        code[at - 1] = Operation::JumpKeyNow { out, list, key, wanted, to };
        code[at] = Operation::Jump { to: at as Target + 1 };
    }
}

/// Which operations are reached.
fn reached(code: &mut [Operation]) -> Vec<bool> {
    let mut reached = vec![false; code.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        if at >= code.len() || std::mem::replace(&mut reached[at], true) {
            continue;
        }
        if let Some(to) = code[at].target() {
            open.push(*to as usize);
        }
        if !matches!(code[at], Operation::Jump { .. } | Operation::Return { .. } | Operation::Refuse { .. }) {
            open.push(at + 1);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_nothing_is_left_out() {
        let jump = |to| Operation::Jump { to };
        let unless = |to| Operation::JumpUnless { condition: 0, to };
        let now = Operation::Now { out: 1 };
        let end = Operation::Return { value: None };
        let look = Operation::KeyNow { out: 2, list: 0, key: 1 };
        let joined = |wanted, to| Operation::JumpKeyNow { out: 2, list: 0, key: 1, wanted, to };
        let (if_there, if_none) =
            (Operation::JumpIfThere { value: 2, to: 3 }, Operation::JumpIfNone { value: 2, to: 3 });
        for (code, expected) in [
            (vec![now, end], vec![now, end]),
            // `if` without `else`, at the end of a loop.
            (vec![unless(3), now, jump(3), jump(4), jump(0)], vec![unless(0), now, jump(0)]),
            // `let … else break`
            (vec![unless(2), jump(3), jump(5), now, jump(0), end], vec![unless(3), now, jump(0), end]),
            // What comes behind the end.
            (vec![now, end, jump(3), now, end], vec![now, end]),
            (vec![jump(2), now, jump(4), now, end], vec![end]),
            // A look for a row, and whether there was one.
            (vec![look, if_there, now, end], vec![joined(true, 2), now, end]),
            (vec![look, if_none, now, end], vec![joined(false, 2), now, end]),
            (vec![unless(2), look, if_there, now, end], vec![unless(2), look, if_there, now, end]),
            // Round and round.
            (vec![jump(1), jump(0)], vec![jump(0)]),
        ] {
            assert_eq!(tidied(code.clone()), expected, "{code:?}");
        }
    }
}
