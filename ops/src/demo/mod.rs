//! `selvedge demo`: two nodes, ann and ben, that write to each other through a forwarder that records what passes.
//!
//! `process` is one node, `forwarder` and `recording` what lies between, `stage` all of them, `prompt` what one tells the
//! demo. Whatever ends the demo, the stage is cleared before its folder is removed.

mod forwarder;
mod process;
mod prompt;
mod recording;
mod stage;

use std::fs::Permissions;
use std::io::IsTerminal;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde_json::{Value, json};
use store::{Folder, write_whole};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use self::forwarder::Forwarder;
use self::prompt::Command;
use self::recording::Recording;
use self::stage::Stage;
use crate::arguments::DemoArguments;
use crate::output::{self, Output};
use crate::peer::status_for_people;
use crate::signals::Stop;

/// The app of the demo, so that the command needs no file beside it.
const MESSENGER: &str = include_str!("../../../apps/messenger/messenger.weft");

const MESSENGER_FILE: &str = "messenger.weft";

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Ann,
    Ben,
}

impl Who {
    /// Both, ann first.
    pub const BOTH: [Self; 2] = [Self::Ann, Self::Ben];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ann => "ann",
            Self::Ben => "ben",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Ann => Self::Ben,
            Self::Ben => Self::Ann,
        }
    }
}

/// The demo's folder, which no other demo has at the same time.
struct Place {
    folder: Folder,
    /// Made for this demo, and removed after it.
    fresh: Option<TempDir>,
}

impl Place {
    fn make(dir: Option<PathBuf>) -> anyhow::Result<Self> {
        match dir {
            Some(dir) => Ok(Self { folder: Folder::open(&dir)?, fresh: None }),
            None => {
                let private = Permissions::from_mode(0o700);
                let fresh = tempfile::Builder::new().prefix("selvedge-demo-").permissions(private).tempdir();
                let fresh = fresh.context("cannot make a temporary folder")?;
                Ok(Self { folder: Folder::open(fresh.path())?, fresh: Some(fresh) })
            }
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn leave(self) -> anyhow::Result<()> {
        match self.fresh {
            None => Ok(()),
            Some(fresh) => fresh.close().context("cannot remove the temporary folder"),
        }
    }
}

/// Runs the demo until it is told to quit.
///
/// # Errors
/// What cannot be had; nothing runs on then, and a folder that was made for the demo is gone.
pub async fn run(arguments: DemoArguments, output: &mut Output) -> anyhow::Result<ExitCode> {
    // Before anything is made that must be cleared away.
    let mut stop = Stop::listen()?;
    let abandoned = output::abandoned()?;
    let mut place = Place::make(arguments.dir)?;
    let played = play(&mut place, arguments.app, &mut stop, abandoned, output).await;
    let left = place.leave();
    played.and(left).map(|()| ExitCode::SUCCESS)
}

async fn play(
    place: &mut Place,
    app: Option<PathBuf>,
    stop: &mut Stop,
    abandoned: oneshot::Receiver<()>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let app = match app {
        Some(app) => app,
        None => {
            write_whole(&mut place.folder, MESSENGER_FILE, MESSENGER.as_bytes())?;
            place.path().join(MESSENGER_FILE)
        }
    };
    let path = place.path().join("recording");
    let recording = Recording::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let mut stage = Stage::new(&program, place.path(), &app, Forwarder::start(recording).await?, path);
    let kept = place.fresh.is_none();
    let played = tokio::select! {
        played = acts(&mut stage, kept, output) => played,
        () = stop.asked() => Ok(()),
        Ok(()) = abandoned => Err(anyhow::anyhow!("nobody reads standard output any more")),
    };
    let cleared = tokio::select! {
        cleared = stage.clear() => cleared,
        () = stop.asked() => stage.kill_all().await,
    };
    played.and(cleared)
}

async fn acts(stage: &mut Stage, kept: bool, output: &mut Output) -> anyhow::Result<()> {
    for who in Who::BOTH {
        stage.start(who).await?;
    }
    stage.befriend().await?;
    output.say(|| opening_for_people(stage), || opening_for_programs(stage))?;
    converse(stage, kept, &mut prompt::lines()?, output).await
}

fn stopping(stage: &Stage, kept: bool) -> String {
    match kept {
        true => format!("stopping both; {} is kept", stage.recording().display()),
        false => {
            "stopping both; the recording goes with the temporary folder, --dir DIR keeps both".to_owned()
        }
    }
}

fn opening_for_people(stage: &Stage) -> String {
    format!(
        "ann  {}\nben  {}\nWhat passes between them goes through a forwarder, recorded in {}\n{}",
        stage.page(Who::Ann),
        stage.page(Who::Ben),
        stage.recording().display(),
        prompt::HELP
    )
}

fn opening_for_programs(stage: &Stage) -> Value {
    json!({
        "ready": true,
        "ann": stage.about(Who::Ann),
        "ben": stage.about(Who::Ben),
        "recording": stage.recording(),
    })
}

async fn converse(
    stage: &mut Stage,
    kept: bool,
    lines: &mut mpsc::Receiver<String>,
    output: &mut Output,
) -> anyhow::Result<()> {
    let prompts = !output.is_json() && std::io::stdin().is_terminal();
    loop {
        if prompts {
            output.prompt()?;
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            ended = stage.ended() => {
                let (who, why) = ended?;
                output.say(
                    || format!("{} ended by itself: {why}", who.name()),
                    || json!({ "stopped": who.name(), "why": why }),
                )?;
                continue;
            }
        };
        let Some(line) = line else { return Ok(()) };
        match prompt::parse(&line) {
            Ok(Command::Quit) => {
                return output.say(|| stopping(stage, kept), || json!({ "quit": true }));
            }
            Ok(command) => {
                if let Err(error) = carry_out(stage, command, output).await? {
                    output.error(&output::in_words(&error));
                }
            }
            Err(what) => output.error(&what),
        }
    }
}

/// Carries out a command. The outer error ends the demo: nobody reads any more.
async fn carry_out(
    stage: &mut Stage,
    command: Command,
    output: &mut Output,
) -> anyhow::Result<anyhow::Result<()>> {
    match command {
        Command::Kill(who) => match stage.kill(who).await {
            Ok(()) => {
                output.say(|| format!("{} is killed", who.name()), || json!({ "killed": who.name() }))?
            }
            Err(error) => return Ok(Err(error)),
        },
        Command::Start(who) => match stage.start(who).await {
            Ok(http) => output.say(
                || format!("{} is back at {}", who.name(), stage.page(who)),
                || json!({ "started": who.name(), "http": http.to_string() }),
            )?,
            Err(error) => return Ok(Err(error)),
        },
        Command::Status => {
            let status = stage.status().await;
            output.say(|| status_of_both_for_people(&status), || json!({ "status": status }))?;
        }
        Command::Help => output.say(|| prompt::HELP.to_owned(), || json!({ "help": prompt::HELP }))?,
        Command::Quit | Command::Nothing => {}
    }
    Ok(Ok(()))
}

fn status_of_both_for_people(status: &Value) -> String {
    let mut lines = Vec::new();
    for who in Who::BOTH {
        let about = &status[who.name()];
        let state = match (about["running"] == json!(true), about["error"].as_str()) {
            (true, Some(error)) => format!("running; {error}"),
            (true, None) => status_for_people(true, &about["status"]).replace('\n', "\n     "),
            (false, _) => "not running".to_owned(),
        };
        lines.push(format!("{}  {}  {state}", who.name(), about["page"].as_str().unwrap_or_default()));
    }
    let recording = &status["recording"];
    let full = if recording["full"] == json!(true) { ", and may become no larger" } else { "" };
    lines.push(format!("{} datagrams recorded, {} bytes{full}", recording["datagrams"], recording["bytes"]));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_fresh_folder_goes_and_a_given_one_stays() {
        let fresh = Place::make(None).unwrap();
        let path = fresh.path().to_owned();
        std::fs::write(path.join("file"), "x").unwrap();
        fresh.leave().unwrap();
        assert!(!path.exists());

        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("a");
        let kept = Place::make(Some(dir.clone())).unwrap();
        let error = Place::make(Some(dir.clone())).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&format!("in use by process {}", std::process::id())), "{error}");
        kept.leave().unwrap();
        assert!(dir.exists());
        Place::make(Some(dir.clone())).unwrap().leave().unwrap();
        let error = Place::make(Some(dir.join("lock/below"))).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("lock/below"), "{error}");
    }

    #[test]
    fn the_status_of_both_is_shown() {
        let status = json!({
            "ann": {"running": true, "page": "http://a/", "status": {"node": "sv1ann", "peers": [{"node": "sv1ben", "name": "ben", "link": "up", "addresses": []}]}},
            "ben": {"running": false, "page": "http://b/"},
            "recording": {"path": "p", "datagrams": 3, "bytes": 99, "full": false},
        });
        let expected = "\
ann  http://a/  running  sv1ann
     peer     ben  sv1ben  up  \n\
ben  http://b/  not running
3 datagrams recorded, 99 bytes";
        assert_eq!(status_of_both_for_people(&status), expected);
    }
}
