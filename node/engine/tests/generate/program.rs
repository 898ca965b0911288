//! Declarations.

use super::dice::Dice;
use crate::reference::Kind;

/// A field or a parameter.
#[derive(Debug, Clone)]
pub struct Field {
    pub name: String,
    pub kind: Kind,
    pub default: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Record {
    pub name: String,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone)]
pub struct Keyed {
    pub name: String,
    pub record: usize,
    pub keys: Vec<String>,
    pub indexed: Vec<String>,
}

/// An action, a function or a view.
#[derive(Debug, Clone)]
pub struct Called {
    pub name: String,
    pub fields: Vec<Field>,
    pub answer: Kind,
}

/// What can be sent, and to what.
#[derive(Debug, Clone)]
pub struct Output {
    pub called: Called,
    pub to_endpoint: bool,
    pub transient: bool,
}

/// Everything that a program declares.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    pub source: String,
    pub enums: Vec<(String, Vec<String>)>,
    pub records: Vec<Record>,
    pub keyed: Vec<Keyed>,
    /// Names and kinds of `state` variables.
    pub variables: Vec<(String, Kind)>,
    pub functions: Vec<Called>,
    pub procedures: Vec<Called>,
    pub timers: Vec<Called>,
    pub outputs: Vec<Output>,
    pub inputs: Vec<Called>,
    /// Inputs that put a row into a list.
    pub fills: Vec<Called>,
    /// Inputs that put many rows into a list, by how far their keys are apart, and that take some away again.
    pub grows: Vec<Called>,
    pub culls: Vec<Called>,
    pub heard: Vec<Called>,
    pub views: Vec<Called>,
}

/// A name in scope.
#[derive(Debug, Clone)]
pub struct Local {
    pub name: String,
    pub kind: Kind,
    /// A `var`.
    pub changes: bool,
    /// The keyed list whose row it stands for.
    pub row_of: Option<Keyed>,
    /// Whether rows of the list may be changed here.
    pub own: bool,
}

pub struct Generator<'d> {
    pub dice: &'d mut Dice,
    pub declared: Declared,
    pub scope: Vec<Local>,
    /// Keyed lists of the function's own.
    pub own: Vec<Keyed>,
    /// Whether the body may change state.
    pub changes: bool,
    /// Loops around.
    pub loops: usize,
    /// Whether each declaration is compiled when it is made.
    checks: bool,
    /// What the body returns.
    pub answer: Option<Kind>,
    pub names: usize,
}

pub fn optional(kind: Kind) -> Kind {
    Kind::Optional(Box::new(kind))
}

pub fn list(kind: Kind) -> Kind {
    Kind::List(Box::new(kind))
}

/// A program of a seed. Most compile as they are; one that does not is made again, with only those of its declarations
/// that do.
pub fn program(dice: &mut Dice) -> Declared {
    let begins = dice.clone();
    let declared = generated(dice, false);
    if weft::compile(&declared.source, "generated.weft").is_ok() {
        return declared;
    }
    *dice = begins;
    generated(dice, true)
}

fn generated(dice: &mut Dice, checks: bool) -> Declared {
    let mut generator = Generator {
        dice,
        declared: Declared::default(),
        scope: Vec::new(),
        own: Vec::new(),
        changes: false,
        loops: 0,
        checks,
        answer: None,
        names: 0,
    };
    generator.types();
    generator.states();
    generator.outside();
    generator.bodies();
    generator.declared
}

impl Generator<'_> {
    pub fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Adds a declaration; where declarations are checked, if the program still compiles with it.
    fn declare(&mut self, text: &str) -> bool {
        let source = format!("{}{text}\n", self.declared.source);
        if !self.checks {
            self.declared.source = source;
            return true;
        }
        let compiles = weft::compile(&source, "generated.weft").is_ok();
        if compiles {
            self.declared.source = source;
        }
        compiles
    }

    fn types(&mut self) {
        self.declared.source = "app generated\n".into();
        for at in 0..1 + self.dice.below(2) {
            let cases: Vec<String> = (0..2 + self.dice.below(3)).map(|case| format!("c{at}{case}")).collect();
            let name = format!("E{at}");
            assert!(self.declare(&format!("enum {name} {{ {} }}", cases.join(", "))), "an enum compiles");
            let function = format!("fn as_{}(p0: {name}) = p0", name.to_lowercase());
            assert!(self.declare(&function), "{function}");
            self.declared.enums.push((name, cases));
        }
        for at in 0..2 + self.dice.below(2) {
            let mut fields = Vec::new();
            let keys = 1 + usize::from(self.dice.one_in(3));
            for key in 0..keys {
                let kind = if at == 0 { Kind::Int } else { self.key_kind() };
                fields.push(Field { name: format!("k{key}"), kind, default: None });
            }
            for field in 0..2 + self.dice.below(4) {
                let kind = self.kind(2);
                let default = if self.dice.one_in(3) { self.constant(&kind) } else { None };
                fields.push(Field { name: format!("f{field}"), kind, default });
            }
            let record = Record { name: format!("R{at}"), fields };
            let text = format!("record {} {{ {} }}", record.name, self.written_fields(&record.fields));
            assert!(self.declare(&text), "{text}");
            self.declared.records.push(record);
        }
    }

    fn states(&mut self) {
        for (name, kind) in
            [("my_blob", "bytes"), ("my_link", "endpoint"), ("my_peer", "node"), ("my_time", "time")]
        {
            assert!(self.declare(&format!("setting {name}: {kind}")), "a setting compiles");
        }
        assert!(self.declare("setting my_limit: int = 3"), "a setting compiles");
        for at in 0..2 + self.dice.below(2) {
            let record = if at == 0 { 0 } else { self.dice.below(self.declared.records.len()) };
            self.keyed_state(at, record);
        }
        for at in 0..2 + self.dice.below(3) {
            let name = format!("s{at}");
            let kind = if at == 0 { Kind::Int } else { self.kind(2) };
            let Some(initial) = self.constant(&kind) else { continue };
            let transient = if self.dice.one_in(6) { "transient " } else { "" };
            let text = format!("{transient}state {name}: {} = {initial}", self.written(&kind));
            assert!(self.declare(&text), "{text}");
            assert!(self.declare(&format!("view all_{name} = {{ {name} }}")), "{text}");
            self.declared.variables.push((name, kind));
        }
    }

    fn keyed_state(&mut self, at: usize, record: usize) {
        let fields = self.declared.records[record].fields.clone();
        let keys: Vec<String> = match at {
            0 => vec!["k0".into()],
            _ => fields
                .iter()
                .filter(|field| field.name.starts_with('k'))
                .map(|field| field.name.clone())
                .collect(),
        };
        let may_index = |kind: &Kind| match kind {
            Kind::Optional(inner) => !matches!(**inner, Kind::List(_) | Kind::Record(_)),
            other => !matches!(other, Kind::List(_) | Kind::Record(_)),
        };
        let all: Vec<String> =
            fields.iter().filter(|field| may_index(&field.kind)).map(|field| field.name.clone()).collect();
        let mut indexed = Vec::new();
        let mut indexes = String::new();
        for _ in 0..self.dice.below(3) {
            let mut names: Vec<String> = Vec::new();
            for _ in 0..1 + self.dice.below(2) {
                let name = self.dice.pick(&all).clone();
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            indexes.push_str(&format!(" index {}", names.join(", ")));
            indexed.extend(names);
        }
        let name = format!("l{at}");
        let transient = if at > 0 && self.dice.one_in(5) { "transient " } else { "" };
        let record_name = self.declared.records[record].name.clone();
        let text = format!("{transient}state {name}: list of {record_name} by {}{indexes}", keys.join(", "));
        assert!(self.declare(&text), "{text}");
        assert!(self.declare(&format!("view all_{name} = {name}")), "{text}");
        // Lists that nothing fills prove nothing.
        let fill = format!("fill_{name}");
        assert!(self.declare(&format!("on {fill}(p0: {record_name}) {{ {name} put p0 }}")), "{text}");
        let filled =
            vec![Field { name: "p0".into(), kind: Kind::Record(record_name.clone()), default: None }];
        self.declared.fills.push(Called { name: fill, fields: filled, answer: Kind::Unknown });
        self.grow(&name, &record_name, &fields, &keys);
        if let [key] = keys.as_slice()
            && fields.iter().any(|field| field.name == *key && field.kind == Kind::Text)
        {
            self.look(&name);
        }
        self.declared.keyed.push(Keyed { name, record, keys, indexed });
    }

    /// A view that looks for a row by a text, which may be longer than a key.
    fn look(&mut self, list: &str) {
        let name = format!("look_{list}");
        let text = format!("view {name}(p0: text) = {{ there: p0 in {list}, row: {list}[p0] }}");
        assert!(self.declare(&text), "{text}");
        let fields = vec![Field { name: "p0".into(), kind: Kind::Text, default: None }];
        self.declared.views.push(Called { name, fields, answer: Kind::Unknown });
    }

    /// Inputs that make a list large enough for trees of several nodes, and small again.
    fn grow(&mut self, name: &str, record: &str, fields: &[Field], keys: &[String]) {
        // What is no key is close together: an index of it is made of runs.
        let close = |field: &Field| if keys.contains(&field.name) { "" } else { " % 40" };
        let varied = |field: &Field| match field.kind {
            Kind::Int => Some(format!("{}: x * 37 % p1{}", field.name, close(field))),
            Kind::Duration => Some(format!("{}: 1 ms * (x * 37 % p1{})", field.name, close(field))),
            Kind::Text => Some(format!("{}: \"{{p2}}{{x * 37 % p1}}\"", field.name)),
            _ => None,
        };
        if !fields.iter().any(|field| keys.contains(&field.name) && varied(field).is_some()) {
            return;
        }
        let items: Vec<String> = fields
            .iter()
            .map(|field| varied(field).unwrap_or_else(|| format!("p0.{}", field.name)))
            .collect();
        let parameters = vec![
            Field { name: "p0".into(), kind: Kind::Record(record.into()), default: None },
            Field { name: "p1".into(), kind: Kind::Int, default: None },
            Field { name: "p2".into(), kind: Kind::Text, default: None },
            Field { name: "p3".into(), kind: Kind::Int, default: None },
        ];
        let head = format!("on grow_{name}({})", self.written_fields(&parameters));
        let text = format!(
            "{head} {{\n  for x in 1 .. p3 {{\n    {name} put {record} {{ {} }}\n  }}\n}}",
            items.join(", ")
        );
        assert!(self.declare(&text), "{text}");
        let called = Called { name: format!("grow_{name}"), fields: parameters, answer: Kind::Unknown };
        self.declared.grows.push(called);
        let text = format!(
            "on cull_{name}(p0: int) {{\n  var n = 0\n  for x in {name} {{\n    n += 1\n    if n % 4 != p0 {{\n      remove x\n    }}\n  }}\n}}"
        );
        assert!(self.declare(&text), "{text}");
        let fields = vec![Field { name: "p0".into(), kind: Kind::Int, default: None }];
        self.declared.culls.push(Called { name: format!("cull_{name}"), fields, answer: Kind::Unknown });
    }

    /// What may be named in bodies before it is declared: sends and timers. Their handlers follow.
    fn outside(&mut self) {
        for (at, to, transient) in [(0, " for other", ""), (1, "", ""), (2, " for other", "transient ")] {
            let fields = if at == 2 { self.with_text() } else { self.parameters(3, true) };
            let name = format!("out{at}");
            let answer = if at == 0 && self.dice.one_in(2) { self.kind(1) } else { Kind::Unknown };
            let arrow = match &answer {
                Kind::Unknown => String::new(),
                answer => format!(" -> {}", self.written(answer)),
            };
            let text = format!("{transient}output {name}({}){to}{arrow}", self.written_fields(&fields));
            let called = Called { name, fields, answer };
            assert!(self.declare(&text), "{text}");
            self.declared.outputs.push(Output { called, to_endpoint: at == 1, transient: at == 2 });
        }
        for at in 0..1 + self.dice.below(2) {
            let fields = if at == 0 { self.with_text() } else { self.parameters(2, false) };
            let called = Called { name: format!("timer{at}"), fields, answer: Kind::Unknown };
            // Its own body may begin it again.
            self.declared.timers.push(called.clone());
            let head = format!("on timer {}({})", called.name, self.written_fields(&called.fields));
            let before = self.declared.timers.len();
            if !self.body(&head, locals(&called.fields), None, true) {
                self.declared.timers.truncate(before - 1);
            }
        }
        for at in 0..1 + self.dice.below(2) {
            let (name, fields) = (format!("hear{at}"), self.parameters(3, true));
            let answer = if self.dice.one_in(3) { Some(self.kind(1)) } else { None };
            let from = if at == 1 { "from peer of other" } else { "from peer" };
            let called = Called {
                name: name.clone(),
                fields: fields.clone(),
                answer: answer.clone().unwrap_or(Kind::Unknown),
            };
            let mut scope = locals(&fields);
            scope.push(local("peer", Kind::Node));
            let arrow =
                answer.as_ref().map_or(String::new(), |answer| format!(" -> {}", self.written(answer)));
            let head = format!("on {name}({}) {from}{arrow}", self.written_fields(&fields));
            if self.body(&head, scope, answer, true) {
                self.declared.heard.push(called.clone());
                if at == 0 {
                    self.declared.outputs.push(Output { called, to_endpoint: false, transient: false });
                }
            }
        }
        self.ping();
    }

    /// What is sent to the same app now or never.
    fn ping(&mut self) {
        let fields = self.parameters(3, true);
        let written = self.written_fields(&fields);
        let called = Called { name: "ping".into(), fields, answer: Kind::Unknown };
        let mut scope = locals(&called.fields);
        scope.push(local("peer", Kind::Node));
        let head = format!("transient output ping({written})\non ping({written}) from peer");
        // It may send itself.
        self.declared.outputs.push(Output { called: called.clone(), to_endpoint: false, transient: true });
        if self.body(&head, scope, None, true) {
            self.declared.heard.push(called);
        } else {
            self.declared.outputs.pop();
        }
    }

    fn bodies(&mut self) {
        for at in 0..2 + self.dice.below(2) {
            self.function(&format!("fun{at}"), false);
        }
        for at in 0..1 + self.dice.below(2) {
            let fields = self.parameters(3, true);
            let called = Called { name: format!("act{at}"), fields: fields.clone(), answer: Kind::Unknown };
            let head = format!("do {}({})", called.name, self.written_fields(&fields));
            if self.body(&head, locals(&fields), None, true) {
                self.declared.procedures.push(called);
            }
        }
        for at in 0..4 + self.dice.below(4) {
            let fields = self.parameters(4, true);
            let answer = if self.dice.one_in(3) { None } else { Some(self.kind(2)) };
            let mut scope = locals(&fields);
            let by = if self.dice.one_in(4) { " by user" } else { "" };
            if !by.is_empty() {
                scope.push(local("user", Kind::Text));
            }
            let name = format!("on{at}");
            let arrow =
                answer.as_ref().map_or(String::new(), |answer| format!(" -> {}", self.written(answer)));
            let head = format!("on {name}({}){by}{arrow}", self.written_fields(&fields));
            if self.body(&head, scope, answer, true) {
                self.declared.inputs.push(Called { name, fields, answer: Kind::Unknown });
            }
        }
        self.words();
        if self.dice.one_in(2) {
            let period = *self.dice.pick(&["7 ms", "1 s", "5 min"]);
            self.body(&format!("every {period}"), Vec::new(), None, true);
        }
        for at in 0..5 + self.dice.below(4) {
            self.function(&format!("view{at}"), true);
        }
    }

    /// What the fabric says of sends.
    fn words(&mut self) {
        for Output { called: output, to_endpoint, transient } in self.declared.outputs.clone() {
            for word in ["delivered", "refused"] {
                if transient || self.dice.one_in(2) {
                    continue;
                }
                let mut scope = Vec::new();
                let mut blanks = Vec::new();
                for field in &output.fields {
                    if self.dice.one_in(3) {
                        blanks.push("_".to_owned());
                    } else {
                        scope.push(local(&field.name, field.kind.clone()));
                        blanks.push(field.name.clone());
                    }
                }
                scope.push(local("receiver", if to_endpoint { Kind::Endpoint } else { Kind::Node }));
                let mut head = format!("on {word} {}({}) to receiver", output.name, blanks.join(", "));
                if word == "refused" {
                    head.push_str(" because reason");
                    scope.push(local("reason", Kind::Text));
                } else if output.answer != Kind::Unknown && self.dice.one_in(2) {
                    head.push_str(" with answer");
                    let kind = match &output.answer {
                        Kind::Optional(_) => output.answer.clone(),
                        kind => optional(kind.clone()),
                    };
                    scope.push(local("answer", kind));
                }
                self.body(&head, scope, None, true);
            }
        }
    }

    fn function(&mut self, name: &str, is_view: bool) {
        for _ in 0..3 {
            let fields = self.parameters(3, true);
            let answer = self.kind(3);
            let mut scope = locals(&fields);
            let by = if is_view && self.dice.one_in(5) { " by user" } else { "" };
            if !by.is_empty() {
                scope.push(local("user", Kind::Text));
            }
            let word = if is_view { "view" } else { "fn" };
            let parameters = if fields.is_empty() && is_view {
                String::new()
            } else {
                format!("({})", self.written_fields(&fields))
            };
            let arrow = format!(" -> {}", self.written(&answer));
            let is_declared = match self.dice.below(3) {
                0 => self.body(
                    &format!("{word} {name}{parameters}{by}{arrow}"),
                    scope,
                    Some(answer.clone()),
                    false,
                ),
                1 => {
                    self.begin(scope, false, None);
                    let value = self.value(&answer, 3, true);
                    self.declare(&format!("{word} {name}{parameters}{by}{arrow} = {value}"))
                }
                // A view of what has no name: records, comprehensions of them.
                _ if is_view => {
                    self.begin(scope, false, None);
                    let value = self.shown(3);
                    self.declare(&format!("{word} {name}{parameters}{by} = {value}"))
                }
                _ => {
                    self.begin(scope, false, None);
                    let value = self.value(&answer, 3, false);
                    self.declare(&format!("{word} {name}{parameters} = {value}"))
                }
            };
            if is_declared {
                let called = Called { name: name.into(), fields, answer };
                if is_view {
                    self.declared.views.push(called);
                } else {
                    self.declared.functions.push(called);
                }
                return;
            }
        }
    }

    pub fn begin(&mut self, scope: Vec<Local>, changes: bool, answer: Option<Kind>) {
        self.scope = scope;
        self.own = Vec::new();
        self.changes = changes;
        self.answer = answer;
        self.loops = 0;
        self.names = 0;
    }

    /// A head with a body, of a few tries.
    fn body(&mut self, head: &str, scope: Vec<Local>, answer: Option<Kind>, changes: bool) -> bool {
        (0..5).any(|_| {
            self.begin(scope.clone(), changes, answer.clone());
            let mut text = format!("{head} {{\n");
            let count = 2 + self.dice.below(4);
            self.statements(count, 2, 1, &mut text);
            if let Some(answer) = &answer {
                let value = self.value(answer, 2, true);
                text.push_str(&format!("  return {value}\n"));
            }
            text.push('}');
            self.declare(&text)
        })
    }

    fn parameters(&mut self, most: usize, defaults: bool) -> Vec<Field> {
        let count = self.dice.below(most + 1);
        let parameter = |generator: &mut Self, at: usize| {
            let kind = generator.kind(2);
            let default = if defaults && at + 1 == count && generator.dice.one_in(3) {
                generator.constant(&kind)
            } else {
                None
            };
            Field { name: format!("p{at}"), kind, default }
        };
        (0..count).map(|at| parameter(self, at)).collect()
    }

    /// Parameters of which one is a text, which may be longer than what is kept or sent.
    fn with_text(&mut self) -> Vec<Field> {
        let mut fields = self.parameters(2, false);
        fields.push(Field { name: format!("p{}", fields.len()), kind: Kind::Text, default: None });
        fields
    }

    pub fn written_fields(&self, fields: &[Field]) -> String {
        let field = |field: &Field| {
            let default = field.default.as_ref().map_or(String::new(), |default| format!(" = {default}"));
            format!("{}: {}{default}", field.name, self.written(&field.kind))
        };
        fields.iter().map(field).collect::<Vec<_>>().join(", ")
    }
}

pub fn local(name: &str, kind: Kind) -> Local {
    Local { name: name.into(), kind, changes: false, row_of: None, own: false }
}

fn locals(fields: &[Field]) -> Vec<Local> {
    fields.iter().map(|field| local(&field.name, field.kind.clone())).collect()
}
