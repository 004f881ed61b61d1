//! What was kept lately, within bounds.

use std::borrow::Borrow;
use std::hash::Hash;
use std::mem::swap;

use foldhash::HashMap;

/// A map of at most `MOST` entries, half of which go at once when there are more: those that were put there first. So whatever
/// is at work stays, and an entry costs no more than in any map.
pub struct Recent<K, V, const MOST: usize> {
    newer: HashMap<K, V>,
    older: HashMap<K, V>,
}

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Self {
        Self { newer: HashMap::default(), older: HashMap::default() }
    }
}

impl<K: Eq + Hash, V, const MOST: usize> Recent<K, V, MOST> {
    /// What is kept under `key`.
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.newer.get(key).or_else(|| self.older.get(key))
    }

    /// What is kept under `key`, to be changed in its place.
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self.newer.get_mut(key) {
            None => self.older.get_mut(key),
            found => found,
        }
    }

    /// Keeps `value`, as the newest of all.
    pub fn put(&mut self, key: K, value: V) {
        if self.newer.len() >= MOST / 2 && !self.newer.contains_key(&key) {
            swap(&mut self.older, &mut self.newer);
            self.newer.clear();
        } else {
            self.older.remove(&key);
        }
        self.newer.insert(key, value);
    }

    /// Forgets what is kept under `key`, and returns it.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.newer.remove(key).or_else(|| self.older.remove(key))
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.newer.clear();
        self.older.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = Recent<u32, u32, 8>;

    fn kept(numbers: &Numbers) -> Vec<u32> {
        (0..100).filter(|key| numbers.get(key).is_some()).collect()
    }

    #[test]
    fn the_newest_stay_and_there_are_never_too_many() {
        let mut numbers = Numbers::default();
        for key in 0..100 {
            numbers.put(key, key);
            let all = kept(&numbers);
            assert!(all.len() <= 8, "{all:?}");
            let newest: Vec<u32> = (key.saturating_sub(3)..=key).collect();
            assert!(all.ends_with(&newest), "{all:?} after {key}");
        }
    }

    #[test]
    fn an_entry_is_kept_once_wherever_it_stands() {
        let mut numbers = Numbers::default();
        (0..5).for_each(|key| numbers.put(key, key));
        // Of the older ones now.
        assert_eq!((numbers.older.len(), numbers.newer.len()), (4, 1));
        numbers.put(0, 10);
        assert_eq!(numbers.get(&0), Some(&10));
        if let Some(one) = numbers.get_mut(&1) {
            *one = 11;
        }
        assert_eq!(numbers.get(&1), Some(&11));
        assert_eq!((numbers.remove(&0), numbers.remove(&0)), (Some(10), None));
        assert_eq!((numbers.remove(&1), numbers.remove(&1)), (Some(11), None));
        // A key that is there already takes no place from another.
        for value in 0..20 {
            numbers.put(4, value);
        }
        assert_eq!(kept(&numbers), [2, 3, 4]);
        numbers.clear();
        assert!(kept(&numbers).is_empty() && numbers.get_mut(&4).is_none());
    }
}
