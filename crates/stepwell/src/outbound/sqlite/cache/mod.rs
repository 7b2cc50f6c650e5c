//! What the writing thread remembers of the file, so that it neither reads nor writes a row twice.

mod cached_queue;
mod cached_run;
mod cached_task;
mod cached_tenant;
mod definitions;
mod row_cache;
mod worker_numbers;

pub(crate) use cached_run::CachedRun;
pub(crate) use definitions::DefinitionCache;
pub(crate) use row_cache::RowCache;

/// The rows that differ from the first in one field, which is as in the second, with the names of
/// the fields. A field that is added to a row takes part by itself.
#[cfg(test)]
fn one_field_changed<T>(row: &T, other: &T) -> Vec<(String, T)>
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let fields = |row: &T| match serde_json::to_value(row).expect("a row is plain data") {
        serde_json::Value::Object(fields) => fields,
        value => panic!("a row has fields: {value}"),
    };
    let (fields, others) = (fields(row), fields(other));
    let with_other = |(name, value): (&String, &serde_json::Value)| {
        let mut changed = fields.clone();
        changed.insert(name.clone(), value.clone());
        let changed = serde_json::from_value(changed.into()).expect("it was a row before");
        assert_ne!(&changed, row, "{name} is as before");
        (name.clone(), changed)
    };
    others.iter().map(with_other).collect()
}
