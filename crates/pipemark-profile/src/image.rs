//! Executable files and libraries: their sections for unwinding, and the names of their functions. Files are untrusted, so
//! everything read from them is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::read::{ReadCache, ReadRef};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::calls::Calls;
use crate::maps::{Maps, file_name};
use crate::time_limit::TimeLimit;
use crate::unoptimised::{MAX_CODE, stack_use};

/// The maximum number of files that are read.
const MAX_IMAGES: usize = 256;
/// The maximum number of bytes that are read of a file. The tables of the largest browsers are smaller.
const MAX_READ: u64 = 96 << 20;
/// The maximum size of a section for unwinding, in bytes.
const MAX_SECTION: u64 = 16 << 20;
/// The maximum number of symbols of a table.
const MAX_SYMBOLS: usize = 2_000_000;
/// The maximum length of a name, in bytes. Names of C++ and Rust may be longer, but their beginnings tell enough.
const MAX_NAME: usize = 512;

/// A section for unwinding.
#[derive(Debug, Clone)]
pub struct UnwindSection {
    /// Its addresses as in the file.
    pub addresses: Range<u64>,
    pub bytes: Arc<[u8]>,
}

/// The sections for unwinding.
#[derive(Debug, Default)]
pub struct UnwindSections {
    pub eh_frame: Option<UnwindSection>,
    pub eh_frame_hdr: Option<UnwindSection>,
    pub got: Option<Range<u64>>,
    pub text: Option<Range<u64>>,
}

/// A part of the file and the address at which it is loaded.
#[derive(Debug)]
struct Segment {
    file: Range<u64>,
    address: u64,
    is_executable: bool,
}

/// An executable file or a library.
#[derive(Debug, Default)]
pub struct Image {
    /// The file's name without directories.
    pub name: String,
    file: Option<File>,
    build_id: Option<Vec<u8>>,
    segments: Vec<Segment>,
    unwind: UnwindSections,
    /// The functions at the addresses that samples have.
    functions: BTreeMap<u64, Arc<str>>,
    /// The functions that the calls at these addresses call.
    called: BTreeMap<u64, Arc<str>>,
    /// The address and size of the functions at the addresses that samples have.
    extents: BTreeMap<u64, (u64, u64)>,
    /// How much functions use the stack, by their addresses.
    stack_uses: BTreeMap<u64, f64>,
}

impl Image {
    /// The address of the function at an address, and how much it uses the stack; `None` if unknown.
    pub fn stack_use(&self, address: u64) -> Option<(u64, f64)> {
        let (start, _) = self.extents.get(&address)?;
        Some((*start, *self.stack_uses.get(start)?))
    }

    /// The function at an address; `None` if no symbol covers it.
    pub fn function(&self, address: u64) -> Option<&Arc<str>> {
        self.functions.get(&address)
    }

    /// The function that is called by the call whose last byte is at this address; `None` if unknown.
    pub fn called(&self, address: u64) -> Option<&Arc<str>> {
        self.called.get(&address)
    }
}

/// The images that samples have touched.
#[derive(Debug, Default)]
pub struct Images {
    images: Vec<Image>,
    known: BTreeMap<(PathBuf, u64), usize>,
}

impl Images {
    pub fn get(&self, image: usize) -> Option<&Image> {
        self.images.get(image)
    }

    /// The image of a mapped file, read at the first call.
    pub fn of(&mut self, maps: &Maps, path: &Path, inode: u64) -> usize {
        if let Some(&known) = self.known.get(&(path.to_owned(), inode)) {
            return known;
        }
        let mut image = Image { name: file_name(path), ..Image::default() };
        if self.images.len() < MAX_IMAGES
            && let Some(file) = maps.open(path, inode)
        {
            // A file that can't be parsed still has a name.
            let _ = image.read(file);
        }
        self.images.push(image);
        self.known.insert((path.to_owned(), inode), self.images.len() - 1);
        self.images.len() - 1
    }

    /// The address, as in the file, of the code at this position in the file.
    pub fn address_of(&self, image: usize, position: u64) -> u64 {
        let code = || self.images[image].segments.iter().filter(|segment| segment.is_executable);
        // Mappings begin at a page, segments may begin within it. The page may also hold the end of another segment.
        let begins_in = |segment: &&Segment| segment.file.start & !0xffff == position & !0xffff;
        let found = code().find(|segment| segment.file.contains(&position)).or_else(|| code().find(begins_in));
        found.map_or(position, |segment| position.wrapping_sub(segment.file.start).wrapping_add(segment.address))
    }

    pub fn unwind_sections(&self, image: usize) -> &UnwindSections {
        &self.images[image].unwind
    }

    /// Finds the names of functions at these addresses, and of those that they call, as far as the time suffices.
    pub fn resolve(&mut self, addresses: impl Iterator<Item = (usize, u64)>, time: &TimeLimit<'_>) {
        let mut wanted: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        for (image, address) in addresses {
            wanted.entry(image).or_default().insert(address);
        }
        for (image, addresses) in wanted {
            let addresses: Vec<u64> = addresses.into_iter().collect();
            self.images[image].resolve(&addresses, time);
        }
    }
}

impl Image {
    fn read(&mut self, file: File) -> object::Result<()> {
        let cache = ReadCache::new(Bounded::new(&file, MAX_READ));
        let object = object::File::parse(&cache)?;
        self.segments = object
            .segments()
            .map(|segment| {
                let (start, size) = segment.file_range();
                let is_executable = segment.permissions().executable();
                Segment { file: start..start.saturating_add(size), address: segment.address(), is_executable }
            })
            .collect();
        let addresses = |name: &str| {
            let section = object.section_by_name(name)?;
            Some(section.address()..section.address().saturating_add(section.size()))
        };
        let section = |name: &str| {
            let section = object.section_by_name(name).filter(|section| section.size() <= MAX_SECTION)?;
            let bytes: Arc<[u8]> = section.data().ok()?.into();
            Some(UnwindSection {
                addresses: section.address()..section.address().saturating_add(bytes.len() as u64),
                bytes,
            })
        };
        self.unwind = UnwindSections {
            eh_frame: section(".eh_frame"),
            eh_frame_hdr: section(".eh_frame_hdr"),
            got: addresses(".got"),
            text: addresses(".text"),
        };
        self.build_id = object.build_id().ok().flatten().filter(|id| id.len() > 1).map(<[u8]>::to_vec);
        self.file = Some(file);
        Ok(())
    }

    /// Finds the names of the functions at these addresses, which are sorted.
    fn resolve(&mut self, addresses: &[u64], time: &TimeLimit<'_>) {
        let mut called = BTreeMap::new();
        // Errors leave the names unknown.
        if let Some(file) = &self.file {
            let _ = resolve_in(file, addresses, &mut self.functions, &mut self.extents, time);
            let _ = self.find_called(file, addresses, &mut called, time);
        }
        if self.functions.len() < addresses.len()
            && let Some(debug) = self.build_id.as_deref().and_then(debug_file)
        {
            let _ = resolve_in(&debug, addresses, &mut self.functions, &mut self.extents, time);
        }
        self.called = called;
        let _ = self.read_stack_uses(time);
    }

    /// Reads the code of the functions that samples are in.
    fn read_stack_uses(&mut self, time: &TimeLimit<'_>) -> object::Result<()> {
        /// The maximum number of functions whose code is read.
        const MAX_FUNCTIONS: usize = 64;
        let Some(file) = &self.file else { return Ok(()) };
        let cache = ReadCache::new(Bounded::new(file, time.bytes()));
        let object = object::File::parse(&cache)?;
        // Go keeps arguments on the stack.
        if object.section_by_name(".gopclntab").is_some() {
            return Ok(());
        }
        let functions: BTreeSet<(u64, u64)> = self.extents.values().copied().collect();
        for (start, size) in functions.into_iter().take(MAX_FUNCTIONS).take_while(|_| !time.is_over()) {
            let length = size.min(MAX_CODE as u64);
            let code = self.position_of(start).and_then(|position| cache.read_bytes_at(position, length).ok());
            if let Some(stack_use) = code.and_then(|code| stack_use(code, object.architecture())) {
                self.stack_uses.insert(start, stack_use);
            }
        }
        Ok(())
    }

    /// The position in the file of an address.
    fn position_of(&self, address: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let position = address.checked_sub(segment.address)?.checked_add(segment.file.start)?;
            segment.file.contains(&position).then_some(position)
        })
    }

    /// Finds the functions that the calls at these addresses call.
    fn find_called(
        &self,
        file: &File,
        addresses: &[u64],
        called: &mut BTreeMap<u64, Arc<str>>,
        time: &TimeLimit<'_>,
    ) -> object::Result<()> {
        let cache = ReadCache::new(Bounded::new(file, time.bytes()));
        let object = object::File::parse(&cache)?;
        let position = |address| self.position_of(address);
        let calls = Calls::new(&object, &cache, &position, time);
        for &address in addresses.iter().take_while(|_| !time.is_over()) {
            if let Some(name) = calls.called(address) {
                called.insert(address, function_name(name).into());
            }
        }
        Ok(())
    }
}

/// Reads the symbols of a file, and adds those that cover an address.
fn resolve_in(
    file: &File,
    addresses: &[u64],
    functions: &mut BTreeMap<u64, Arc<str>>,
    extents: &mut BTreeMap<u64, (u64, u64)>,
    time: &TimeLimit<'_>,
) -> object::Result<()> {
    /// The number of symbols between two readings of the clock.
    const SYMBOLS_PER_CHECK: usize = 1024;
    let cache = ReadCache::new(Bounded::new(file, time.bytes()));
    let object = object::File::parse(&cache)?;
    let symbols = object.symbols().take(MAX_SYMBOLS).chain(object.dynamic_symbols().take(MAX_SYMBOLS));
    for (nth, symbol) in symbols.enumerate() {
        if time.is_over_at(nth, SYMBOLS_PER_CHECK) {
            break;
        }
        let is_function = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown) && symbol.is_definition();
        // Without a size, a symbol might cover the functions behind it whose names were stripped.
        if !is_function || symbol.size() == 0 {
            continue;
        }
        let end = symbol.address().saturating_add(symbol.size());
        let first = addresses.partition_point(|&address| address < symbol.address());
        for &address in addresses[first..].iter().take_while(|&&address| address < end) {
            if functions.contains_key(&address) {
                continue;
            }
            let Ok(name) = symbol.name_bytes() else { break };
            functions.insert(address, function_name(name).into());
            extents.insert(address, (symbol.address(), symbol.size()));
        }
    }
    Ok(())
}

/// A function's name as its author wrote it, without the hash that Rust adds and without control characters.
fn function_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(&name[..name.len().min(MAX_NAME)]);
    // Versions of glibc's symbols: memcpy@@GLIBC_2.14.
    let name = name.split('@').next().unwrap_or_default();
    let name = format!("{:#}", rustc_demangle::demangle(name));
    name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect()
}

/// The file with debugging symbols that a distribution's package has installed.
fn debug_file(build_id: &[u8]) -> Option<File> {
    use std::fmt::Write;
    let mut rest = String::new();
    for byte in build_id.get(1..)? {
        let _ = write!(rest, "{byte:02x}");
    }
    File::open(format!("/usr/lib/debug/.build-id/{:02x}/{rest}.debug", build_id[0])).ok()
}

/// A file of which a limited number of bytes is read, at most [`MAX_READ`].
struct Bounded<'a> {
    file: &'a File,
    left: u64,
}

impl Bounded<'_> {
    fn new(file: &File, most: u64) -> Bounded<'_> {
        Bounded { file, left: most.min(MAX_READ) }
    }
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.len() as u64 > self.left {
            return Err(io::Error::other("too much to read"));
        }
        let length = self.file.read(buffer)?;
        self.left -= length as u64;
        Ok(length)
    }
}

impl Seek for Bounded<'_> {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}
