//! Transforms ready to use.
//!
//! They are here and not in the program, as two of them work with vector instructions of their own, and as a library's
//! user should find what the program offers.

mod field;
mod identity;
mod length;
mod number;
mod spaces;
mod upper;

pub use field::Field;
pub use identity::Identity;
pub use length::Length;
pub use number::Number;
pub use spaces::Spaces;
pub use upper::Upper;

/// Appends `number` in decimal, without the detour through `fmt`, which would cost more than the line.
#[inline]
fn append_decimal(output: &mut super::Output<'_>, mut number: u64) {
    let mut digits = [0; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    output.extend(&digits[first..]);
}
