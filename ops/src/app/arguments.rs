//! What can be asked of `selvedge app`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::session::COMMANDS;
use crate::arguments::{EXIT_CODES, PLAIN_EXIT_CODES};

const CHECK_HELP: &str = "\
With --json one object a line for each diagnostic: {\"code\":\"W0011\",\"severity\":\"error\" or \"warning\",\"file\":…,\"line\":…,\
\"column\":…,\"end_line\":…,\"end_column\":…,\"message\":…,\"why\":[…],\"help\":…}. Lines and columns count from 1, columns in \
characters; the end is behind the last character. `why` may be empty and `help` null. A file that cannot be read is \
{\"error\":WHY}.
With --queries also one for each loop over rows: {\"query\":LIST,\"file\":…,\"line\":…,\"in\":FUNCTION,\"by\":HOW,\"scan\":false}.
Warnings tell what is right and likely not meant. They are shown, and are no failure without --deny-warnings.

Exit codes: 0 all files are right; 1 something is wrong with one, or it cannot be read; 2 the command line is wrong.";

const FORMAT_HELP: &str = "\
A file is written whole or not at all. One that does not parse is left as it is, and its diagnostics are shown.
With --json one object a line for each file: {\"file\":…,\"changed\":true}, or {\"file\":…,\"error\":WHY}.

Exit codes: 0 all files have the layout now; 1 one could not be laid out or, with --check, has another layout; 2 the \
command line is wrong.";

const TEST_HELP: &str = "\
Nodes of a test are in memory, and its clock moves only by `advance`. A test that needs links to be cut or nodes to die is \
not run, and says so.
With --json one object a line: {\"file\":…,\"test\":TITLE,\"line\":…,\"outcome\":\"passed\"}, the outcome being \"passed\", \
\"failed\" with \"failure\":{\"line\":…,\"message\":…,\"source\":…,\"left\":…,\"right\":…} (the sides are JSON texts, and only \
where two values were compared), or \"not_run\" with \"why\"; at last \
{\"passed\":…,\"failed\":…,\"not_run\":…}.

Exit codes: 0 none failed; 1 one failed, an app is not right, or no title has the filter's text; 2 the command line is wrong.";

fn run_help() -> String {
    format!("\
Commands at its prompt, or one a line through a pipe, whose end means quit:
{COMMANDS}
The app's state is in memory. What it sends to itself arrives at once; what it sends to others, nodes or \
addresses on the web, is shown with what it carries, and goes nowhere: a node would keep it, deliver or POST it, and then run its \
`on delivered` or `on refused`, which nothing does here. Of a watched list the rows that went (-) and came (+) are shown. What fails is said, and the \
next command is read.

With --json one object a line: first {{\"ready\":APP,\"node\":…}}, then {{\"posted\":INPUT,\"answer\":…}}, {{\"received\":INPUT,\"answer\":…}}, {{\"node\":…}}, \
{{\"view\":NAME,\"value\":…}}, {{\"watched\":NAME,\"value\":…}}, {{\"sent\":NAME,\"to\":…,\"app\":…,\"arguments\":…}}, \
{{\"fired\":TIMER,\"arguments\":…,\"at\":MILLISECONDS}}, {{\"fired\":\"every 1 h\",\"times\":…,\"at\":MILLISECONDS}}, \
{{\"set\":NAME}}, {{\"advanced\":MILLISECONDS}}, {{\"failed\":WHY}}, {{\"names\":[…]}} (of settings with \"values\":{{…}}), {{\"help\":…}}, {{\"quit\":true}}, \
{{\"error\":WHY}}.

Exit codes: 0 quit; 1 the app is not right; through a pipe also if a command failed; 2 the command line is wrong.")
}

const PLAN_HELP: &str = "\
What happens to what a node keeps when its app becomes another version: what is added, removed, called otherwise (`was`), of \
another type, what is lost, and what cannot be. Two files are compared as they are; what depends on rows is said. With --node DIR \
the rows of a node, running or not, or of a copy of its folder are looked at, with --backup FILE those of a backup; the new version's views that need no argument run \
over a copy of them, and its tests run. A running node makes one plan at a time and gives it 15 s; what it did not get to is \
said, and ends with 1. It gives a plan up that nobody waits for.
With --json one object: {\"app\":…,\"verdict\":\"keeps\",\"changes\":[{\"change\":\"renamed\",\"name\":…,\"verdict\":…,\"what\":…,\
\"why\":…,\"help\":…}]}, with --node and --backup also \"views\":[{\"view\":…,\"error\":…}] and \"tests\":[{\"test\":…,\"error\":…}], those \
that fail, \"untried\":[VIEW…], those that no time was left for, and \"memory\":{\"before\":BYTES,\"after\":BYTES} of rows, \
keys and indexes. A verdict is \"keeps\", \"depends\" (on rows), \"loses\" or \"refused\"; the first one is the worst of all.

Exit codes: 0 nothing is lost; 1 something is lost or cannot be, a view or a test fails, or an app is not right; 2 the command line is wrong.";

/// What can be done with an app's source.
#[derive(Debug, PartialEq, Eq, Subcommand)]
pub enum AppCommand {
    /// Say all that is wrong with apps
    #[command(after_help = CHECK_HELP)]
    Check {
        /// The files.
        #[command(flatten)]
        files: Files,
        /// Fail where there are warnings, too
        #[arg(long)]
        deny_warnings: bool,
        /// Show how each query finds its rows, too
        #[arg(long)]
        queries: bool,
    },
    /// Lay files out: two spaces, 100 columns, no alignment
    #[command(visible_alias = "format", after_help = FORMAT_HELP)]
    Fmt {
        /// The files.
        #[command(flatten)]
        files: Files,
        /// Change nothing, and name the files that have another layout
        #[arg(long)]
        check: bool,
    },
    /// Explain a diagnostic's code, with a source before and after; without a code, list them
    #[command(after_help = EXIT_CODES)]
    Explain {
        /// As a diagnostic shows it: W0023
        code: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin an app: a folder with a small app in it that works, and a README
    #[command(after_help = EXIT_CODES)]
    New {
        /// The app's name: small letters, digits and _
        name: String,
        /// Where to make its folder
        #[arg(long, default_value = ".")]
        dir: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run an app in memory, post to it and watch its views
    #[command(after_help = run_help())]
    Run(OneFile),
    /// Run the tests that stand in apps
    #[command(after_help = TEST_HELP)]
    Test {
        /// The files.
        #[command(flatten)]
        files: Files,
        /// Only tests with this in their titles
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
    },
    /// Say what becomes of what is kept when an app becomes another version
    #[command(after_help = PLAN_HELP, group = ArgGroup::new("to").required(true).args(["new", "node", "backup"]))]
    Plan {
        /// The app's file as it is; with --node or --backup as it is to be
        file: PathBuf,
        /// The app's file as it is to be
        new: Option<PathBuf>,
        /// A node's folder: what its app keeps is looked at, whether it runs or not, and stays as it is
        #[arg(long, value_name = "DIR")]
        node: Option<PathBuf>,
        /// A backup of a node, as `selvedge store backup` made it: what its app keeps is looked at
        #[arg(long, value_name = "FILE")]
        backup: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write what an app takes and gives: Markdown, OpenAPI or JSON Schema
    #[command(after_help = PLAIN_EXIT_CODES)]
    Doc {
        /// The app's file
        file: PathBuf,
        /// OpenAPI 3.1 of how its node serves it
        #[arg(long, conflicts_with = "json_schema")]
        openapi: bool,
        /// JSON Schema of its inputs and views
        #[arg(long)]
        json_schema: bool,
    },
    /// Serve an editor on standard input and output, after the Language Server Protocol
    #[command(after_help = PLAIN_EXIT_CODES)]
    Lsp,
}

/// Files of apps.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct Files {
    /// Files of apps
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// One app.
#[derive(Debug, PartialEq, Eq, Args)]
pub struct OneFile {
    /// The app's file
    pub file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

impl AppCommand {
    /// Whether programs read what is printed.
    pub fn json(&self) -> bool {
        match self {
            AppCommand::Check { files: Files { json, .. }, .. }
            | AppCommand::Fmt { files: Files { json, .. }, .. }
            | AppCommand::Test { files: Files { json, .. }, .. }
            | AppCommand::Explain { json, .. }
            | AppCommand::New { json, .. }
            | AppCommand::Plan { json, .. }
            | AppCommand::Run(OneFile { json, .. }) => *json,
            AppCommand::Doc { .. } | AppCommand::Lsp => false,
        }
    }
}
