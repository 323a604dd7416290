//! Steam reviews: one Python dictionary a line.

use std::path::Path;

use memchr::memchr;

use super::DataError;
use super::columns::{Columns, Role, Wanted};
use super::error::{Fault, Position, shown};
use super::field::Field;
use super::json::{Keys, ROLES};
use super::python_literal::{Dictionary, Value};
use super::records::nul_fault;
use super::rows::{Next, Row};
use super::source::Source;

/// The rows of a file of Python dictionaries.
pub(super) struct SteamRows<'a> {
    source: Source<'a>,
    keys: Keys,
    columns: Columns,
    /// Strings with escapes are spelled out here, one buffer for each of the three.
    spelled: [Vec<u8>; 3],
}

impl<'a> SteamRows<'a> {
    pub(super) fn open(source: Source<'a>, wanted: &Wanted<'_>) -> Self {
        let keys = Keys::fixed("username", "product_id", "date", &wanted.options);
        let columns = keys.columns();
        SteamRows { source, keys, columns, spelled: [Vec::new(), Vec::new(), Vec::new()] }
    }

    pub(super) fn path(&self) -> &Path {
        self.source.path()
    }

    pub(super) fn text_bytes(&self) -> u64 {
        self.source.text_bytes()
    }

    #[inline]
    pub(super) fn next<T>(
        &mut self,
        take: impl FnOnce(&Columns, Row<'_>) -> T,
    ) -> Result<Next<T>, DataError> {
        let Some(line) = self.source.next_line()? else { return Ok(Next::End) };
        let text = self.source.text(line);
        if memchr(0, text).is_some() {
            return Ok(Next::Bad(Position::Line(line.number), Box::new(nul_fault(text))));
        }
        Ok(match parse(text, &self.keys, &mut self.spelled) {
            Ok([user, item, time]) => {
                let time = self.keys.time.is_some().then_some(time);
                Next::Row(take(
                    &self.columns,
                    Row { position: Position::Line(line.number), user, item, time, order: None },
                ))
            }
            Err(fault) => Next::Bad(Position::Line(line.number), fault),
        })
    }
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
            Some(Role::Item | Role::History) => 1,
            Some(Role::Time) => 2,
            Some(Role::Rank) | None => {
                dictionary.skip_value().map_err(malformed)?;
                continue;
            }
        };
        if !matches!(values[at], Value::Missing) {
            let found = format!("{} (the key of the {} appears twice)", shown(text), ROLES[at]);
            return Err(Box::new(Fault::of_line(found, "a Python dictionary")));
        }
        values[at] = dictionary.next_value().map_err(malformed)?;
    }
    let [user, item, time] = spelled;
    Ok([
        values[0].field(user).map_err(malformed)?,
        values[1].field(item).map_err(malformed)?,
        values[2].field(time).map_err(malformed)?,
    ])
}
