//! Files of costs, for FISHPLATE_COSTS.
//!
//! The promise: a table that is read has costs, its text is the table again, and an error names a
//! line of the file.

use knobs::{CoreDistance, CostTable};

pub(crate) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match CostTable::parse(&text) {
        Ok(table) => {
            assert!(!table.is_empty());
            let again = CostTable::parse(&table.to_string());
            assert_eq!(again.as_ref(), Ok(&table));
            for others_wait in [false, true] {
                for cores in [CoreDistance::Near, CoreDistance::Far] {
                    let longest = table.costs(usize::MAX, cores, others_wait);
                    if let Some(costs) = longest {
                        assert!(costs.fastest(|_| true).is_some(), "{costs:?}");
                    }
                }
            }
            assert_eq!(table.clone().over(table.clone()), table);
        }
        Err(why) => assert!((1..=text.lines().count().max(1)).contains(&why.line), "{why}"),
    }
}
