//! Power cuts, kills, failed operations, lies and rot at any operation of a log with checkpoints, also while it is opened,
//! beside a model of what was acknowledged. The log, its checkpoints and the tidying after them go in steps, which the seed
//! interleaves.
//!
//! More seeds: `STORE_SEEDS=100000 cargo test --release -p selvedge-store --test power_cuts`. One seed: `STORE_SEED=17`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod model;

use std::collections::BTreeMap;

use model::{Model, Random, State, apply, open, rows};
use store::{Change, Checkpoints, Fault, Log, Memory, Progress, Storage, StoreError, Synced, is_checkpoint};

/// Seeds of the short form: more than 20,000 power cuts.
const SEEDS: u64 = 4_800;
const LIVES: u64 = 8;

/// Names the seed of a run that panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("again: STORE_SEED={}", self.0);
        }
    }
}

/// What happened, and how often.
type Reached = BTreeMap<&'static str, u64>;

/// What the seeds must reach, and how often at least.
const WANTED: [(&str, u64); 24] = [
    ("power cut", 20_000),
    ("kill", 5_000),
    ("failed operation", 1_000),
    ("full disk", 1_000),
    ("lie", 500),
    ("rot of the newest checkpoint", 500),
    ("rot passed over", 300),
    ("lie found", 100),
    ("lie not found", 30),
    ("fault while opening", 1_000),
    ("fault in an append", 1_000),
    ("fault in a sync", 1_000),
    ("fault in a checkpoint", 1_000),
    ("checkpoint without room", 50),
    ("append without room", 20),
    ("torn tail cut", 300),
    ("unknown frame kept", 300),
    ("unknown frame lost", 300),
    ("frame acknowledged", 100_000),
    ("checkpoint made", 3_000),
    ("spare made ahead", 500),
    ("opened from a checkpoint", 3_000),
    ("step between an append and its sync", 1_000),
    ("checkpoint of a start", 100),
];

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_else_appears() {
    let one = number_from("STORE_SEED");
    let seeds = one.map_or(0..number_from("STORE_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let mut reached = Reached::new();
    for seed in seeds {
        let seed = Seed(seed);
        World::new(seed.0, &mut reached).run();
    }
    eprintln!("{reached:#?}");
    if one.is_none() {
        for (what, least) in WANTED {
            let times = reached.get(what).copied().unwrap_or(0);
            assert!(times >= least, "only {times} times, not {least}: {what}; the test does not test");
        }
    }
}

/// A medium, what it must hold, and what falls on it.
struct World<'a> {
    random: Random,
    memory: Memory,
    model: Model,
    /// The states of this life: after a lie any of them may come back.
    history: Vec<State>,
    lied: bool,
    /// A checkpoint in which a bit was changed.
    rotten: Option<String>,
    /// A checkpoint met a full disk, and the older one was given up.
    alone: bool,
    reached: &'a mut Reached,
}

/// One process.
struct Process {
    log: Log<Memory>,
    checkpoints: Checkpoints<Memory>,
    sequence: u64,
    synced: Synced,
}

/// How a process ends.
enum End {
    Stopped,
    /// A lie was found: this disk is beyond help.
    Found,
}

impl<'a> World<'a> {
    fn new(seed: u64, reached: &'a mut Reached) -> Self {
        let mut random = Random(seed);
        let memory = Memory::new(random.next());
        let (model, history) = (Model::default(), Vec::new());
        Self { random, memory, model, history, lied: false, rotten: None, alone: false, reached }
    }

    fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    fn run(mut self) {
        for _ in 0..LIVES {
            self.rot();
            let fault = self.plan_fault();
            if let End::Found = self.live() {
                let memory = Memory::new(self.random.next());
                (self.memory, self.model) = (memory, Model::default());
                (self.lied, self.rotten, self.alone) = (false, None, false);
                continue;
            }
            self.fall(fault);
        }
        self.live();
    }

    fn plan_fault(&mut self) -> Fault {
        let fault = match self.random.below(16) {
            0..=8 => Fault::PowerCut,
            9..=11 => Fault::Kill,
            12 => Fault::InputOutput,
            13 | 14 => Fault::Full,
            _ => Fault::Lie,
        };
        // Opening takes some ten operations; many faults fall into it, so that recovery is cut too.
        let ahead = if self.random.below(3) == 0 { self.random.below(16) } else { self.random.below(300) };
        self.memory.fail_at(self.memory.operations() + ahead, fault);
        fault
    }

    /// What comes after a process.
    fn fall(&mut self, fault: Fault) {
        let (what, power) = match fault {
            Fault::PowerCut => ("power cut", true),
            Fault::Kill => ("kill", false),
            Fault::Lie => ("lie", true),
            // A disk that fails is often a disk that is then cut off.
            Fault::InputOutput => ("failed operation", self.random.below(2) == 0),
            Fault::Full => ("full disk", self.random.below(2) == 0),
        };
        self.reach(what);
        if power && !self.memory.is_dead() {
            self.memory.power_cut();
        }
        self.lied |= fault == Fault::Lie;
        self.memory.restart();
    }

    /// Changes a bit of the newest checkpoint, as long as no other is rotten.
    fn rot(&mut self) {
        let names = self.memory.list().unwrap();
        // Where a full disk left one checkpoint alone, it may not rot.
        let newest = names.into_iter().filter(|name| is_checkpoint(name) && !self.alone).max();
        let Some(newest) = newest.filter(|_| self.rotten.is_none() && !self.lied) else { return };
        if self.random.below(8) == 0 {
            let mut bytes = self.memory.contents(&newest).unwrap();
            let at = self.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.random.below(8);
            self.memory.put(&newest, bytes);
            self.rotten = Some(newest);
            self.reach("rot of the newest checkpoint");
        }
    }

    /// One process on the medium, until the fault ends it or it has lived long enough.
    fn live(&mut self) -> End {
        let mut process = match self.open() {
            Ok(process) => process,
            Err(end) => return end,
        };
        for _ in 0..60 {
            if let Some(bytes) = process.log.wants_spare().filter(|_| !process.checkpoints.is_busy()) {
                process.checkpoints.begin_spare(bytes);
            }
            let goes_on = match self.random.below(8) {
                0..=3 => self.append(&mut process),
                4 => self.begin(&mut process),
                _ => self.step(&mut process),
            };
            if !goes_on {
                break;
            }
        }
        End::Stopped
    }

    fn open(&mut self) -> Result<Process, End> {
        let had_unknown = self.model.unknown.is_some();
        let (log, opened, replayed) = match open(&self.memory, self.random.entropy()) {
            Ok(opened) => opened,
            Err(StoreError::Corrupt { .. } | StoreError::Missing { .. }) if self.lied => {
                self.reach("lie found");
                return Err(End::Found);
            }
            Err(error) => {
                let clear = matches!(
                    error,
                    StoreError::Io { .. } | StoreError::Failed { .. } | StoreError::NoRoom { .. }
                );
                assert!(clear, "{error}");
                self.reach("fault while opening");
                return Err(End::Stopped);
            }
        };
        if opened.cut.is_some() {
            self.reach("torn tail cut");
        }
        if opened.checkpoint.is_some() {
            self.reach("opened from a checkpoint");
        }
        if !opened.passed_over.is_empty() {
            // A read that fails is passed over like rot.
            let unread = opened.passed_over.iter().all(|why| why.starts_with("cannot "));
            assert!(self.rotten.is_some() || self.lied || unread, "{:?}", opened.passed_over);
            self.reach("rot passed over");
        }
        // The folder was synced: what was removed before comes back no more.
        let names = self.memory.list().unwrap_or_default();
        self.rotten.take_if(|rotten| !names.is_empty() && !names.contains(rotten));
        if self.lied {
            self.believe(replayed);
        } else {
            let kept = self.model.opened(&opened, replayed);
            match (kept, had_unknown) {
                (true, _) => self.reach("unknown frame kept"),
                (false, true) => self.reach("unknown frame lost"),
                (false, false) => {}
            }
        }
        self.model.run = opened.run;
        self.history = vec![self.model.acknowledged.clone()];
        let checkpoints = log.checkpoints();
        let sequence = opened.next_sequence;
        let mut process = Process { log, checkpoints, sequence, synced: opened.synced };
        if self.random.below(10) == 0 {
            process.checkpoints.begin(process.synced, rows(&self.model.acknowledged));
            self.reach("checkpoint of a start");
        }
        Ok(process)
    }

    /// After a lie: a state that was acknowledged once, or that and what was under way.
    fn believe(&mut self, replayed: Vec<Change>) {
        let mut state = State::new();
        apply(&mut state, replayed);
        let mut with_unknown = self.model.acknowledged.clone();
        apply(&mut with_unknown, self.model.unknown.take().unwrap_or_default());
        assert!(
            state == with_unknown || self.history.contains(&state),
            "after a lie a state came back that never was"
        );
        if state != self.model.acknowledged && state != with_unknown {
            self.reach("lie not found");
        }
        self.model.acknowledged = state;
        self.lied = false;
    }

    /// A frame, and perhaps some steps of a checkpoint before its sync; whether the process goes on.
    fn append(&mut self, process: &mut Process) -> bool {
        let changes = self.random.changes();
        let appended = match process.log.append(process.sequence, &changes) {
            Ok(appended) => appended,
            Err(StoreError::NoRoom { .. }) => {
                self.reach("append without room");
                return true;
            }
            Err(error) => {
                assert!(error.outcome_unknown(), "{error}");
                self.reach("fault in an append");
                self.model.unknown = Some(changes);
                return false;
            }
        };
        self.model.unknown = Some(changes.clone());
        for _ in 0..self.random.below(3) {
            if process.checkpoints.is_busy() {
                self.reach("step between an append and its sync");
            }
            if !self.step(process) {
                return false;
            }
        }
        match process.log.sync(appended) {
            Ok(synced) => {
                assert_eq!(synced.sequence(), process.sequence);
                process.synced = synced;
            }
            Err(error) => {
                assert!(error.outcome_unknown(), "{error}");
                self.reach("fault in a sync");
                let again = process.log.append(process.sequence, &[]);
                assert!(matches!(again, Err(StoreError::Poisoned)), "a failed log takes nothing more");
                return false;
            }
        }
        self.model.unknown = None;
        self.model.acknowledge(changes);
        self.history.push(self.model.acknowledged.clone());
        self.reach("frame acknowledged");
        process.sequence += 1;
        true
    }

    fn begin(&mut self, process: &mut Process) -> bool {
        if !process.checkpoints.is_busy() {
            process.checkpoints.begin(process.synced, rows(&self.model.acknowledged));
        }
        true
    }

    /// A step of a checkpoint; whether the process goes on. A checkpoint that fails harms nothing.
    fn step(&mut self, process: &mut Process) -> bool {
        match process.checkpoints.step() {
            Ok(Some(Progress::Done(installed))) => {
                let checkpoint = installed.checkpoint.is_some();
                self.alone &= !checkpoint;
                self.reach(if checkpoint { "checkpoint made" } else { "spare made ahead" });
                process.log.checkpointed(installed);
            }
            Ok(_) => {}
            Err(StoreError::NoRoom { .. }) => {
                self.alone = true;
                self.reach("checkpoint without room");
            }
            Err(error) => {
                assert!(matches!(error, StoreError::Io { .. }), "{error}");
                self.reach("fault in a checkpoint");
            }
        }
        !self.memory.is_dead()
    }
}

/// What was freed is used again, and nothing grows.
#[test]
fn years_of_writes_to_the_same_rows_leave_a_bounded_folder() {
    let memory = Memory::new(1);
    let mut random = Random(1);
    let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
    let mut checkpoints = log.checkpoints();
    let mut model = Model::default();
    let (mut most, mut written, mut made, mut spares_late) = ([0; 2], 0, 0, 0);
    for sequence in opened.next_sequence..opened.next_sequence + 6_000 {
        let changes = random.changes();
        written += 4096;
        let appended = log.append(sequence, &changes).unwrap();
        let synced = log.sync(appended).unwrap();
        model.acknowledge(changes);
        if let Some(bytes) = log.wants_spare().filter(|_| !checkpoints.is_busy()) {
            checkpoints.begin_spare(bytes);
            spares_late += u64::from(sequence > opened.next_sequence + 1_000);
        }
        if log.checkpoint_is_due() && !checkpoints.is_busy() {
            checkpoints.begin(synced, rows(&model.acknowledged));
        }
        if let Some(Progress::Done(installed)) = checkpoints.step().unwrap() {
            made += u64::from(installed.checkpoint.is_some());
            log.checkpointed(installed);
        }
        let half = usize::from(sequence > opened.next_sequence + 3_000);
        most[half] = most[half].max(memory.used());
    }
    drop((log, checkpoints));
    let (_, opened, replayed) = open(&memory, [2; 32]).unwrap();
    model.opened(&opened, replayed);
    assert!(spares_late < 30, "{spares_late} spares of zeros were made where checkpoints free enough");
    assert!(made > 15 && written > 20_000_000, "{made} checkpoints, {written} bytes");
    assert!(most[1] <= most[0], "{most:?}: it grows for ever");
    // Two checkpoints and one being made; twice what makes one due, four times for padding, doubled by what segments as small
    // as these keep for starts; and segments beside.
    assert!(most[0] < 6 << 20, "{most:?} bytes");
}

/// What a batch costs, counted: one write of one range, one sync, and no file that grows.
#[test]
fn a_batch_is_one_range_and_one_sync_and_nothing_grows() {
    let memory = Memory::new(1);
    let mut random = Random(1);
    let (mut log, opened, _) = open(&memory, [1; 32]).unwrap();
    let (mut sequence, used) = (opened.next_sequence, memory.used());
    for _ in 0..5 {
        let before = memory.operations();
        let appended = log.append(sequence, &random.changes()).unwrap();
        assert_eq!(memory.operations() - before, 1, "one range");
        let _ = log.sync(appended).unwrap();
        assert_eq!(memory.operations() - before, 2, "one sync");
        sequence += 1;
    }
    assert_eq!(memory.used(), used);
}
