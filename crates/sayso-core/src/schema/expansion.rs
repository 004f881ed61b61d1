//! How much work one answer can cause once every reference in its schema is followed.

use std::ops::ControlFlow;

use crate::limits::JSON_DEPTH_MAX;

use super::form::SchemaError;
use crate::limits::SCHEMA_EXPANSION_MAX;

/// A place in the schema where a subschema stands, and the places it sends an answer on to.
#[derive(Default)]
pub(super) struct Place {
    pub(super) pointer: String,
    /// Applied to the same value.
    pub(super) same: Vec<usize>,
    /// Options of an enum applied to the same value.
    pub(super) options: u32,
    /// Applied to a value below, of which only one can be the case: one property or another.
    pub(super) one_below: Vec<usize>,
    /// Applied to any value below.
    pub(super) any_below: Vec<usize>,
    /// Looks again at what the places in `same` have looked at.
    pub(super) looks_twice: bool,
}

impl Place {
    /// Where a keyword's subschemas go.
    pub(super) fn edges(&mut self, keyword: &str) -> &mut Vec<usize> {
        match keyword {
            "properties" | "additionalProperties" | "prefixItems" | "additionalItems" => &mut self.one_below,
            "patternProperties" | "unevaluatedProperties" | "propertyNames" | "contains" | "unevaluatedItems" => {
                &mut self.any_below
            }
            _ => &mut self.same,
        }
    }
}

/// Bounds how many subschemas one path through an answer can meet, by adding up, from the deepest possible value
/// upwards, what every place costs with all it applies.
pub(super) fn check_expansion(places: &[Place]) -> Result<(), SchemaError> {
    let order = applied_first(places)?;
    let mut below = vec![0_u32; places.len()];
    for _ in 0..=JSON_DEPTH_MAX {
        let mut costs = vec![0_u32; places.len()];
        for &index in &order {
            let Some(place) = places.get(index) else {
                continue;
            };
            let cost = |costs: &[u32], index: &usize| costs.get(*index).copied().unwrap_or(0);
            let sum = |edges: &[usize], costs: &[u32]| {
                edges.iter().fold(0_u32, |sum, to| sum.saturating_add(cost(costs, to)))
            };
            let mut same = sum(&place.same, &costs).saturating_add(place.options);
            if place.looks_twice {
                same = same.saturating_mul(2);
            }
            let one = place.one_below.iter().map(|to| cost(&below, to)).max().unwrap_or(0);
            let total = same.saturating_add(one).saturating_add(sum(&place.any_below, &below)).saturating_add(1);
            if total > SCHEMA_EXPANSION_MAX {
                let message = format!("expands to more than {SCHEMA_EXPANSION_MAX} subschemas");
                return Err(SchemaError::new(place.pointer.clone(), message));
            }
            if let Some(slot) = costs.get_mut(index) {
                *slot = total;
            }
        }
        if costs == below {
            break;
        }
        below = costs;
    }
    Ok(())
}

/// The places in an order in which each comes after those it applies to the same value. A place that comes back to
/// itself without going deeper into the value would never be done and is refused.
fn applied_first(places: &[Place]) -> Result<Vec<usize>, SchemaError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    fn visit(index: usize, places: &[Place], marks: &mut [Mark], order: &mut Vec<usize>) -> ControlFlow<usize> {
        let (Some(place), Some(mark)) = (places.get(index), marks.get_mut(index)) else {
            return ControlFlow::Continue(());
        };
        match *mark {
            Mark::Done => return ControlFlow::Continue(()),
            Mark::Open => return ControlFlow::Break(index),
            Mark::New => *mark = Mark::Open,
        }
        for &to in &place.same {
            visit(to, places, marks, order)?;
        }
        if let Some(mark) = marks.get_mut(index) {
            *mark = Mark::Done;
        }
        order.push(index);
        ControlFlow::Continue(())
    }
    let mut marks = vec![Mark::New; places.len()];
    let mut order = Vec::with_capacity(places.len());
    for index in 0..places.len() {
        if let ControlFlow::Break(cycle) = visit(index, places, &mut marks, &mut order) {
            let pointer = places.get(cycle).map(|place| place.pointer.clone()).unwrap_or_default();
            return Err(SchemaError::new(pointer, "refers to itself without an end"));
        }
    }
    Ok(order)
}
