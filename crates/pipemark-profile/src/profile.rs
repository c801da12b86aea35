//! The stacks of a stage, counted, and what they say: functions and kinds of work.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use pipemark_model::total_order;

use crate::image::Images;
use crate::kind::{Named, WorkKind, kind_of, kind_of_call};
use crate::stack::RawFrame;
use crate::unoptimised::{Sampled, is_inlined_by_optimisation, is_unoptimised};

/// The fewest samples from which a kind of work is named. At 30, a share of a half is known to within 18 points.
pub const MIN_SAMPLES: u32 = 30;
/// The maximum number of different stacks that are kept; the frames of further ones are cut to the innermost.
const MAX_STACKS: usize = 4096;
/// The maximum number of functions of a profile.
const MAX_FUNCTIONS: usize = 10;

/// What a stage's threads executed, by samples of their CPU time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Profile {
    /// The number of samples, 99 per second of CPU time.
    pub samples: u32,
    /// Whether only the program's own code could be sampled, not the kernel's work for it.
    pub user_only: bool,
    /// The kinds of work, the largest share first. Their shares don't add up to 1 if the kind of some work is unknown.
    pub kinds: Vec<WorkShare>,
    /// The functions with most samples, the largest share first.
    pub functions: Vec<FunctionShare>,
    /// Whether the program was compiled without optimisation, as far as its functions show it.
    #[serde(default)]
    pub unoptimised: bool,
    /// Stacks for flame graphs, if they were asked for: names from the outermost to the innermost, joined by semicolons,
    /// and the number of samples.
    #[serde(skip)]
    pub folded: Vec<(String, u32)>,
}

/// The share of a kind of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkShare {
    pub kind: WorkKind,
    /// The share of the samples, from 0 to 1.
    pub share: f64,
    /// The function or system call that most of these samples are in; `None` if it has no name.
    pub function: Option<String>,
}

/// The share of a function's own code, without the functions that it calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionShare {
    /// The function's name, as far as it is known: `strcoll`, `in strcoll` for a function without a name that strcoll
    /// calls, or `?`.
    pub name: String,
    /// The file that has the function, without directories, or `kernel`.
    pub image: String,
    /// The share of the samples, from 0 to 1.
    pub share: f64,
}

/// A stage's stacks, counted.
#[derive(Debug, Default)]
pub struct Stacks {
    counts: BTreeMap<Vec<RawFrame>, u32>,
    samples: u32,
    kernel: bool,
}

/// The names of the kernel's functions.
type KernelNames = BTreeMap<u64, Arc<str>>;

/// A frame with what is known of its name.
#[derive(Debug, Clone, PartialEq)]
struct Frame<'a> {
    image: &'a str,
    function: Option<&'a str>,
    /// The function of the same image through which the program called this one; `None` if unknown.
    inside: Option<&'a str>,
}

impl Frame<'_> {
    fn name(&self) -> String {
        match (self.function, self.inside) {
            (Some(name), _) => name.to_owned(),
            (None, Some(name)) => format!("in {name}"),
            (None, None) => "?".to_owned(),
        }
    }
}

impl Stacks {
    pub fn new(kernel: bool) -> Stacks {
        Stacks { kernel, ..Stacks::default() }
    }

    /// Adds a sample; its innermost frame is the first.
    pub fn add(&mut self, mut frames: Vec<RawFrame>) {
        self.samples += 1;
        if self.counts.len() >= MAX_STACKS && !self.counts.contains_key(&frames) {
            frames.truncate(1);
        }
        *self.counts.entry(frames).or_default() += 1;
    }

    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// The share of the samples whose innermost frame is in the kernel.
    pub fn kernel_share(&self) -> f64 {
        let in_kernel = self.counts.iter().filter(|(stack, _)| matches!(stack.first(), Some(RawFrame::Kernel(_))));
        f64::from(in_kernel.map(|(_, count)| count).sum::<u32>()) / f64::from(self.samples.max(1))
    }

    fn frames(&self) -> impl Iterator<Item = &RawFrame> {
        self.counts.keys().flatten()
    }

    pub fn kernel_addresses(&self) -> impl Iterator<Item = u64> {
        self.frames().filter_map(|frame| if let RawFrame::Kernel(address) = frame { Some(*address) } else { None })
    }

    pub fn image_addresses(&self) -> impl Iterator<Item = (usize, u64)> {
        self.frames().filter_map(|frame| match frame {
            RawFrame::Image { image, address } => Some((*image, *address)),
            _ => None,
        })
    }

    /// The stacks for flame graphs. `program` is the name of the stage's program.
    pub fn folded(&self, images: &Images, kernel: &KernelNames, program: &str) -> Vec<(String, u32)> {
        let mut folded: BTreeMap<String, u32> = BTreeMap::new();
        for (stack, &count) in &self.counts {
            let frames = named(stack, images, kernel);
            let names = frames.iter().rev().map(|frame| frame.name().replace(';', ":"));
            let line: Vec<String> = std::iter::once(program.replace(';', ":")).chain(names).collect();
            *folded.entry(line.join(";")).or_default() += count;
        }
        folded.into_iter().collect()
    }

    /// What the stacks say, with the names found.
    pub fn profile(&self, images: &Images, kernel: &KernelNames) -> Profile {
        let mut functions: BTreeMap<(String, String), u32> = BTreeMap::new();
        let mut kinds: BTreeMap<WorkKind, BTreeMap<Option<String>, u32>> = BTreeMap::new();
        for (stack, &count) in &self.counts {
            let frames = named(stack, images, kernel);
            if let Some(first) = frames.first() {
                *functions.entry((first.name(), first.image.to_owned())).or_default() += count;
            }
            if let Some((kind, function)) = kind_of_stack(&frames) {
                *kinds.entry(kind).or_default().entry(function).or_default() += count;
            }
        }
        let share = |count: u32| f64::from(count) / f64::from(self.samples.max(1));
        let mut functions: Vec<FunctionShare> = functions
            .into_iter()
            .map(|((name, image), count)| FunctionShare { name, image, share: share(count) })
            .collect();
        functions.sort_by_cached_key(|function| total_order(-function.share));
        functions.truncate(MAX_FUNCTIONS);
        let mut kinds: Vec<WorkShare> = kinds
            .into_iter()
            .map(|(kind, functions)| WorkShare {
                kind,
                share: share(functions.values().sum()),
                function: functions.into_iter().max_by_key(|(_, count)| *count).and_then(|(name, _)| name),
            })
            .collect();
        kinds.sort_by_cached_key(|kind| total_order(-kind.share));
        Profile {
            samples: self.samples,
            user_only: !self.kernel,
            kinds: if self.samples < MIN_SAMPLES { Vec::new() } else { kinds },
            functions,
            unoptimised: self.samples >= MIN_SAMPLES && is_unoptimised(&self.sampled_functions(images)),
            folded: Vec::new(),
        }
    }

    /// The functions with names that samples are in, without those that they call.
    fn sampled_functions(&self, images: &Images) -> Vec<Sampled> {
        let mut functions: BTreeMap<(usize, u64), Sampled> = BTreeMap::new();
        for (stack, &count) in &self.counts {
            let Some(&RawFrame::Image { image, address }) = stack.first() else { continue };
            let Some(of) = images.get(image) else { continue };
            let Some(name) = of.function(address) else { continue };
            let (start, stack_use) = of.stack_use(address).map_or((address, None), |(start, used)| (start, Some(used)));
            let is_inlined = is_inlined_by_optimisation(name);
            let function = functions.entry((image, start)).or_insert(Sampled { share: 0.0, stack_use, is_inlined });
            function.share += f64::from(count) / f64::from(self.samples.max(1));
        }
        functions.into_values().collect()
    }
}

/// The frames with their names.
fn named<'a>(stack: &[RawFrame], images: &'a Images, kernel: &'a KernelNames) -> Vec<Frame<'a>> {
    let mut frames: Vec<Frame<'_>> = stack.iter().map(|frame| name(*frame, images, kernel)).collect();
    for at in 0..frames.len() {
        let RawFrame::Image { image, .. } = stack[at] else { continue };
        // The first frame outside of this image called one of its functions by name.
        let outside = stack[at..]
            .iter()
            .position(|frame| !matches!(frame, RawFrame::Image { image: other, .. } if *other == image));
        let caller = outside.map(|distance| stack[at + distance]);
        if let Some(RawFrame::Image { image: caller, address }) = caller {
            frames[at].inside = images.get(caller).and_then(|image| image.called(address)).map(|name| &**name);
        }
    }
    frames
}

fn name<'a>(frame: RawFrame, images: &'a Images, kernel: &'a KernelNames) -> Frame<'a> {
    let (image, function) = match frame {
        RawFrame::Kernel(address) => ("kernel", kernel.get(&address).map(|name| &**name)),
        RawFrame::Image { image, address } => {
            let image = images.get(image);
            (
                image.map_or("?", |image| &image.name),
                image.and_then(|image| image.function(address)).map(|name| &**name),
            )
        }
        RawFrame::Vdso => ("vdso", None),
        RawFrame::Generated => ("generated code", None),
        RawFrame::Unknown => ("?", None),
    };
    Frame { image, function, inside: None }
}

/// The kind of work of a stack, and the function that shows it: the innermost frame whose kind is known.
fn kind_of_stack(frames: &[Frame<'_>]) -> Option<(WorkKind, Option<String>)> {
    if frames.first()?.image == "kernel" {
        let names = || frames.iter().take_while(|frame| frame.image == "kernel").filter_map(|frame| frame.function);
        if names().any(|name| name.contains("page_fault") || name.contains("do_mem_abort")) {
            return Some((WorkKind::PageFaults, None));
        }
        // Compilers drop frames of the kernel's entry points; the program's function then has the call's name.
        let outside = frames.iter().find(|frame| frame.image != "kernel");
        let function =
            outside.and_then(|frame| frame.function.or(frame.inside)).map(|name| name.trim_start_matches('_'));
        let call = names().find_map(system_call).or(function.filter(|_| names().any(enters)));
        return call.map(|call| (kind_of_call(call), Some(call.to_owned())));
    }
    frames.iter().find_map(|frame| {
        if frame.image == "generated code" {
            return Some((WorkKind::GeneratedCode, None));
        }
        // In the C locale, strcoll jumps to strcmp, so the name of what was called tells more.
        [frame.inside, frame.function].into_iter().find_map(|function| {
            kind_of(Named { image: frame.image, function }).map(|kind| (kind, function.map(str::to_owned)))
        })
    })
}

/// The system call that a kernel function implements: `read` of `__x64_sys_read`.
fn system_call(function: &str) -> Option<&str> {
    const STARTS: [&str; 6] = ["__x64_sys_", "__arm64_sys_", "__ia32_sys_", "__do_sys_", "__se_sys_", "ksys_"];
    STARTS.iter().find_map(|start| function.strip_prefix(start))
}

/// Whether a kernel function is where system calls enter the kernel.
fn enters(function: &str) -> bool {
    ["do_syscall_64", "el0_svc", "entry_SYSCALL_64_after_hwframe"].contains(&function)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(image: &'a str, function: Option<&'a str>) -> Frame<'a> {
        Frame { image, function, inside: None }
    }

    #[test]
    fn the_innermost_known_frame_decides() {
        let comparing = [Frame { image: "libc.so.6", function: None, inside: Some("strcoll") }, frame("sort", None)];
        assert_eq!(kind_of_stack(&comparing), Some((WorkKind::LocaleComparison, Some("strcoll".to_owned()))));
        let reading =
            [frame("kernel", Some("copy_page")), frame("kernel", Some("__x64_sys_read")), frame("sort", None)];
        assert_eq!(kind_of_stack(&reading), Some((WorkKind::SystemCalls, Some("read".to_owned()))));
        let fault =
            [frame("kernel", Some("clear_page")), frame("kernel", Some("asm_exc_page_fault")), frame("sort", None)];
        assert_eq!(kind_of_stack(&fault), Some((WorkKind::PageFaults, None)));
        assert_eq!(kind_of_stack(&[frame("my-program", None)]), None);
        assert_eq!(kind_of_stack(&[]), None);
    }

    #[test]
    fn no_kind_is_named_from_few_samples() {
        let mut stacks = Stacks::new(true);
        for _ in 0..MIN_SAMPLES - 1 {
            stacks.add(vec![RawFrame::Generated]);
        }
        assert!(stacks.profile(&Images::default(), &KernelNames::new()).kinds.is_empty());
        stacks.add(vec![RawFrame::Generated]);
        let profile = stacks.profile(&Images::default(), &KernelNames::new());
        assert_eq!(profile.kinds[0], WorkShare { kind: WorkKind::GeneratedCode, share: 1.0, function: None });
    }
}
