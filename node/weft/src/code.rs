//! The register code that functions are compiled to.
//!
//! Every operation is typed: the checker has proven what its registers hold, and nothing is decided by looking at a
//! value. Each costs one operation of the budget, and those marked *by size* more.

/// A register of the running function.
pub type Register = u16;
/// A cursor of the running function.
pub type Cursor = u16;
/// A place in the function's code.
pub type Target = u32;

/// How values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// bool, int, time, duration, enum
    Word,
    /// text, by Unicode scalar values; real, bytes, endpoint
    Text,
    /// node, by its bytes
    Node,
    /// Anything else, part by part (*by size*); `none` first.
    Deep,
}

/// Arithmetic on words, checked; division rounds towards minus infinity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// How a value is written into a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Written {
    Int,
    Real,
    Bool,
    Text,
    Node,
    Time,
    Duration,
    Enum(u32),
}

/// From a real to a whole one; what is too large for an int refuses the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Rounding {
    Floor,
    Ceiling,
    /// To the nearer one, halves away from zero.
    Round,
}

/// Functions on texts (*by size*).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TextFunction {
    Lower,
    Upper,
    Trim,
}

/// An end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// There is none.
    Open,
    /// The value is in the range.
    Included,
    /// The value is not in the range.
    Excluded,
}

/// Rows of a state list: those whose first fields, of the key or of an index, equal values, and whose next one is between
/// two ends; in the order of those fields and then of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// The list.
    pub list: u32,
    /// The index of the list whose fields are meant; none: the key's.
    pub index: Option<u16>,
    /// Here stand the values: as many as are equal, then the lower end where there is one, then the upper.
    pub first: Register,
    /// How many fields are equal.
    pub equal: u16,
    /// The lower end of the next field.
    pub from: End,
    /// The upper end of the next field.
    pub upto: End,
    /// In which order.
    pub order: Order,
    /// Whether rows that were removed since the opening are skipped; where nothing can change, nobody looks.
    pub live: bool,
}

/// In which order rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Of the fields by which they are found.
    Forward,
    /// The other way round.
    Backward,
    /// So many fields behind the equal ones the other way round, rows that are alike in them in the order of keys.
    Turned(u16),
    /// Of keys, whatever they are found by: all that the range has are looked for at the opening, or all rows run over
    /// where it has too many.
    ByKey,
}

/// What is made of a field of many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// Their sum.
    Sum,
    /// The least one, or none.
    Least,
    /// The greatest one, or none.
    Greatest,
}

/// What a cursor runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// Rows as they were at the opening.
    Rows(Rows),
    /// The values that a field has, each once: the first field of what the rows are found by.
    Distinct(Rows, u16),
    /// A list's elements.
    List(Register),
    /// From an int to another, both included.
    Range(Register, Register),
}

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "operands are named by what they are")]
// Its number by itself: where it is read out of an operand's, telling operations apart takes longer.
#[repr(u8)]
pub enum Operation {
    Constant {
        out: Register,
        constant: u32,
    },
    Copy {
        out: Register,
        from: Register,
    },
    Now {
        out: Register,
    },
    Me {
        out: Register,
    },

    Jump {
        to: Target,
    },
    JumpIf {
        condition: Register,
        to: Target,
    },
    JumpUnless {
        condition: Register,
        to: Target,
    },
    JumpIfNone {
        value: Register,
        to: Target,
    },
    JumpIfThere {
        value: Register,
        to: Target,
    },
    /// Whether a word is less than another is as wanted.
    JumpLess {
        left: Register,
        right: Register,
        wanted: bool,
        to: Target,
    },
    /// Whether two words are equal is as wanted.
    JumpEqual {
        left: Register,
        right: Register,
        wanted: bool,
        to: Target,
    },
    /// Whether there is a row at a key is as wanted.
    JumpHasRow {
        list: u32,
        key: Register,
        wanted: bool,
        to: Target,
    },

    Arithmetic {
        operator: Arithmetic,
        out: Register,
        left: Register,
        right: Register,
    },
    Negate {
        out: Register,
        from: Register,
    },
    /// Arithmetic on reals; a result that is not finite refuses the event. There is no remainder.
    RealArithmetic {
        operator: Arithmetic,
        out: Register,
        left: Register,
        right: Register,
    },
    RealNegate {
        out: Register,
        from: Register,
    },
    /// The real next to an int.
    IntToReal {
        out: Register,
        from: Register,
    },
    RealToInt {
        rounding: Rounding,
        out: Register,
        from: Register,
    },
    Not {
        out: Register,
        from: Register,
    },
    IsNone {
        out: Register,
        from: Register,
    },
    Equal {
        comparison: Comparison,
        out: Register,
        left: Register,
        right: Register,
    },
    Less {
        comparison: Comparison,
        out: Register,
        left: Register,
        right: Register,
    },

    /// The value in a text's form.
    Write {
        written: Written,
        out: Register,
        from: Register,
    },
    /// The texts of `count` registers from `first`, one after the other (*by size*).
    Join {
        out: Register,
        first: Register,
        count: u16,
    },
    /// How many Unicode scalar values (*by size*).
    TextLength {
        out: Register,
        from: Register,
    },
    /// How many bytes.
    BytesLength {
        out: Register,
        from: Register,
    },
    TextFunction {
        function: TextFunction,
        out: Register,
        from: Register,
    },
    /// Whether a text stands in another (*by size*).
    TextContains {
        out: Register,
        text: Register,
        part: Register,
    },
    /// At most `count` characters of a text, from one on, which count from 0 (*by size*).
    TextSlice {
        out: Register,
        text: Register,
        from: Register,
        count: Register,
    },

    /// A record of `count` registers from `first` (*by size*).
    MakeRecord {
        out: Register,
        first: Register,
        count: u16,
    },
    Field {
        out: Register,
        record: Register,
        field: u16,
    },
    /// A copy of a record with one field changed (*by size*).
    WithField {
        out: Register,
        record: Register,
        field: u16,
        value: Register,
    },

    MakeList {
        out: Register,
    },
    /// At the end; *by size* when the list is shared.
    Push {
        list: Register,
        value: Register,
    },
    /// `MakeRecord` and `Push` in one, of a record that nobody else wants (*by size*).
    PushRecord {
        list: Register,
        first: Register,
        count: u16,
    },
    ListLength {
        out: Register,
        list: Register,
    },
    /// The element at a place from 0, or none.
    ListAt {
        out: Register,
        list: Register,
        index: Register,
    },
    /// The element at a place from 0; outside of the list the event is refused.
    ElementThere {
        out: Register,
        list: Register,
        index: Register,
    },
    /// Puts another element at a place that is there; *by size* when the list is shared.
    SetElement {
        list: Register,
        index: Register,
        value: Register,
    },
    /// *By size.*
    ListContains {
        out: Register,
        list: Register,
        value: Register,
    },
    /// Sorts a list of records by their first `keys` fields, stably; bits of `descending` turn a key round (*by size*).
    Sort {
        list: Register,
        keys: u16,
        descending: u64,
    },
    /// From a list of records (key, element) to one of records (key, elements), in the order of keys, the elements of
    /// a key in the order in which they stood (*by size*, as sorting).
    Group {
        list: Register,
    },
    /// Keeps at most so many elements.
    Truncate {
        list: Register,
        length: Register,
    },

    /// The list's key from its fields in registers.
    MakeKey {
        out: Register,
        list: u32,
        first: Register,
        count: u16,
    },
    /// The key of a row; of none, none.
    KeyOf {
        out: Register,
        list: u32,
        row: Register,
    },
    /// The row at a key, or none; with the key none, none.
    Row {
        out: Register,
        list: u32,
        key: Register,
    },
    /// The row at a key; without one the event is refused.
    RowThere {
        out: Register,
        list: u32,
        key: Register,
    },
    /// The key if there is a row at it, or none.
    KeyNow {
        out: Register,
        list: u32,
        key: Register,
    },
    /// As `KeyNow`; then whether there is a row is as wanted.
    JumpKeyNow {
        out: Register,
        list: u32,
        key: Register,
        wanted: bool,
        to: Target,
    },
    /// The key; without a row at it the event is refused.
    KeyThere {
        out: Register,
        list: u32,
        key: Register,
    },
    /// A field of the row at a key; without one the event is refused.
    FieldThere {
        out: Register,
        list: u32,
        key: Register,
        field: u16,
    },
    /// A field of the row that a cursor is at, where nothing changed it since the opening.
    FieldOf {
        out: Register,
        cursor: Cursor,
        list: u32,
        field: u16,
    },
    HasRow {
        out: Register,
        list: u32,
        key: Register,
    },
    /// Refuses the event if the key exists; gives the key.
    AddRow {
        list: u32,
        row: Register,
        out: Register,
    },
    /// As `AddRow`, the row's fields in registers.
    AddFields {
        list: u32,
        first: Register,
        count: u16,
        out: Register,
    },
    /// Gives the key.
    PutRow {
        list: u32,
        row: Register,
        out: Register,
    },
    /// Removes nothing if nothing is there.
    RemoveRow {
        list: u32,
        key: Register,
    },
    /// Without a row the event is refused.
    SetField {
        list: u32,
        key: Register,
        field: u16,
        value: Register,
    },
    /// As `FieldThere`, `Arithmetic` with what is there on the left, and `SetField` of the result.
    UpdateField {
        operator: Arithmetic,
        list: u32,
        key: Register,
        field: u16,
        right: Register,
    },
    RowCount {
        out: Register,
        list: u32,
    },
    /// How many rows a range has.
    CountRows {
        out: Register,
        rows: Rows,
    },
    /// Empties a local list.
    Clear {
        list: u32,
    },
    /// All rows as a list (*by size*).
    AllRows {
        out: Register,
        list: u32,
    },
    LoadVariable {
        out: Register,
        list: u32,
    },
    StoreVariable {
        list: u32,
        value: Register,
    },
    /// An int from `low` to `high`, each as likely, from the event's entropy. Empty ranges refuse the event.
    Random {
        out: Register,
        low: Register,
        high: Register,
    },
    /// A text of 26 letters and digits from the event's entropy (128 bits).
    NewId {
        out: Register,
    },
    /// A number that the list's key never had.
    NextId {
        out: Register,
        list: u32,
    },

    Open {
        cursor: Cursor,
        over: Over,
    },
    /// The next element, of rows the key, or a jump when there is none.
    Next {
        cursor: Cursor,
        out: Register,
        done: Target,
    },

    /// The next row of which a field of a plain word is a key of another list or, unless `wanted`, is none, or a jump when
    /// there is no such row: `Next`, `FieldOf` and `JumpHasRow` in one (one operation a row).
    NextWhere {
        cursor: Cursor,
        out: Register,
        list: u32,
        field: u16,
        /// Gets the field.
        value: Register,
        /// The list by one plain word whose keys are meant.
        keys: u32,
        wanted: bool,
        done: Target,
    },

    /// Runs a cursor over rows to its end and folds a field of a plain word of each (one operation a row).
    Fold {
        fold: Fold,
        cursor: Cursor,
        list: u32,
        field: u16,
        /// Of a sum the first of its two registers; else the least or the greatest so far, or none.
        into: Register,
        /// The loop over all groups of a list, where the rows are one of them: the rows of all may be folded at once.
        groups: Option<Cursor>,
    },
    /// Adds a word to a sum of 128 bits in two registers.
    SumInto {
        sum: Register,
        value: Register,
    },
    /// The word that a sum of 128 bits is; one that is none refuses the event.
    Sum {
        out: Register,
        sum: Register,
    },

    Call {
        function: u32,
        first: Register,
        count: u16,
        out: Register,
    },
    Return {
        value: Option<Register>,
    },
    /// Ends the event without a trace, with this text as the reason.
    Refuse {
        reason: Register,
    },
    Send {
        output: u32,
        first: Register,
        count: u16,
        to: Register,
    },
    Setting {
        out: Register,
        setting: u32,
    },
    /// Begins a timer, or moves the one of the same arguments.
    Start {
        timer: u32,
        first: Register,
        count: u16,
        /// When it is due.
        time: Register,
    },
    /// Ends a timer; without one it does nothing.
    Cancel {
        timer: u32,
        first: Register,
        count: u16,
    },
    /// Only in tests: what the world around the machine does.
    Test(TestOperation),
}

impl Operation {
    /// Where it may go on instead of behind it.
    pub(crate) fn target(&mut self) -> Option<&mut Target> {
        match self {
            Operation::Jump { to }
            | Operation::JumpIf { to, .. }
            | Operation::JumpUnless { to, .. }
            | Operation::JumpIfNone { to, .. }
            | Operation::JumpIfThere { to, .. }
            | Operation::JumpLess { to, .. }
            | Operation::JumpEqual { to, .. }
            | Operation::JumpHasRow { to, .. }
            | Operation::JumpKeyNow { to, .. }
            | Operation::Next { done: to, .. }
            | Operation::NextWhere { done: to, .. } => Some(to),
            _ => None,
        }
    }

    /// The list and the field whose values it changes in rows that stay; not where it puts whole rows. What is left out
    /// here, loops over an index would read as it was: the engine asserts that none does.
    pub(crate) fn assigns(&self) -> Option<(u32, u16)> {
        match self {
            Operation::SetField { list, field, .. } | Operation::UpdateField { list, field, .. } => {
                Some((*list, *field))
            }
            _ => None,
        }
    }

    /// Where it puts what it makes of other registers, of those that make words most often.
    pub(crate) fn out(&mut self) -> Option<&mut Register> {
        match self {
            Operation::Constant { out, .. }
            | Operation::Now { out }
            | Operation::Arithmetic { out, .. }
            | Operation::RealArithmetic { out, .. }
            | Operation::Join { out, .. }
            | Operation::LoadVariable { out, .. }
            | Operation::Field { out, .. }
            | Operation::ListAt { out, .. }
            | Operation::KeyNow { out, .. }
            | Operation::FieldThere { out, .. }
            | Operation::FieldOf { out, .. }
            | Operation::NewId { out }
            | Operation::NextId { out, .. } => Some(out),
            _ => None,
        }
    }
}

/// What a test asks of the world of nodes that it runs in. Where a node is left out, it is the test's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "operands are named by what they are")]
pub enum TestOperation {
    /// What comes now stands on this line of the source.
    Line(u32),
    /// A new node.
    Node { out: Register },
    /// Reads state, settings and `me` of this node from now on.
    Visit { node: Option<Register> },
    /// An input from outside. A refusal fails the test, unless it is wanted: then it is the reason, or none.
    Post {
        node: Option<Register>,
        input: u32,
        first: Register,
        count: u16,
        by: Option<Register>,
        out: Register,
        refusal: Option<Register>,
    },
    /// A send of another node.
    Deliver {
        node: Option<Register>,
        input: u32,
        first: Register,
        count: u16,
        from: Register,
        out: Register,
        refusal: Option<Register>,
    },
    /// Gives a node's setting a value.
    Set { node: Option<Register>, setting: u32, value: Register },
    /// Lets time pass.
    Advance { by: Register },
    /// Fails the test unless it holds, with the expectation's text and the two sides of a comparison.
    Expect { condition: Register, text: u32, sides: Option<Sides> },
    /// Fails the test unless there is a refusal, and of this reason.
    ExpectRefused { refusal: Register, because: Option<Register> },
    /// Fails the test unless this was sent and not expected before.
    ExpectSent { output: u32, first: Register, count: u16, to: Register },
}

/// The two sides of a comparison in a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sides {
    /// The left one.
    pub left: Register,
    /// The right one.
    pub right: Register,
    /// The number of their type in [`crate::Module::shown`].
    pub kind: u32,
}

/// The code of one function, handler or view.
#[derive(Debug, Clone, Default)]
pub struct Function {
    /// For diagnostics.
    pub name: String,
    /// How many registers it needs; its arguments stand in the first ones.
    pub registers: u16,
    /// How many cursors it needs.
    pub cursors: u16,
    /// Its operations; the last one returns.
    pub code: Vec<Operation>,
    /// Where the list is made that is all that it gives: added to, returned, and not looked at.
    pub collects: Option<Register>,
}
