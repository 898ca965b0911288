//! A socket whose reader may be slow, but not for ever.
//!
//! hyper times the reading of headers and leaves writing to us: without this, a client that asks and never reads would
//! keep its connection until it dies.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::limits::{BEHIND_TIMEOUT, VIEW_BYTES_MAX, WRITE_TIMEOUT};

/// Fails a write that made no progress for [`WRITE_TIMEOUT`], or that was behind for [`BEHIND_TIMEOUT`] with less than
/// [`VIEW_BYTES_MAX`] taken in that time.
pub(super) struct Patient<S> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
    behind: Option<Behind>,
}

/// Since the reader could not take all that there was, or since it last had taken enough.
struct Behind {
    until: Pin<Box<Sleep>>,
    taken_bytes: usize,
}

fn too_slow(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S) -> Patient<S> {
        Patient { stream, stalled: None, behind: None }
    }

    fn judge<T>(&mut self, context: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        ready!(stalled.as_mut().poll(context));
        Poll::Ready(Err(too_slow("the reader takes nothing")))
    }

    /// Judges a write by how much was taken while the reader was behind.
    fn judge_write(
        &mut self,
        context: &mut Context<'_>,
        progress: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if progress.is_pending() && self.behind.is_none() {
            self.behind = Some(Behind { until: Box::pin(sleep(BEHIND_TIMEOUT)), taken_bytes: 0 });
        }
        if let Some(behind) = &mut self.behind {
            if let Poll::Ready(Ok(count)) = progress {
                behind.taken_bytes = behind.taken_bytes.saturating_add(count);
            }
            while behind.until.as_mut().poll(context).is_ready() {
                if behind.taken_bytes < VIEW_BYTES_MAX {
                    return Poll::Ready(Err(too_slow("the reader takes too little")));
                }
                *behind = Behind { until: Box::pin(sleep(BEHIND_TIMEOUT)), taken_bytes: 0 };
            }
        }
        self.judge(context, progress)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge_write(context, progress)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_flush(context);
        if progress.is_ready() {
            // hyper flushes once it has written all it has: the reader has caught up.
            self.behind = None;
        }
        self.judge(context, progress)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let progress = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge_write(context, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_ends_the_write_and_one_that_takes_a_little_does_not() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut patient = Patient::new(near);
        let slow = async {
            let mut byte = [0; 1];
            for _ in 0..8 {
                sleep(WRITE_TIMEOUT / 2).await;
                far.read_exact(&mut byte).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(patient.write_all(b"twelve bytes"), slow);
        written.unwrap();
        let stalled = patient.write_all(b"more").await.unwrap_err();
        assert_eq!(stalled.kind(), io::ErrorKind::TimedOut);
    }

    /// Reads `bytes` each [`WRITE_TIMEOUT`] / 2 of more than can be read so, and gives what became of the write.
    async fn write_to_a_reader_of(bytes: usize) -> io::Result<()> {
        let (near, mut far) = tokio::io::duplex(bytes);
        let mut patient = Patient::new(near);
        let reading = tokio::spawn(async move {
            let mut taken = vec![0; bytes];
            loop {
                sleep(WRITE_TIMEOUT / 2).await;
                if far.read_exact(&mut taken).await.is_err() {
                    return;
                }
            }
        });
        // Behind for more than twice the bound.
        let pieces = 3 * BEHIND_TIMEOUT.as_secs() / (WRITE_TIMEOUT / 2).as_secs();
        let all = vec![0; bytes * usize::try_from(pieces).unwrap()];
        let written = patient.write_all(&all).await;
        drop(patient);
        reading.await.unwrap();
        written
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_a_little_for_ever_ends_the_write_and_one_that_takes_enough_does_not() {
        let enough = VIEW_BYTES_MAX / 8;
        assert_eq!(write_to_a_reader_of(1).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(write_to_a_reader_of(enough / 4).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        write_to_a_reader_of(enough).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_caught_up_is_not_behind_any_more() {
        let (near, mut far) = tokio::io::duplex(4);
        let mut patient = Patient::new(near);
        for _ in 0..8 {
            let slow = async {
                sleep(WRITE_TIMEOUT / 2).await;
                let mut bytes = [0; 8];
                far.read_exact(&mut bytes).await.unwrap();
                sleep(BEHIND_TIMEOUT / 4).await;
            };
            let whole = async {
                patient.write_all(b"an event").await?;
                patient.flush().await
            };
            let (written, ()) = tokio::join!(whole, slow);
            written.unwrap();
        }
    }
}
