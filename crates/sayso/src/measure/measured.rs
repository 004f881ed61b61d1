use std::collections::BTreeMap;

use super::{Figure, Name};

/// Figures and the raw limits that were measured beside them, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The figures.
    pub figures: BTreeMap<Name, Figure>,
    /// The raw limits: name, value, unit.
    pub limits: BTreeMap<&'static str, (f64, &'static str)>,
}

impl Measured {
    /// Takes over what else was measured.
    pub fn extend(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.limits.extend(other.limits);
    }
    /// Notes a raw limit.
    pub fn limit(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.limits.insert(name, (value, unit));
    }
    /// Notes `value` against a measured limit.
    pub fn against(&mut self, name: Name, value: f64, limit: f64) {
        self.figures.insert(name, name.against(value, limit));
    }
    /// Notes `value` against its constant.
    pub fn figure(&mut self, name: Name, value: f64) {
        self.figures.insert(name, name.figure(value));
    }
}
