//! The tree of a source file.

use crate::diagnostics::Span;
use crate::value::Real;

/// A word of the source and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: Span,
}

#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) settings: Vec<Field>,
    pub(crate) enums: Vec<Enum>,
    pub(crate) records: Vec<Record>,
    pub(crate) states: Vec<State>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) everies: Vec<Every>,
    pub(crate) procedures: Vec<Procedure>,
    pub(crate) functions: Vec<Function>,
    pub(crate) tests: Vec<Test>,
    /// Names of declarations that were reported and left out: nothing more is said about them.
    pub(crate) lost: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Enum {
    pub(crate) name: Word,
    pub(crate) cases: Vec<Word>,
}

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) name: Word,
    pub(crate) fields: Vec<Field>,
}

#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: Word,
    pub(crate) kind: TypeTree,
    pub(crate) default: Option<Expression>,
}

#[derive(Debug, Clone)]
pub(crate) enum TypeTree {
    Named { name: Word, optional: bool },
    List { element: Box<TypeTree>, span: Span },
    Keyed { element: Word, keys: Vec<Word>, indexes: Vec<Vec<Word>>, span: Span },
}

impl TypeTree {
    pub(crate) fn span(&self) -> Span {
        match self {
            TypeTree::Named { name, .. } => name.span,
            TypeTree::List { span, .. } | TypeTree::Keyed { span, .. } => *span,
        }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) transient: bool,
    pub(crate) name: Word,
    pub(crate) kind: TypeTree,
    pub(crate) initial: Option<Expression>,
}

#[derive(Debug)]
pub(crate) enum Source {
    /// From outside, perhaps naming who.
    Outside { by: Option<Word> },
    /// A send of another node.
    Peer { peer: Word, of: Option<Word> },
}

#[derive(Debug)]
pub(crate) enum HandlerKind {
    On { fields: Vec<Field>, source: Source, answer: Option<TypeTree> },
    Timer { fields: Vec<Field> },
    Delivered { blanks: Vec<Option<Word>>, to: Option<Word> },
    Refused { blanks: Vec<Option<Word>>, to: Option<Word>, because: Option<Word> },
}

#[derive(Debug)]
pub(crate) struct Handler {
    pub(crate) name: Word,
    pub(crate) kind: HandlerKind,
    pub(crate) body: Block,
}

/// `output name(fields) for app`
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) name: Word,
    pub(crate) fields: Vec<Field>,
    /// None: to an endpoint.
    pub(crate) app: Option<Word>,
}

/// `every 5 min { }`
#[derive(Debug)]
pub(crate) struct Every {
    /// Milliseconds, where they stand.
    pub(crate) period: (i64, Span),
    pub(crate) body: Block,
}

#[derive(Debug)]
pub(crate) struct Test {
    /// With escapes resolved.
    pub(crate) title: String,
    pub(crate) span: Span,
    pub(crate) body: Block,
}

#[derive(Debug)]
pub(crate) struct Procedure {
    pub(crate) name: Word,
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Block,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Word,
    pub(crate) is_view: bool,
    pub(crate) fields: Vec<Field>,
    pub(crate) by: Option<Word>,
    pub(crate) answer: Option<TypeTree>,
    pub(crate) body: FunctionBody,
}

#[derive(Debug)]
pub(crate) enum FunctionBody {
    Expression(Expression),
    Block(Block),
}

#[derive(Debug, Default)]
pub(crate) struct Block {
    pub(crate) statements: Vec<Statement>,
}

#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum StatementKind {
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
pub(crate) enum Expectation {
    Holds(Expression),
    Refused { place: Expression, because: Option<Expression> },
    Sent { name: Word, arguments: Vec<Expression>, to: Expression },
}

#[derive(Debug)]
pub(crate) enum LetValue {
    Change(Change),
    Expression(Expression),
    Else(Expression, Otherwise),
}

#[derive(Debug)]
pub(crate) enum Otherwise {
    Exit(Exit, Span),
    Change(Change),
    Expression(Expression),
}

#[derive(Debug)]
pub(crate) enum Exit {
    Return(Option<Expression>),
    Refuse(Expression),
    Break,
    Continue,
}

#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) place: Expression,
    pub(crate) replace: bool,
    pub(crate) value: Expression,
    pub(crate) span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assignment {
    Set,
    Add,
    Subtract,
    Multiply,
}

#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) sources: Vec<QuerySource>,
    pub(crate) group: Option<Group>,
    pub(crate) order: Vec<(Expression, bool)>,
    pub(crate) take: Option<Expression>,
    pub(crate) span: Span,
    pub(crate) height: u16,
}

/// `group by key as name where condition`
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) key: Expression,
    pub(crate) name: Word,
    pub(crate) condition: Option<Expression>,
}

#[derive(Debug)]
pub(crate) struct QuerySource {
    pub(crate) name: Word,
    pub(crate) list: Expression,
    pub(crate) upto: Option<Expression>,
    pub(crate) condition: Option<Expression>,
}

#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) kind: Box<ExpressionKind>,
    pub(crate) span: Span,
    /// How deep the tree below is; at most [`super::NESTING_MAX`] times a small factor, so that walks may recurse.
    pub(crate) height: u16,
}

#[derive(Debug)]
pub(crate) enum ExpressionKind {
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
pub(crate) struct Who {
    /// Whether it is `from`.
    pub(crate) from: bool,
    pub(crate) value: Expression,
}

#[derive(Debug)]
pub(crate) enum Piece {
    Literal(String),
    Value(Expression),
}

#[derive(Debug)]
pub(crate) enum Item {
    Named(Word, Expression),
    Place(Expression),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
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
    pub(crate) fn sign(self) -> &'static str {
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
    pub(crate) fn strength(self) -> u8 {
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
