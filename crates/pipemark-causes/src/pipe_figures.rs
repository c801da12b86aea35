//! The figures of a pipe.

use crate::recorded::recorded;

recorded! {
    /// Figures of a pipe.
    #[derive(Debug, Clone, Default, PartialEq)]
    pub struct PipeFigures
    #[derive(Debug, Clone, Default, PartialEq)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "PipeFigures"))]
    in JSON PipeRecord {
        pub number: usize,
        /// The number of the stage that writes the pipe.
        pub from: usize,
        /// The number of the stage that reads the pipe.
        pub to: usize,
        pub capacity: Option<u64>,
        pub writer_waits: f64,
        pub reader_waits: f64,
        pub bytes_per_second: Option<f64>,
        /// The mean length of the writer's waits in seconds, weighted by length; null if the waits are too short to sample.
        #[serde(default)]
        pub stretch: Option<f64>,
        /// The mean length of the reader's waits, as in `stretch`.
        #[serde(default)]
        pub reader_stretch: Option<f64>,
        /// Whether the pipe is a pair of sockets, whose capacity can't be changed.
        #[serde(default)]
        pub is_socket: bool,
    }
    not in JSON {
        /// How often the waits of the pipe's two ends alternated; null if not sampled.
        pub turns: Option<u32>,
        /// The part of the waits of both ends that a buffer would save, from 0 to 1; null if unknown.
        pub absorbable: Option<f64>,
    }
}
