//! One trial that gives several values: each is shown, and compared, as a contender of its own.

use crate::BenchError;
use crate::pairs::Contender;
use std::cell::RefCell;
use std::rc::Rc;

/// A trial of one round: its values, in the order of their names.
type Trial = Box<dyn FnMut(usize) -> Result<Vec<f64>, BenchError>>;

struct Whole {
    trial: Trial,
    last: Option<(usize, Vec<f64>)>,
}

struct Part {
    name: String,
    place: usize,
    whole: Rc<RefCell<Whole>>,
}

/// The values of a trial by their names. Whichever is asked for first has it run.
pub fn parts(
    names: &[&str],
    trial: impl FnMut(usize) -> Result<Vec<f64>, BenchError> + 'static,
) -> Vec<Box<dyn Contender>> {
    let whole = Rc::new(RefCell::new(Whole { trial: Box::new(trial), last: None }));
    let part = |(place, name): (usize, &&str)| -> Box<dyn Contender> {
        Box::new(Part { name: (*name).to_owned(), place, whole: Rc::clone(&whole) })
    };
    names.iter().enumerate().map(part).collect()
}

impl Contender for Part {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn trial(&mut self, round: usize) -> Result<f64, BenchError> {
        let whole = &mut *self.whole.borrow_mut();
        let values = match whole.last.take() {
            Some((of, values)) if of == round => values,
            _ => (whole.trial)(round)?,
        };
        let value = values.get(self.place).copied();
        whole.last = Some((round, values));
        value.ok_or_else(|| BenchError::Process(format!("a trial gave no value of {}", self.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_is_run_once_whoever_is_first() -> Result<(), BenchError> {
        let runs = Rc::new(RefCell::new(Vec::new()));
        let ran = Rc::clone(&runs);
        let mut both = parts(&["a", "b"], move |round| {
            ran.borrow_mut().push(round);
            Ok(vec![round as f64, 10.0 + round as f64])
        });
        for (place, round, value) in [(0, 0, 0.0), (1, 0, 10.0), (1, 1, 11.0), (0, 1, 1.0)] {
            assert_eq!(both[place].trial(round)?, value);
        }
        assert_eq!(*runs.borrow(), [0, 1]);
        Ok(())
    }
}
