//! The clock that counts suspended time, a timer on it, and a waker: what the thread waits for beside its socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use link::Time;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

use crate::error::FabricError;

/// The time now, as links count it: microseconds of `CLOCK_BOOTTIME`, which goes on while the machine is suspended.
pub fn now() -> Time {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(time.tv_nsec).unwrap_or(0);
    Time(seconds.saturating_mul(1_000_000).saturating_add(nanoseconds / 1_000))
}

/// Becomes readable at a time of [`now`]'s clock, also right after the machine was suspended over it.
pub(crate) struct Timer {
    descriptor: OwnedFd,
    armed: Option<Time>,
}

impl Timer {
    pub(crate) fn new() -> Result<Timer, FabricError> {
        let descriptor =
            timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)
                .map_err(fault("timer"))?;
        Ok(Timer { descriptor, armed: None })
    }

    /// Readable from `at` on, or never.
    pub(crate) fn arm(&mut self, at: Option<Time>) -> Result<(), FabricError> {
        if at == self.armed {
            return Ok(());
        }
        // All zeros would disarm it; a nanosecond after the origin is as much in the past.
        let value = at.map_or(Timespec::default(), |time| Timespec {
            tv_sec: i64::try_from(time.0 / 1_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(time.0 % 1_000_000 * 1_000).unwrap_or(0).max(1),
        });
        let setting = Itimerspec { it_interval: Timespec::default(), it_value: value };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::ABSTIME, &setting).map_err(fault("timer"))?;
        self.armed = at;
        Ok(())
    }

    /// After it was readable: not any more.
    pub(crate) fn clear(&mut self) -> Result<(), FabricError> {
        self.armed = None;
        drain(&self.descriptor, "timer")
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Becomes readable when another thread wakes this one.
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> Result<Waker, FabricError> {
        eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map(Waker).map_err(fault("waker"))
    }

    /// Wakes whoever waits, now or later. Fails only when 2^64 - 1 wakes are unread: then it is awake.
    pub(crate) fn wake(&self) {
        let _ = write(&self.0, &1u64.to_ne_bytes());
    }

    /// After it was readable: not any more. What was to be seen is looked for after this.
    pub(crate) fn clear(&self) -> Result<(), FabricError> {
        drain(&self.0, "waker")
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn drain(descriptor: &OwnedFd, part: &'static str) -> Result<(), FabricError> {
    match read(descriptor, &mut [0u8; 8]) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(()),
        Err(errno) => Err(fault(part)(errno)),
    }
}

pub(crate) fn fault(part: &'static str) -> impl FnOnce(Errno) -> FabricError {
    move |errno| FabricError::System { part, source: errno.into() }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    /// Whether it is readable now.
    fn readable(source: &impl AsFd) -> bool {
        let at_once = Timespec::default();
        poll(&mut [PollFd::new(source, PollFlags::IN)], Some(&at_once)).unwrap() == 1
    }

    #[test]
    fn a_timer_is_due_from_its_time_on() {
        let mut timer = Timer::new().unwrap();
        assert!(!readable(&timer));
        for past in [Time(0), Time(1), now()] {
            timer.arm(Some(past)).unwrap();
            assert!(readable(&timer), "{past:?}");
            timer.clear().unwrap();
            assert!(!readable(&timer));
        }
        for never in [Some(Time(u64::MAX)), Some(Time(now().0 + 3_600_000_000)), None] {
            timer.arm(Some(Time(0))).unwrap();
            timer.arm(never).unwrap();
            assert!(!readable(&timer), "{never:?}");
        }
    }

    #[test]
    fn a_wake_is_seen_also_when_it_came_before() {
        let waker = Waker::new().unwrap();
        assert!(!readable(&waker));
        waker.wake();
        waker.wake();
        assert!(readable(&waker));
        waker.clear().unwrap();
        assert!(!readable(&waker));
        waker.clear().unwrap();
    }
}
