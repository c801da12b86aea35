//! The options of the four programs.

use std::io;
use std::num::NonZeroUsize;

/// The options. Without any, a program has the structure of the published one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `--batch`: lines are passed on in batches instead of one by one.
    pub batch: bool,
    /// `--workers N` or `--workers all`: the task runs on a scheduler with N worker threads, or with one per CPU.
    pub workers: Option<Workers>,
    /// `--main-thread`: the task of `baseline` runs on the main thread, and there are no worker threads.
    pub main_thread: bool,
}

/// The number of worker threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// One for each CPU.
    PerCpu,
    /// This many.
    Count(NonZeroUsize),
}

impl Workers {
    /// The number of threads.
    pub fn count(self) -> usize {
        match self {
            Workers::PerCpu => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            Workers::Count(count) => count.get(),
        }
    }
}

impl Options {
    /// Parses the words after the program's name.
    ///
    /// # Errors
    /// If a word is unknown.
    pub fn parse(words: impl IntoIterator<Item = String>) -> io::Result<Options> {
        let mut options = Options::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--batch" => options.batch = true,
                "--main-thread" => options.main_thread = true,
                "--workers" => {
                    let count = words.next().unwrap_or_default();
                    options.workers = Some(match count.as_str() {
                        "all" => Workers::PerCpu,
                        count => Workers::Count(count.parse().map_err(io::Error::other)?),
                    });
                }
                word => {
                    let known = "use --batch, --workers N or --main-thread";
                    return Err(io::Error::other(format!("unknown option '{word}'; {known}")));
                }
            }
        }
        Ok(options)
    }

    /// The options of the command line.
    ///
    /// # Errors
    /// If a word is unknown.
    pub fn of_command_line() -> io::Result<Options> {
        Options::parse(std::env::args().skip(1))
    }
}

/// Names threads in the order in which they start. tokio starts its workers first, then the threads that read and
/// write, so their CPU times can be distinguished from outside.
pub fn thread_names(workers: usize) -> impl Fn() -> String + Send + Sync + 'static {
    let started = std::sync::atomic::AtomicUsize::new(0);
    move || match started.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
        number if number < workers => format!("worker-{number}"),
        number => format!("io-{}", number - workers),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parsed() {
        let of = |words: &[&str]| Options::parse(words.iter().map(|&word| word.to_owned()));
        assert_eq!(of(&[]).unwrap(), Options::default());
        let both = of(&["--batch", "--workers", "2"]).unwrap();
        assert_eq!((both.batch, both.workers.map(Workers::count)), (true, Some(2)));
        assert!(of(&["--main-thread"]).unwrap().main_thread);
        assert!(of(&["--workers"]).is_err() && of(&["--workers", "0"]).is_err() && of(&["2"]).is_err());
    }
}
