//! What names a class in memory.

use std::borrow::Cow;

/// A class as a program has it: a text, or none where any label will do.
///
/// ```
/// use monolayer::Dataset;
///
/// let data = Dataset::from_sequences(&[["May", "sails"]], &[[Some("PER"), None]])?;
/// assert_eq!((data.label(0), data.is_free(1)), (Some("PER"), true));
/// # Ok::<(), monolayer::Error>(())
/// ```
pub trait ClassName {
    /// Its name; none where any label will do.
    fn class_name(&self) -> Option<&str>;
}

impl ClassName for str {
    fn class_name(&self) -> Option<&str> {
        Some(self)
    }
}

impl ClassName for String {
    fn class_name(&self) -> Option<&str> {
        Some(self)
    }
}

impl ClassName for Cow<'_, str> {
    fn class_name(&self) -> Option<&str> {
        Some(self)
    }
}

impl<T: ClassName + ?Sized> ClassName for &T {
    fn class_name(&self) -> Option<&str> {
        T::class_name(self)
    }
}

impl<T: ClassName + ?Sized> ClassName for Box<T> {
    fn class_name(&self) -> Option<&str> {
        T::class_name(self)
    }
}

impl<T: ClassName> ClassName for Option<T> {
    fn class_name(&self) -> Option<&str> {
        self.as_ref().and_then(T::class_name)
    }
}
