//! The frames of a sample: finds the callers of an instruction from a copy of the top of its stack.

use std::collections::BTreeMap;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};

use crate::image::Images;
use crate::maps::{MappedContent, Maps};

/// The maximum number of frames of a sample's user code.
const MAX_USER_FRAMES: usize = 24;
/// The maximum number of frames of a sample's kernel code.
pub const MAX_KERNEL_FRAMES: u16 = 24;
/// The maximum number of processes whose stacks are unwound.
const MAX_PROCESSES: usize = 64;

/// A frame before its name is known. The innermost frame of a stack is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RawFrame {
    /// An address in the kernel.
    Kernel(u64),
    /// An address as in the file of an image. Of a caller, it is the last byte of the call.
    Image { image: usize, address: u64 },
    /// The kernel's code for fast system calls.
    Vdso,
    /// Code that the process generated.
    Generated,
    /// An address in no known code.
    Unknown,
}

#[cfg(target_arch = "aarch64")]
mod arch {
    pub type Native<D> = framehop::aarch64::UnwinderAarch64<D>;
    pub type Cache = framehop::aarch64::CacheAarch64;
    pub type Unwound = framehop::aarch64::UnwindRegsAarch64;
    /// x29 (the frame pointer), x30 (the return address), sp, pc.
    pub const REGISTERS: u64 = 0b1111 << 29;

    pub fn registers(values: &[u64]) -> Option<(u64, u64, Unwound)> {
        let &[fp, lr, sp, pc] = values else { return None };
        Some((pc, sp, Unwound::new(lr, sp, fp)))
    }
}

#[cfg(not(target_arch = "aarch64"))]
mod arch {
    pub type Native<D> = framehop::x86_64::UnwinderX86_64<D>;
    pub type Cache = framehop::x86_64::CacheX86_64;
    pub type Unwound = framehop::x86_64::UnwindRegsX86_64;
    /// bp, sp, ip.
    pub const REGISTERS: u64 = if cfg!(target_arch = "x86_64") { 0b111 << 6 } else { 0 };

    pub fn registers(values: &[u64]) -> Option<(u64, u64, Unwound)> {
        let &[bp, sp, ip] = values else { return None };
        Some((ip, sp, Unwound::new(ip, sp, bp)))
    }
}

/// The registers that a sample has, as perf_event_open(2) numbers them.
pub const REGISTERS: u64 = arch::REGISTERS;

/// The registers from which unwinding starts.
pub struct Registers {
    pc: u64,
    sp: u64,
    unwound: arch::Unwound,
}

impl Registers {
    /// From the values in the order of their numbers; `None` if the kernel copied no registers.
    pub fn new(values: &[u64]) -> Option<Registers> {
        arch::registers(values).map(|(pc, sp, unwound)| Registers { pc, sp, unwound })
    }

    /// The address of the user's instruction.
    pub fn pc(&self) -> u64 {
        self.pc
    }
}

/// Bytes of a section, shared by all processes that have the file mapped.
type Section = Arc<[u8]>;

/// What one process has mapped, as far as samples have touched it.
#[derive(Default)]
struct AddressSpace {
    unwinder: arch::Native<Section>,
    cache: arch::Cache,
    /// By a mapping's first address: its end, its image, and the image's displacement in memory.
    mapped: BTreeMap<u64, (u64, usize, u64)>,
}

/// Unwinds the stacks of several processes.
#[derive(Default)]
pub struct Unwinding {
    images: Images,
    spaces: BTreeMap<u32, AddressSpace>,
}

impl Unwinding {
    /// Adds the frames of a sample's user code to `frames`. `ip` is used if there are no registers.
    pub fn add_user_frames(
        &mut self,
        maps: &Maps,
        registers: Option<&Registers>,
        stack: Option<&[u8]>,
        ip: u64,
        frames: &mut Vec<RawFrame>,
    ) {
        if !self.spaces.contains_key(&maps.pid()) && self.spaces.len() >= MAX_PROCESSES {
            return;
        }
        let Unwinding { images, spaces } = self;
        let space = spaces.entry(maps.pid()).or_default();
        let Some(registers) = registers else {
            // In the kernel, `ip` is an address of the kernel, which is already among the frames.
            if frames.is_empty() {
                frames.push(space.frame(images, maps, ip));
            }
            return;
        };
        let stack = stack.unwrap_or_default();
        let mut read_stack = |address: u64| {
            let at = usize::try_from(address.checked_sub(registers.sp).ok_or(())?).map_err(drop)?;
            let bytes = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_le_bytes(bytes.try_into().map_err(drop)?))
        };
        let mut unwound = registers.unwound;
        let mut address = FrameAddress::from_instruction_pointer(registers.pc);
        for _ in 0..MAX_USER_FRAMES {
            let frame = space.frame(images, maps, address.address_for_lookup());
            frames.push(frame);
            if matches!(frame, RawFrame::Unknown) {
                break;
            }
            let AddressSpace { unwinder, cache, .. } = space;
            let caller = unwinder.unwind_frame(address, &mut unwound, cache, &mut read_stack);
            match caller.ok().flatten().and_then(FrameAddress::from_return_address) {
                Some(caller) => address = caller,
                None => break,
            }
        }
    }

    pub fn into_images(self) -> Images {
        self.images
    }
}

impl AddressSpace {
    fn frame(&mut self, images: &mut Images, maps: &Maps, address: u64) -> RawFrame {
        let Some(mapping) = maps.mapping(address) else { return RawFrame::Unknown };
        let (path, inode) = match &mapping.content {
            MappedContent::File { path, inode } => (path, *inode),
            MappedContent::Vdso => return RawFrame::Vdso,
            MappedContent::Generated => return RawFrame::Generated,
        };
        // After an exec, another file may be at the same address.
        let image = images.of(maps, path, inode);
        if let Some(&(end, known, displacement)) = self.mapped.get(&mapping.start)
            && known == image
            && end == mapping.end
        {
            return RawFrame::Image { image, address: address.wrapping_sub(displacement) };
        }
        let displacement = mapping.start.wrapping_sub(images.address_of(image, mapping.offset));
        self.unwinder.remove_module(mapping.start);
        self.mapped.insert(mapping.start, (mapping.end, image, displacement));
        let sections = images.unwind_sections(image);
        let info = ExplicitModuleSectionInfo {
            eh_frame_svma: sections.eh_frame.as_ref().map(|section| section.addresses.clone()),
            eh_frame: sections.eh_frame.as_ref().map(|section| section.bytes.clone()),
            eh_frame_hdr_svma: sections.eh_frame_hdr.as_ref().map(|section| section.addresses.clone()),
            eh_frame_hdr: sections.eh_frame_hdr.as_ref().map(|section| section.bytes.clone()),
            got_svma: sections.got.clone(),
            text_svma: sections.text.clone(),
            ..ExplicitModuleSectionInfo::default()
        };
        let module = Module::new(String::new(), mapping.start..mapping.end, displacement, info);
        self.unwinder.add_module(module);
        RawFrame::Image { image, address: address.wrapping_sub(displacement) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::maps::CodeMapping;
    use crate::time_limit::TimeLimit;

    /// xorshift: the quality of the randomness doesn't matter.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, end: u64) -> u64 {
            self.next() % end
        }
    }

    /// A place in a file that a liar would change: its header, its tables, or anything.
    fn place(random: &mut Random, length: u64) -> u64 {
        match random.below(3) {
            0 => random.below(1024),
            1 => length - 1 - random.below(4096),
            _ => random.below(length),
        }
    }

    fn try_files(count: u32) {
        let program = fs::read("/bin/sh").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut readable = 0;
        for number in 0..count {
            let mut bytes = program.clone();
            for _ in 0..=random.below(40) {
                let at = place(&mut random, bytes.len() as u64) as usize;
                bytes[at] = [0, 0xff, 0x7f, random.next() as u8][random.below(4) as usize];
            }
            if random.below(8) == 0 {
                bytes.truncate(random.below(bytes.len() as u64) as usize);
            }
            let path = directory.path().join(format!("file{number}"));
            fs::write(&path, &bytes).unwrap();
            let inode = fs::metadata(&path).unwrap().ino();
            let (start, end) = (0x5555_0000_0000, 0x5555_0000_0000 + 0x10_0000);
            let content = MappedContent::File { path: path.clone(), inode };
            let maps = Maps::of(CodeMapping { start, end, offset: 0, content });
            let began = Instant::now();
            let mut unwinding = Unwinding::default();
            let mut addresses = Vec::new();
            for _ in 0..20 {
                let stack: Vec<u8> = (0..1024).map(|_| random.next() as u8).collect();
                let count = REGISTERS.count_ones();
                let mut values: Vec<u64> = (0..count).map(|_| start + random.below(end - start)).collect();
                if random.below(4) == 0 {
                    values.fill_with(|| random.next());
                }
                let Some(registers) = Registers::new(&values) else { continue };
                let mut frames = Vec::new();
                unwinding.add_user_frames(&maps, Some(&registers), Some(&stack), start, &mut frames);
                assert!(frames.len() <= MAX_USER_FRAMES);
                addresses.extend(frames.iter().filter_map(|frame| match frame {
                    RawFrame::Image { image, address } => Some((*image, *address)),
                    _ => None,
                }));
            }
            let mut images = unwinding.into_images();
            images.resolve(addresses.iter().copied(), &TimeLimit::none());
            readable += u32::from(images.get(0).is_some() && images.unwind_sections(0).eh_frame.is_some());
            let named = addresses.iter().filter_map(|&(image, address)| images.get(image)?.function(address));
            assert!(named.into_iter().all(|name| !name.chars().any(char::is_control)));
            assert!(began.elapsed() < Duration::from_secs(10), "file {number} took {:?}", began.elapsed());
            fs::remove_file(path).unwrap();
        }
        assert!(readable * 10 > count, "only {readable} of {count} files could still be parsed");
    }

    #[test]
    fn files_that_lie_do_no_harm() {
        try_files(100);
    }

    #[test]
    #[ignore = "soak"]
    fn soak_files_that_lie_do_no_harm() {
        try_files(5000);
    }
}
