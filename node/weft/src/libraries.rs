//! The libraries of a source: which files its `use` names, read through whoever compiles it.
//!
//! Must not know where files are: it hands out paths and gets texts. All texts are put behind one another, a line's end
//! behind each, so that a [`Span`] tells the file too; [`Report::finish_files`] takes them apart again.

use crate::SOURCE_BYTES_MAX;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Report, SourceFile, Span};
use crate::syntax::parser::parse_from;
use crate::syntax::tree::{File, Use, Word};
use std::collections::{BTreeMap, HashMap};

/// Libraries of one app: more than a person keeps apart, and it bounds what is read.
pub const LIBRARIES_MAX: usize = 32;
/// How many libraries may stand in a row, each used by the one before: bounds the stack of the reading.
pub const USE_DEPTH_MAX: usize = 8;
/// The longest path of a library, in bytes.
pub const PATH_BYTES_MAX: usize = 128;

/// Gives the text of a library, or says why there is none. It is asked for a path below the folder of the app's file:
/// words with `/` between them, without `.` and `..`, ending in `.weft`.
pub type Loader<'l> = dyn FnMut(&str) -> Result<String, String> + 'l;

/// The texts that an app was compiled from: enough to compile it again without its files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// The text of the app's own file.
    pub app: String,
    /// The text of each library by its path from the app's folder.
    pub libraries: BTreeMap<String, String>,
}

impl Sources {
    /// One text: the app's own where it has no libraries, else a JSON object, with which no app begins.
    pub fn to_text(&self) -> String {
        if self.libraries.is_empty() {
            return self.app.clone();
        }
        serde_json::json!({ "app": self.app, "libraries": self.libraries }).to_string()
    }

    /// What [`Sources::to_text`] made a text of; any other text is an app's own.
    pub fn from_text(text: &str) -> Sources {
        Sources::of_json(text).unwrap_or_else(|| Sources { app: text.to_owned(), libraries: BTreeMap::new() })
    }

    fn of_json(text: &str) -> Option<Sources> {
        let kept: serde_json::Value = serde_json::from_str(text.strip_prefix('{').map(|_| text)?).ok()?;
        let app = kept.get("app")?.as_str()?.to_owned();
        let listed = kept.get("libraries")?.as_object()?.iter();
        let libraries = listed
            .map(|(path, text)| Some((path.clone(), text.as_str()?.to_owned())))
            .collect::<Option<_>>()?;
        Some(Sources { app, libraries })
    }

    /// Compiles the app again.
    ///
    /// # Errors
    /// Everything that is wrong with it, by this version of the language.
    pub fn compile(&self, file: &str) -> Result<crate::Module, Diagnostics> {
        crate::compile_with(&self.app, file, &mut |path| {
            self.libraries.get(path).cloned().ok_or_else(|| "it was not kept with the app".into())
        })
    }
}

/// A file that was read.
pub(crate) struct Unit {
    pub(crate) tree: File,
    /// Where its text begins.
    pub(crate) start: usize,
    /// The libraries that it uses: the name that it gives each, and its number.
    pub(crate) uses: Vec<(Word, usize)>,
    /// Whether something was reported while it was read.
    pub(crate) is_broken: bool,
}

/// A file and its libraries.
pub(crate) struct Loaded {
    /// All texts.
    pub(crate) whole: String,
    /// Those that are used before those that use them; the file that is compiled comes last.
    pub(crate) units: Vec<Unit>,
    pub(crate) files: Vec<SourceFile>,
    pub(crate) sources: Sources,
}

/// What is known of a path.
enum Known {
    /// It is being read: whoever uses it now goes in a circle.
    Reading,
    Read(usize),
    /// It was reported.
    Broken,
}

struct Loading<'l> {
    loaded: Loaded,
    known: HashMap<String, Known>,
    /// Paths by the names of the libraries.
    names: HashMap<String, String>,
    loader: &'l mut Loader<'l>,
    /// What diagnostics show before a path.
    folder: String,
}

/// Reads a file and all that it uses.
pub(crate) fn load<'l>(source: &str, file: &str, loader: &'l mut Loader<'l>, report: &mut Report) -> Loaded {
    let (folder, own) = file.split_at(file.rfind(['/', '\\']).map_or(0, |at| at + 1));
    let loaded = Loaded {
        whole: source.to_owned(),
        units: Vec::new(),
        files: vec![SourceFile { name: file.into(), text: source.into() }],
        sources: Sources { app: source.to_owned(), libraries: BTreeMap::new() },
    };
    let known = HashMap::from([(own.to_owned(), Known::Reading)]);
    let mut loading = Loading { loaded, known, names: HashMap::new(), loader, folder: folder.to_owned() };
    let tree = parse_from(source, 0, report);
    loading.unit(tree, false, &mut vec![own.to_owned()], 0, report);
    loading.loaded
}

impl Loading<'_> {
    /// Reads what a file uses, whose text begins at `start` and which is the last of `path`; its number.
    fn unit(
        &mut self,
        mut tree: File,
        is_broken: bool,
        path: &mut Vec<String>,
        start: usize,
        report: &mut Report,
    ) -> usize {
        let mut uses: Vec<(Word, usize)> = Vec::new();
        let mut lost = Vec::new();
        for one in &tree.uses {
            if let Some((first, _)) = uses.iter().find(|(name, _)| name.text == one.name.text) {
                report.push(twice(&self.loaded.whole[start..], start, &one.name, first));
                continue;
            }
            match self.library(one, path, report) {
                Some(number) => uses.push((one.name.clone(), number)),
                None => lost.push(one.name.text.clone()),
            }
        }
        let is_broken = is_broken || !lost.is_empty();
        tree.lost.extend(lost);
        self.loaded.units.push(Unit { tree, start, uses, is_broken });
        self.loaded.units.len() - 1
    }

    /// The number of the library that a `use` names; none if something is wrong with it, which is reported.
    fn library(&mut self, one: &Use, path: &mut Vec<String>, report: &mut Report) -> Option<usize> {
        let span = one.path.span;
        let user = path.last().map_or("", String::as_str);
        let target = match library_path(user, &one.path.text) {
            Ok(target) => target,
            Err(why) => {
                let message = format!("`{}` is no path of a library", shown(&one.path.text));
                let help = "write the path from this file's folder, such as `\"shapes.weft\"` or `\"lib/shapes.weft\"`";
                report.push(Diagnostic::new(Code::Library, span, message).label(why).help(help));
                return None;
            }
        };
        match self.known.get(&target) {
            Some(Known::Read(number)) => return Some(*number),
            Some(Known::Broken) => return None,
            Some(Known::Reading) => {
                let from = path.iter().position(|one| *one == target).unwrap_or(0);
                let mut circle: Vec<&str> = path[from..].iter().map(String::as_str).collect();
                circle.push(&target);
                report.push(
                    Diagnostic::new(Code::Library, span, format!("`{target}` uses itself"))
                        .label(circle.join(" → "))
                        .note("files use each other one way")
                        .help("move what both need to a library of its own"),
                );
                return None;
            }
            None => {}
        }
        let number = self.read(&target, span, path, report);
        let known = number.map_or(Known::Broken, Known::Read);
        self.known.insert(target, known);
        number
    }

    fn read(
        &mut self,
        target: &str,
        span: Span,
        path: &mut Vec<String>,
        report: &mut Report,
    ) -> Option<usize> {
        let before = report.count();
        let mut wrong = |message: String, label: String, help: Option<String>| {
            let mut diagnostic = Diagnostic::new(Code::Library, span, message).label(label);
            diagnostic.help = help;
            report.push(diagnostic);
        };
        if self.loaded.sources.libraries.len() >= LIBRARIES_MAX {
            let help = "put what belongs together into one file".to_owned();
            wrong(format!("more than {LIBRARIES_MAX} libraries"), "one too many".into(), Some(help));
            return None;
        }
        if path.len() > USE_DEPTH_MAX {
            let message = format!("libraries use each other deeper than {USE_DEPTH_MAX} levels");
            wrong(message, path.join(" → "), None);
            return None;
        }
        let text = match (self.loader)(target) {
            Ok(text) => text,
            Err(why) => {
                // Where the file is there its path is right.
                let help = why
                    .starts_with("there is no")
                    .then(|| "its path goes from the folder of the file that uses it".to_owned());
                wrong(format!("the library `{target}` cannot be read"), why, help);
                return None;
            }
        };
        if self.loaded.whole.len() + text.len() >= SOURCE_BYTES_MAX {
            let message =
                format!("with `{target}`, the app and its libraries have more than {SOURCE_BYTES_MAX} bytes");
            wrong(message, format!("it has {}", text.len()), None);
            return None;
        }
        self.loaded.whole.push('\n');
        let start = self.loaded.whole.len();
        self.loaded.whole.push_str(&text);
        let name = format!("{}{target}", self.folder);
        self.loaded.files.push(SourceFile { name, text: text.clone() });
        // The header decides whether anything else of the file is worth telling.
        let mut inner = Report::default();
        let tree = parse_from(&self.loaded.whole, start, &mut inner);
        if !tree.is_library {
            let help =
                "a library's first line is `library` and a name; it holds enums, records and `fn`".to_owned();
            let what = if tree.name.is_empty() { "no library" } else { "an app, not a library" };
            let label = "only a library can be used".to_owned();
            wrong(format!("`{target}` is {what}"), label, Some(help));
            return None;
        }
        if let Some(other) = self.names.insert(tree.name.clone(), target.to_owned()) {
            let help = "give one of them another name in its first line".to_owned();
            let message = format!("`{target}` is called `{}`, and so is `{other}`", tree.name);
            wrong(message, "the second one".into(), Some(help));
            return None;
        }
        report.take(inner);
        let broken = report.count() > before;
        self.known.insert(target.to_owned(), Known::Reading);
        self.loaded.sources.libraries.insert(target.to_owned(), text);
        path.push(target.to_owned());
        let number = self.unit(tree, broken, path, start, report);
        path.pop();
        Some(number)
    }
}

/// The path from the app's folder of what `user`, itself such a path, writes as `written`.
///
/// # Errors
/// Why it is no path of a library.
pub fn library_path(user: &str, written: &str) -> Result<String, &'static str> {
    let folder = user.rfind('/').map_or("", |at| &user[..=at]);
    let path = format!("{folder}{written}");
    if path.len() > PATH_BYTES_MAX {
        return Err("it is too long");
    }
    let name = written.strip_suffix(".weft").ok_or("it does not end in `.weft`")?;
    if name.starts_with('/') || name.contains([':', '\\']) {
        return Err("it does not go from this file's folder down");
    }
    for word in name.split('/') {
        if word.is_empty() || word.starts_with('.') {
            return Err("it does not go from this file's folder down");
        }
        if word.contains(|one: char| !(one.is_ascii_alphanumeric() || "_-.".contains(one))) {
            return Err("its words are of letters, digits, `_`, `-` and `.`");
        }
    }
    Ok(path)
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(60).map(|one| if one.is_control() { ' ' } else { one }).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

fn twice(text: &str, start: usize, name: &Word, first: &Word) -> Diagnostic {
    let line = crate::diagnostics::line_of(text, first.span.start - start as u32);
    Diagnostic::new(Code::Twice, name.span, format!("the library `{}` is there already", name.text))
        .label(format!("the first is on line {line}"))
        .help("give one of them another name")
}
