//! Which function a call instruction calls. Programs without symbols still name the functions of libraries that they call,
//! because the dynamic linker needs these names.

use std::collections::BTreeMap;

use object::{Architecture, Object, ObjectSymbol, ObjectSymbolTable, ReadRef, RelocationTarget, SymbolIndex};

use crate::time_limit::TimeLimit;

/// The maximum number of relocations of a file.
const MAX_RELOCATIONS: usize = 1_000_000;
/// The number of relocations between two readings of the clock.
const RELOCATIONS_PER_CHECK: usize = 1024;

/// Finds the functions that calls of a file call.
pub struct Calls<'o, 'd, R: ReadRef<'d>> {
    object: &'o object::File<'d, R>,
    data: R,
    /// The entries of the global offset table that the dynamic linker fills in, with their symbols.
    slots: BTreeMap<u64, SymbolIndex>,
    /// The position in the file of an address.
    position: &'o dyn Fn(u64) -> Option<u64>,
}

impl<'o, 'd, R: ReadRef<'d>> Calls<'o, 'd, R> {
    pub fn new(
        object: &'o object::File<'d, R>,
        data: R,
        position: &'o dyn Fn(u64) -> Option<u64>,
        time: &TimeLimit<'_>,
    ) -> Calls<'o, 'd, R> {
        let relocations = object.dynamic_relocations().into_iter().flatten().take(MAX_RELOCATIONS);
        let in_time = relocations.enumerate().take_while(|(nth, _)| !time.is_over_at(*nth, RELOCATIONS_PER_CHECK));
        let slots =
            in_time.map(|(_, relocation)| relocation).filter_map(|(slot, relocation)| match relocation.target() {
                RelocationTarget::Symbol(symbol) => Some((slot, symbol)),
                _ => None,
            });
        Calls { object, data, slots: slots.collect(), position }
    }

    /// The name of the function that is called by the call whose last byte is at `last`; `None` if that isn't a call with
    /// a fixed target in another file.
    pub fn called(&self, last: u64) -> Option<&'d [u8]> {
        let slot = match self.object.architecture() {
            Architecture::X86_64 => self.slot_of_x86_call(last.checked_add(1)?)?,
            Architecture::Aarch64 => self.slot_of_arm_call(last.checked_add(1)?)?,
            _ => return None,
        };
        let symbol = self.object.dynamic_symbol_table()?.symbol_by_index(*self.slots.get(&slot)?).ok()?;
        symbol.name_bytes().ok().filter(|name| !name.is_empty())
    }

    fn bytes<const LENGTH: usize>(&self, address: u64) -> Option<[u8; LENGTH]> {
        let position = (self.position)(address)?;
        self.data.read_bytes_at(position, LENGTH as u64).ok()?.try_into().ok()
    }

    /// The entry of the global offset table through which an x86-64 call goes. `next` is the address after the call.
    fn slot_of_x86_call(&self, next: u64) -> Option<u64> {
        let code: [u8; 6] = self.bytes(next.checked_sub(6)?)?;
        let distance = |bytes: &[u8]| Some(i64::from(i32::from_le_bytes(bytes.try_into().ok()?)));
        // call *DISTANCE(%rip)
        if code.starts_with(&[0xff, 0x15]) {
            return next.checked_add_signed(distance(&code[2..])?);
        }
        // call DISTANCE
        if code[1] != 0xe8 {
            return None;
        }
        let stub = next.checked_add_signed(distance(&code[2..])?)?;
        let code: [u8; 16] = self.bytes(stub)?;
        // endbr64 and a bnd prefix may come before jmp *DISTANCE(%rip).
        let jump = code.windows(2).take(7).position(|bytes| bytes == [0xff, 0x25])?;
        let after = stub.checked_add(jump as u64 + 6)?;
        after.checked_add_signed(distance(&code[jump + 2..jump + 6])?)
    }

    /// The entry of the global offset table through which an arm64 call goes. `next` is the address after the call.
    fn slot_of_arm_call(&self, next: u64) -> Option<u64> {
        let instruction = |address: u64| Some(u32::from_le_bytes(self.bytes(address)?));
        let at = next.checked_sub(4)?;
        let call = instruction(at)?;
        // bl DISTANCE
        if call >> 26 != 0b10_0101 {
            return None;
        }
        let distance = i64::from((call << 6).cast_signed() >> 6) * 4;
        let stub = at.checked_add_signed(distance)?;
        // bti may come before adrp x16, PAGE and ldr x17, [x16, OFFSET].
        let is_page = |code: u32| code & 0x9f00_001f == 0x9000_0010;
        let page_at = if is_page(instruction(stub)?) { stub } else { stub.checked_add(4)? };
        let (page, load) = (instruction(page_at)?, instruction(page_at.checked_add(4)?)?);
        if !is_page(page) || load & 0xffc0_03ff != 0xf940_0211 {
            return None;
        }
        let pages = (page >> 29 & 0b11) | (page >> 5 & 0x7_ffff) << 2;
        let pages = i64::from((pages << 11).cast_signed() >> 11);
        let base = (page_at & !0xfff).checked_add_signed(pages * 4096)?;
        base.checked_add(u64::from(load >> 10 & 0xfff) * 8)
    }
}
