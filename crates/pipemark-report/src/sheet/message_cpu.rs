//! The CPU time per message of each part of a link, for tables with a link by other programs.

use pipemark_model::{EndStats, Record, Sample};
use pipemark_stats::estimate::median;

/// A part of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageCpu {
    /// All senders.
    Sender,
    /// All receivers.
    Receiver,
    /// The process between them.
    Broker,
    /// All of these.
    All,
}

impl MessageCpu {
    /// The parts that have a column in a table of these trials: none without a link by other programs.
    pub(super) fn parts(records: &[&Record]) -> Vec<MessageCpu> {
        if !records.iter().any(|record| record.job.link().outside().is_some()) {
            return Vec::new();
        }
        let has_broker = |record: &&Record| record.samples.iter().any(|sample| sample.broker.is_some());
        let broker = records.iter().any(has_broker).then_some(MessageCpu::Broker);
        [MessageCpu::Sender, MessageCpu::Receiver].into_iter().chain(broker).collect()
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            MessageCpu::Sender => "sender CPU/msg",
            MessageCpu::Receiver => "receiver CPU/msg",
            MessageCpu::Broker => "broker CPU/msg",
            MessageCpu::All => "CPU/msg",
        }
    }

    /// The median over the runs in nanoseconds; `None` if the trial has no such part.
    pub(super) fn of(self, record: &Record) -> Option<f64> {
        let block = record.job.ends()?.block.0;
        let cpu_of = |ends: &[EndStats]| ends.iter().map(|end| end.user_ns + end.sys_ns).sum::<u64>();
        let of_sample = |sample: &Sample| {
            let cpu = match self {
                MessageCpu::Sender => cpu_of(&sample.sources),
                MessageCpu::Receiver => cpu_of(&sample.sinks),
                MessageCpu::Broker => sample.broker?.cpu_ns,
                MessageCpu::All => sample.user_ns + sample.sys_ns,
            };
            // A round trip has two messages.
            let messages = match &sample.latency {
                Some(latency) => 2.0 * latency.round_trips as f64,
                None => sample.bytes as f64 / block as f64,
            };
            (messages > 0.0).then(|| cpu as f64 / messages)
        };
        median(&record.samples.iter().map(of_sample).collect::<Option<Vec<f64>>>()?)
    }
}
