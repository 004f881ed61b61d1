use std::collections::BTreeMap;

use super::{Figure, Name};

/// Figures, the raw limits that were measured beside them, and what else the same runs show, in the order of their names.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The figures.
    pub figures: BTreeMap<Name, Figure>,
    /// The raw limits: name, value, unit.
    pub limits: BTreeMap<&'static str, (f64, &'static str)>,
    /// What has no target of its own: name, value, unit.
    pub also: BTreeMap<&'static str, (f64, &'static str)>,
}

impl Measured {
    /// Takes over what else was measured.
    pub fn extend(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.limits.extend(other.limits);
        self.also.extend(other.also);
    }
    /// Notes a raw limit.
    pub fn limit(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.limits.insert(name, (value, unit));
    }
    /// Notes what a run shows beside its figures.
    pub fn also(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.also.insert(name, (value, unit));
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
