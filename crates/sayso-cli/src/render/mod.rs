//! Rounds as text for a person. Every word that came from somebody else is made visible on its way in here: nothing in
//! it can move the cursor, turn the line around or hide.

mod event;
mod field;
mod request;
mod round;
mod since;
mod table;

pub use event::event;
pub use field::{describe, option_label};
pub use request::{changed_arguments, request};
pub use round::{accepted, answer, heading, page, rounds};
pub use since::now;
pub use table::table;
