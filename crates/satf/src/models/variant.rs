//! Keys that play no part in training, as a table of the model's own.
//!
//! A model that has such keys keeps them in a serde struct: all of them optional, none means "as configured", unknown ones refused.
//! The names follow from the struct ([`keys_of`]), and the struct is read from the table that a caller gives ([`read`]).

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::ModelError;

/// The names of all keys of a model's struct of variants.
pub fn keys_of<V: Default + Serialize>() -> Vec<String> {
    match serde_json::to_value(V::default()) {
        Ok(serde_json::Value::Object(keys)) => keys.into_iter().map(|(key, _)| key).collect(),
        _ => Vec::new(),
    }
}

/// A model's struct of variants from a table. A key that it does not have is an error, and so is a value of another type.
pub fn read<V: DeserializeOwned>(model: &'static str, keys: &Table) -> Result<V, ModelError> {
    let variant = Value::Table(keys.clone()).try_into();
    variant.map_err(|error| ModelError::Variant { model, reason: error.message().to_owned() })
}

/// For models without such keys: an error if any is given.
pub fn refuse(model: &'static str, keys: &Table) -> Result<(), ModelError> {
    match keys.keys().next() {
        None => Ok(()),
        Some(key) => Err(ModelError::Variant { model, reason: format!("'{key}' plays a part in training") }),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Keys {
        rank: Option<usize>,
        rescaled: Option<bool>,
    }

    #[test]
    fn the_struct_tells_its_keys_and_reads_them() {
        assert_eq!(keys_of::<Keys>(), ["rank", "rescaled"]);
        let keys: Keys = read("m", &"rank = 3".parse().unwrap()).unwrap();
        assert_eq!(keys, Keys { rank: Some(3), rescaled: None });
    }

    #[test]
    fn an_unknown_key_or_a_wrong_value_is_an_error() {
        for (keys, part) in [("scaling = 1.0", "scaling"), ("rank = 'all'", "invalid type")] {
            let error = read::<Keys>("m", &keys.parse().unwrap()).unwrap_err();
            assert!(matches!(error, ModelError::Variant { model: "m", .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        refuse("m", &Table::new()).unwrap();
        assert!(refuse("m", &"rank = 3".parse().unwrap()).unwrap_err().to_string().contains("'rank'"));
    }
}
