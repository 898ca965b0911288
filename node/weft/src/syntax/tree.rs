//! The tree of a source file, as the grammar has it. Nothing in it is checked: names may stand for nothing.

#![expect(missing_docs, reason = "the grammar's words are the names")]

use crate::diagnostics::Span;
use crate::value::Real;

/// A word of the source and where it stands.
#[derive(Debug, Clone)]
pub struct Word {
    pub text: String,
    pub span: Span,
}

#[derive(Debug, Default)]
pub struct File {
    pub name: String,
    /// The words that say what the file is.
    pub header: Span,
    pub is_library: bool,
    pub uses: Vec<Use>,
    pub settings: Vec<Field>,
    pub enums: Vec<Enum>,
    pub records: Vec<Record>,
    pub states: Vec<State>,
    pub outputs: Vec<Output>,
    pub handlers: Vec<Handler>,
    pub everies: Vec<Every>,
    pub procedures: Vec<Procedure>,
    pub functions: Vec<Function>,
    pub tests: Vec<Test>,
    /// Names of declarations that were reported and left out: nothing more is said about them.
    pub lost: Vec<String>,
}

/// `use "path" as name`
#[derive(Debug)]
pub struct Use {
    pub path: Word,
    pub name: Word,
}

#[derive(Debug)]
pub struct Enum {
    pub name: Word,
    pub was: Option<Word>,
    pub cases: Vec<Case>,
}

#[derive(Debug)]
pub struct Case {
    pub name: Word,
    pub was: Option<Word>,
}

#[derive(Debug)]
pub struct Record {
    pub name: Word,
    pub was: Option<Word>,
    pub fields: Vec<Field>,
}

#[derive(Debug)]
pub struct Field {
    pub name: Word,
    pub was: Option<Word>,
    pub kind: TypeTree,
    pub default: Option<Expression>,
}

#[derive(Debug, Clone)]
pub enum TypeTree {
    Named { name: Word, optional: bool },
    List { element: Box<TypeTree>, span: Span },
    Keyed { element: Word, keys: Vec<Word>, indexes: Vec<Vec<Word>>, span: Span },
}

impl TypeTree {
    pub fn span(&self) -> Span {
        match self {
            TypeTree::Named { name, .. } => name.span,
            TypeTree::List { span, .. } | TypeTree::Keyed { span, .. } => *span,
        }
    }
}

#[derive(Debug)]
pub struct State {
    pub transient: bool,
    pub name: Word,
    pub was: Option<Word>,
    pub kind: TypeTree,
    pub initial: Option<Expression>,
}

#[derive(Debug)]
pub enum Source {
    /// From outside, perhaps naming who.
    Outside { by: Option<Word> },
    /// A send of another node.
    Peer { peer: Word, of: Option<Word> },
}

#[derive(Debug)]
pub enum HandlerKind {
    On {
        fields: Vec<Field>,
        source: Source,
        answer: Option<TypeTree>,
    },
    Timer {
        fields: Vec<Field>,
    },
    /// `with` is where the answer's name stands, which may be `_`.
    Delivered {
        blanks: Vec<Option<Word>>,
        to: Option<Word>,
        with: Option<(Span, Option<Word>)>,
    },
    Refused {
        blanks: Vec<Option<Word>>,
        to: Option<Word>,
        because: Option<Word>,
    },
}

#[derive(Debug)]
pub struct Handler {
    pub name: Word,
    pub kind: HandlerKind,
    pub body: Block,
}

/// `output name(fields) for app -> T`
#[derive(Debug)]
pub struct Output {
    pub transient: bool,
    pub name: Word,
    pub fields: Vec<Field>,
    /// None: to an endpoint, or, where it is transient, to the same app.
    pub app: Option<Word>,
    pub answer: Option<TypeTree>,
}

/// `every 5 min { }`
#[derive(Debug)]
pub struct Every {
    /// Milliseconds, where they stand.
    pub period: (i64, Span),
    pub body: Block,
}

#[derive(Debug)]
pub struct Test {
    /// With escapes resolved.
    pub title: String,
    pub span: Span,
    pub body: Block,
}

#[derive(Debug)]
pub struct Procedure {
    pub name: Word,
    pub fields: Vec<Field>,
    pub body: Block,
}

#[derive(Debug)]
pub struct Function {
    pub name: Word,
    pub is_view: bool,
    pub fields: Vec<Field>,
    pub by: Option<Word>,
    pub answer: Option<TypeTree>,
    pub body: FunctionBody,
}

#[derive(Debug)]
pub enum FunctionBody {
    Expression(Expression),
    Block(Block),
}

#[derive(Debug, Default)]
pub struct Block {
    pub statements: Vec<Statement>,
}

#[derive(Debug)]
pub struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Debug)]
pub enum StatementKind {
    Let {
        fixed: bool,
        name: Word,
        kind: Option<TypeTree>,
        value: Option<LetValue>,
    },
    If {
        arms: Vec<(Expression, Block)>,
        otherwise: Option<Block>,
    },
    For {
        query: Query,
        body: Block,
    },
    Require {
        condition: Expression,
        otherwise: Expression,
    },
    Exit(Exit),
    Change(Change),
    Assign {
        place: Expression,
        operator: Assignment,
        value: Expression,
    },
    Place(Expression),
    Remove {
        place: Expression,
        query: Option<Query>,
    },
    Send {
        name: Word,
        arguments: Vec<Expression>,
        to: Expression,
    },
    Start {
        name: Word,
        arguments: Vec<Expression>,
        /// Whether `time` is a time (`at`) rather than a duration (`after`).
        at: bool,
        time: Expression,
    },
    Cancel {
        name: Word,
        arguments: Vec<Expression>,
    },
    Expect(Expectation),
    /// Reported already.
    Broken,
}

#[derive(Debug)]
pub enum Expectation {
    Holds(Expression),
    Refused { place: Expression, because: Option<Expression> },
    Sent { name: Word, arguments: Vec<Expression>, to: Expression },
}

#[derive(Debug)]
pub enum LetValue {
    Change(Change),
    Expression(Expression),
    Else(Expression, Otherwise),
}

#[derive(Debug)]
pub enum Otherwise {
    Exit(Exit, Span),
    Change(Change),
    Expression(Expression),
}

#[derive(Debug)]
pub enum Exit {
    Return(Option<Expression>),
    Refuse(Expression),
    Break,
    Continue,
}

#[derive(Debug)]
pub struct Change {
    pub place: Expression,
    pub replace: bool,
    pub value: Expression,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    Set,
    Add,
    Subtract,
    Multiply,
}

#[derive(Debug)]
pub struct Query {
    pub sources: Vec<QuerySource>,
    pub group: Option<Group>,
    pub order: Vec<(Expression, bool)>,
    pub take: Option<Expression>,
    pub span: Span,
    pub height: u16,
}

/// `group by key as name where condition`
#[derive(Debug)]
pub struct Group {
    pub key: Expression,
    pub name: Word,
    pub condition: Option<Expression>,
}

#[derive(Debug)]
pub struct QuerySource {
    pub name: Word,
    pub list: Expression,
    pub upto: Option<Expression>,
    pub condition: Option<Expression>,
}

#[derive(Debug)]
pub struct Expression {
    pub kind: Box<ExpressionKind>,
    pub span: Span,
    /// How deep the tree below is; at most 64 times a small factor, so that walks may recurse.
    pub height: u16,
}

#[derive(Debug)]
pub enum ExpressionKind {
    Int(i64),
    Real(Real),
    Duration(i64),
    Text(Vec<Piece>),
    Bool(bool),
    None,
    Now,
    Me,
    Name(String),
    Case(String),
    Record {
        name: Option<Word>,
        items: Vec<Item>,
    },
    List(Vec<Expression>),
    Comprehension(Expression, Query),
    Negate(Expression),
    Not(Expression),
    Binary(Binary, Expression, Expression),
    In {
        value: Expression,
        list: Expression,
        upto: Option<Expression>,
    },
    Is {
        value: Expression,
        name: Word,
    },
    Else {
        value: Expression,
        otherwise: Expression,
    },
    If {
        condition: Expression,
        then: Expression,
        otherwise: Expression,
    },
    Field(Expression, Word),
    Index(Expression, Vec<Expression>),
    Call {
        callee: Expression,
        arguments: Vec<Expression>,
        query: Option<Query>,
        /// In a test: who posts or sends.
        who: Option<Who>,
    },
    /// Reported already.
    Broken,
}

/// `by user`, `from node`
#[derive(Debug)]
pub struct Who {
    /// Whether it is `from`.
    pub from: bool,
    pub value: Expression,
}

#[derive(Debug)]
pub enum Piece {
    Literal(String),
    Value(Expression),
}

#[derive(Debug)]
pub enum Item {
    Named(Word, Expression),
    Place(Expression),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    And,
    Or,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    pub fn sign(self) -> &'static str {
        match self {
            Binary::And => "and",
            Binary::Or => "or",
            Binary::Equal => "==",
            Binary::NotEqual => "!=",
            Binary::Less => "<",
            Binary::LessEqual => "<=",
            Binary::Greater => ">",
            Binary::GreaterEqual => ">=",
            Binary::Add => "+",
            Binary::Subtract => "-",
            Binary::Multiply => "*",
            Binary::Divide => "/",
            Binary::Remainder => "%",
        }
    }
    /// Higher binds closer; comparisons do not chain.
    pub fn strength(self) -> u8 {
        match self {
            Binary::Or => 1,
            Binary::And => 2,
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessEqual
            | Binary::Greater
            | Binary::GreaterEqual => 4,
            Binary::Add | Binary::Subtract => 5,
            Binary::Multiply | Binary::Divide | Binary::Remainder => 6,
        }
    }
}
