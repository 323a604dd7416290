//! Steam reviews: one Python dictionary a line.

use memchr::memchr;

use super::DataError;
use super::columns::Role;
use super::error::{Fault, shown};
use super::intake::Intake;
use super::json::Keys;
use super::log_builder::Field;
use super::python_literal::{Dictionary, Value};
use super::records::nul_fault;
use super::source::Source;

/// Reads all rows of a file of Python dictionaries.
pub(super) fn read(source: &mut Source<'_>, intake: &mut Intake<'_>) -> Result<(), DataError> {
    let keys = Keys::fixed("username", "product_id", "date", intake);
    keys.announce(intake)?;
    // Strings with escapes are spelled out here, one buffer for each of the three.
    let mut spelled = [Vec::new(), Vec::new(), Vec::new()];
    while let Some(line) = source.next_line()? {
        let text = source.text(line);
        if memchr(0, text).is_some() {
            intake.bad_row(line.number, nul_fault(text))?;
            continue;
        }
        match parse(text, &keys, &mut spelled) {
            Ok([user, item, time]) => {
                intake.row(line.number, user, item, keys.time.is_some().then_some(time))?;
            }
            Err(fault) => intake.bad_row(line.number, *fault)?,
        }
    }
    Ok(())
}

#[inline]
fn parse<'a>(
    text: &'a [u8],
    keys: &Keys,
    spelled: &'a mut [Vec<u8>; 3],
) -> Result<[Field<'a>; 3], Box<Fault>> {
    let mut values = [Value::Missing; 3];
    let malformed = |error: super::python_literal::SyntaxError| {
        let found = format!("{} ({} at byte {})", shown(text), error.what, error.at + 1);
        Box::new(Fault::of_line(found, "a Python dictionary"))
    };
    let mut dictionary = Dictionary::open(text).map_err(malformed)?;
    while let Some(key) = dictionary.next_key().map_err(malformed)? {
        let at = match keys.role(key) {
            Some(Role::User) => 0,
            Some(Role::Item) => 1,
            Some(Role::Time) => 2,
            None => {
                dictionary.skip_value().map_err(malformed)?;
                continue;
            }
        };
        values[at] = dictionary.next_value().map_err(malformed)?;
    }
    let [user, item, time] = spelled;
    Ok([
        values[0].field(user).map_err(malformed)?,
        values[1].field(item).map_err(malformed)?,
        values[2].field(time).map_err(malformed)?,
    ])
}
