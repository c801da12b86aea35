//! Data and its form in JSON: two types from one declaration, so that each row names a field, its type and what JSON has of
//! it. Data knows no file format.

use pipemark_proc::process::{Direction, PipeEnd};
use pipemark_proc::state::ThreadState;
use pipemark_proc::thread::ProcFile;
use pipemark_profile::Profile;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exact_text::ExactText;

/// Data that has a form in JSON.
pub trait Recorded: Sized {
    type Form: Serialize + DeserializeOwned;

    fn to_form(&self) -> Self::Form;

    fn of_form(form: Self::Form) -> Self;
}

/// Types that JSON has as they are.
macro_rules! as_they_are {
    ($($kind:ty,)*) => {
        $(impl $crate::recorded::Recorded for $kind {
            type Form = $kind;

            fn to_form(&self) -> $kind {
                self.clone()
            }

            fn of_form(form: $kind) -> $kind {
                form
            }
        })*
    };
}

as_they_are! {
    bool, u32, u64, usize, i32, f64, String, ExactText,
    [u32; ThreadState::COUNT], [u64; 2], (u64, u64), (String, u32, String), (String, Direction),
    PipeEnd, ProcFile, Profile,
}

impl<T: Recorded> Recorded for Option<T> {
    type Form = Option<T::Form>;

    fn to_form(&self) -> Option<T::Form> {
        self.as_ref().map(T::to_form)
    }

    fn of_form(form: Option<T::Form>) -> Option<T> {
        form.map(T::of_form)
    }
}

impl<T: Recorded> Recorded for Vec<T> {
    type Form = Vec<T::Form>;

    fn to_form(&self) -> Vec<T::Form> {
        self.iter().map(T::to_form).collect()
    }

    fn of_form(form: Vec<T::Form>) -> Vec<T> {
        form.into_iter().map(T::of_form).collect()
    }
}

/// Defines data with its form in JSON. The attributes after the type's name are those of the form; `serde` before a field
/// says how JSON has that field. Fields under `not in JSON` are missing in the form.
macro_rules! recorded {
    (
        $(#[doc = $about:literal])*
        #[derive($($derive:ident),*)]
        pub struct $name:ident
        $(#[$form_attribute:meta])*
        in JSON $form:ident {
            $($(#[doc = $doc:literal])* $(#[serde($($json:tt)*)])* $vis:vis $field:ident: $kind:ty,)*
        }
        $(not in JSON {
            $($(#[doc = $own_doc:literal])* $own_vis:vis $own:ident: $own_kind:ty,)*
        })?
    ) => {
        $(#[doc = $about])*
        #[derive($($derive),*)]
        pub struct $name {
            $($(#[doc = $doc])* $vis $field: $kind,)*
            $($($(#[doc = $own_doc])* $own_vis $own: $own_kind,)*)?
        }

        $(#[doc = $about])*
        #[derive(serde::Serialize, serde::Deserialize)]
        $(#[$form_attribute])*
        pub struct $form {
            $($(#[doc = $doc])* $(#[serde($($json)*)])* $vis $field: <$kind as $crate::recorded::Recorded>::Form,)*
        }

        impl $crate::recorded::Recorded for $name {
            type Form = $form;

            fn to_form(&self) -> $form {
                let $name { $($field,)* $($($own: _,)*)? } = self;
                $form { $($field: <$kind as $crate::recorded::Recorded>::to_form($field),)* }
            }

            fn of_form(form: $form) -> $name {
                let $form { $($field,)* } = form;
                $name {
                    $($field: <$kind as $crate::recorded::Recorded>::of_form($field),)*
                    $($($own: Default::default(),)*)?
                }
            }
        }
    };
}

pub(crate) use {as_they_are, recorded};
