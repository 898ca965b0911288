//! Functions, procedures, handlers and views: what their bodies begin with and how they end.

use super::body::{Body, BodyKind, Effect};
use super::builtins::BUILT_IN;
use super::{Checker, Signature};
use crate::code::Operation;
use crate::diagnostics::{Code, Diagnostic, Span};
use crate::module::{self, Destination, Door, Output, Type};
use crate::syntax::tree::{
    ExpressionKind, Field, File, Function, FunctionBody, Handler, HandlerKind, Source, Word,
};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Checker<'_> {
    pub(super) fn check_functions(&mut self, file: &File) {
        let mut spans: HashMap<&str, Span> = HashMap::new();
        let mut twice = Vec::new();
        for (at, function) in file.functions.iter().enumerate() {
            if let Some(before) = spans.insert(&function.name.text, function.name.span) {
                self.twice(&function.name, "the function", before);
                twice.push(at);
            } else if BUILT_IN.contains(&function.name.text.as_str()) && !function.is_view {
                let message = format!("`{}` is a function of the language", function.name.text);
                self.report.push(
                    Diagnostic::new(Code::Twice, function.name.span, message).help("choose another name"),
                );
            }
        }
        let order = self.function_order(file);
        let ordered: HashSet<usize> = order.iter().copied().collect();
        for function in
            file.functions.iter().enumerate().filter(|(at, _)| !ordered.contains(at)).map(|(_, one)| one)
        {
            // In a circle, and reported: nothing more is said about calls of it.
            let signature = self.declare_function(function);
            self.functions
                .insert(function.name.text.clone(), Signature { answer: Type::Broken, ..signature });
        }
        for at in order {
            if !twice.contains(&at) {
                self.check_function(&file.functions[at]);
            }
        }
        self.check_procedure_calls(file);
        for procedure in &file.procedures {
            let Some(signature) = self.procedures.get(&procedure.name.text).cloned() else { continue };
            let mut body = Body::new(self, &procedure.name.text, Effect::Changes);
            for (tree, field) in procedure.fields.iter().zip(&signature.fields) {
                body.bind_value(&tree.name, field.kind.clone());
            }
            body.kind = BodyKind::Do;
            body.block(&procedure.body);
            body.emit(Operation::Return { value: None });
            body.finish(signature.function);
        }
    }

    fn check_function(&mut self, function: &Function) {
        let signature = self.declare_function(function);
        let mut body = Body::new(self, &function.name.text, Effect::Reads);
        for (tree, field) in function.fields.iter().zip(&signature.fields) {
            body.bind_value(&tree.name, field.kind.clone());
        }
        if let Some(by) = &function.by {
            if !function.is_view {
                body.report(Diagnostic::new(
                    Code::Unexpected,
                    by.span,
                    "only a `view` or an `on` knows who asks",
                ));
            }
            body.bind_value(by, Type::Text);
        }
        let answer = body.function_body(function, &signature);
        body.finish(signature.function);
        if function.is_view {
            self.seen_outside(&answer, function.name.span);
            self.module.views.push(Door {
                name: function.name.text.clone(),
                fields: signature.fields.clone(),
                former: Vec::new(),
                takes_caller: function.by.is_some(),
                of: None,
                answer: Some(answer.clone()),
                function: signature.function,
            });
        }
        self.tell(function.name.span, &answer);
        self.functions.insert(function.name.text.clone(), Signature { answer, ..signature });
    }

    pub(super) fn check_handlers(&mut self, file: &File, functions: &[u32]) {
        for (every, at) in file.everies.iter().zip(0..) {
            let function = self.module.everies[at].function;
            let mut body = Body::new(self, "every", Effect::Changes);
            body.block(&every.body);
            body.emit(Operation::Return { value: None });
            body.finish(function);
        }
        for (handler, function) in file.handlers.iter().zip(functions) {
            match &handler.kind {
                HandlerKind::On { source, .. } => self.check_on(handler, source, *function),
                HandlerKind::Timer { fields } => self.check_timer(handler, fields, *function),
                HandlerKind::Delivered { blanks, to, with } => {
                    self.check_word(
                        handler,
                        (blanks, to.as_ref(), Says::Delivered(with.as_ref())),
                        *function,
                    );
                }
                HandlerKind::Refused { blanks, to, because } => {
                    self.check_word(
                        handler,
                        (blanks, to.as_ref(), Says::Refused(because.as_ref())),
                        *function,
                    );
                }
            }
        }
    }

    fn check_timer(&mut self, handler: &Handler, trees: &[Field], function: u32) {
        let timer = self.module.timers.iter().find(|timer| timer.function == function).cloned();
        let mut body = Body::new(self, &handler.name.text, Effect::Changes);
        for (tree, field) in trees.iter().zip(timer.into_iter().flat_map(|timer| timer.fields)) {
            body.bind_value(&tree.name, field.kind);
        }
        body.block(&handler.body);
        body.emit(Operation::Return { value: None });
        body.finish(function);
    }

    fn check_on(&mut self, handler: &Handler, source: &Source, function: u32) {
        let doors = match source {
            Source::Outside { .. } => &self.module.inputs,
            Source::Peer { .. } => &self.module.from_inputs,
        };
        let Some(door) = doors.iter().find(|door| door.function == function).cloned() else { return };
        let HandlerKind::On { fields, .. } = &handler.kind else { return };
        let mut body = Body::new(self, &handler.name.text, Effect::Changes);
        body.answer = door.answer.clone();
        body.kind = BodyKind::On;
        for (tree, field) in fields.iter().zip(&door.fields) {
            body.bind_value(&tree.name, field.kind.clone());
        }
        match source {
            Source::Outside { by: Some(by) } => drop(body.bind_value(by, Type::Text)),
            Source::Peer { peer, .. } => drop(body.bind_value(peer, Type::Node)),
            Source::Outside { by: None } => {}
        }
        let ends = body.block(&handler.body);
        body.must_return(ends, &handler.name);
        body.emit(Operation::Return { value: None });
        body.finish(function);
    }

    /// `on delivered`, `on refused`: the send's arguments, the peer, and the answer or why.
    fn check_word(
        &mut self,
        handler: &Handler,
        (blanks, to, says): (&[Option<Word>], Option<&Word>, Says<'_>),
        function: u32,
    ) {
        let name = &handler.name;
        let Some(output) = self.module.outputs.iter().position(|output| output.name == name.text) else {
            if self.report.is_full() {
                return;
            }
            let there: Vec<String> = self.module.outputs.iter().map(|output| output.name.clone()).collect();
            let message = format!("nothing named `{}` is ever sent", name.text);
            self.unknown(Code::WordOfFabric, name, message, there, true);
            return;
        };
        let sent = self.module.outputs[output].clone();
        if sent.transient {
            let message = format!("nobody hears what became of `{}`", name.text);
            self.report.push(
                Diagnostic::new(Code::Transient, name.span, message)
                    .label("it is a `transient output`")
                    .note("what is worth something now or never is sent once and forgotten"),
            );
        }
        let receiver = if sent.to == Destination::Endpoint { Type::Endpoint } else { Type::Node };
        let last = match says {
            Says::Delivered(None) => None,
            Says::Delivered(Some((span, answer))) => Some((answer.as_ref(), self.answer_to(&sent, *span))),
            Says::Refused(because) => Some((because, Type::Text)),
        };
        let (words, answer) = match says {
            Says::Refused(_) => (&mut self.module.refused, None),
            Says::Delivered(_) => (&mut self.module.delivered, last.as_ref().map(|(_, kind)| kind.clone())),
        };
        if words.iter().any(|word| word.output == output as u32) {
            let message = format!("there is a handler for this word on `{}` already", name.text);
            self.report.push(Diagnostic::new(Code::Twice, name.span, message));
            return;
        }
        words.push(module::Word { output: output as u32, function, answer });
        let fields = sent.fields;
        if blanks.len() != fields.len() {
            let message =
                format!("`{}` has {} fields, and here stand {}", name.text, fields.len(), blanks.len());
            self.report.push(
                Diagnostic::new(Code::WrongCount, name.span, message)
                    .help("write `_` for those that are not needed"),
            );
        }
        let mut body = Body::new(self, &name.text, Effect::Changes);
        let filled = blanks.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let arguments = filled.zip(fields.iter().map(|field| field.kind.clone()));
        for (blank, kind) in arguments.chain([(to, receiver)]).chain(last) {
            match blank {
                Some(word) => drop(body.bind_value(word, kind)),
                None => drop(body.register()),
            }
        }
        body.block(&handler.body);
        body.emit(Operation::Return { value: None });
        body.finish(function);
    }

    /// The type of what is answered to a send: none where there is no answer, or one of another type than here.
    fn answer_to(&mut self, sent: &Output, with: Span) -> Type {
        match &sent.answer {
            Some(Type::Broken) => Type::Broken,
            Some(kind @ Type::Optional(_)) => kind.clone(),
            Some(kind) => Type::Optional(Arc::new(kind.clone())),
            // That nobody hears of it is said already.
            None if sent.transient => Type::Broken,
            None => {
                let name = &sent.name;
                let help = match &sent.to {
                    Destination::Own => {
                        Some(format!("write `on {name}(…) from peer -> int`, and return the answer"))
                    }
                    Destination::App(app) => Some(format!(
                        "write `output {name}(…) for {app} -> int`, the type that is answered there"
                    )),
                    Destination::Endpoint => None,
                };
                let what = Diagnostic::new(Code::NoAnswer, with, format!("nothing is answered to `{name}`"));
                self.report.push(help.into_iter().fold(what, Diagnostic::help));
                Type::Broken
            }
        }
    }
}

/// What the fabric says of a send, and the names for it; `with` where its answer is asked for.
#[derive(Clone, Copy)]
enum Says<'t> {
    Delivered(Option<&'t (Span, Option<Word>)>),
    Refused(Option<&'t Word>),
}

impl Body<'_, '_> {
    /// The body of a `fn` or `view`; returns what it gives.
    fn function_body(&mut self, function: &Function, signature: &Signature) -> Type {
        let declared = function.answer.as_ref().map(|_| signature.answer.clone());
        match &function.body {
            FunctionBody::Expression(value) => {
                self.is_expression = true;
                let found = self.lower(value, declared.as_ref());
                if matches!(&*value.kind, ExpressionKind::Comprehension(..)) {
                    self.collects = Some(found.register);
                }
                let kind = match declared {
                    Some(declared) => {
                        self.must_fit(&found.kind, &declared, value.span);
                        declared
                    }
                    None => self.told(found.kind, value.span),
                };
                self.emit(Operation::Return { value: Some(found.register) });
                kind
            }
            FunctionBody::Block(block) => {
                if declared.is_none() {
                    let name = &function.name.text;
                    self.report(
                        Diagnostic::new(
                            Code::Return,
                            function.name.span,
                            format!("what does `{name}` give?"),
                        )
                        .help("a body in braces needs a type: write `-> int` before the `{`"),
                    );
                }
                self.answer = Some(signature.answer.clone());
                let ends = self.block(block);
                if declared.is_some() {
                    self.must_return(ends, &function.name);
                }
                self.emit(Operation::Return { value: None });
                signature.answer.clone()
            }
        }
    }

    fn must_return(&mut self, ends: bool, name: &Word) {
        let Some(answer) = self.answer.clone() else { return };
        if !ends && answer != Type::Broken {
            let kind = self.checker.name_of(&answer);
            self.report(
                Diagnostic::new(
                    Code::Return,
                    name.span,
                    format!("`{}` may end without giving its {kind}", name.text),
                )
                .help("end it with `return …` or `refuse \"…\"` on every way"),
            );
        }
    }
}
