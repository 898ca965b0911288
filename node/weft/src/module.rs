//! A compiled app.

/// A checked and compiled app.
#[derive(Debug)]
pub struct Module {
    /// The app's name, as its first line says.
    pub name: String,
}

impl Module {
    /// Canonical text of the state's lists, fields and types: with equal shapes, rows of one read as the other's.
    pub fn shape(&self) -> String {
        unimplemented!()
    }
}
