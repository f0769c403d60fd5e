//! Moving as little as an even placement allows.
//!
//! Evening out goes from the fullest worker to the emptiest one, which can move a replica more than it must. An even
//! placement has the fewest moves exactly when no round of moves saves one: a round takes a shard from each of some
//! workers to the next one, and from the last to the first, or starts at a worker that has one more than others and
//! ends at one that has one less. So rounds are looked for, as negative cycles, until there are none.

use std::collections::{BTreeMap, BTreeSet};

use super::Plan;
use crate::id::NodeId;

/// A worker, or what lies between the fuller and the emptier ones.
type Place = Option<NodeId>;

/// A shard that can go from one worker to another; none from or to what lies between.
struct Step {
    from: Place,
    to: Place,
    shard: Option<usize>,
    /// 1 for a replica that leaves where it was, 0, or -1 for one that goes back there.
    cost: i32,
}

impl Plan {
    /// Looks for rounds that save a move, and makes them.
    pub(super) fn save_moves(&mut self, previous: &[Vec<NodeId>]) {
        let pairs = previous.iter().enumerate().take(self.shards.len());
        let pairs = pairs.flat_map(|(shard, workers)| workers.iter().map(move |worker| (shard, *worker)));
        let was: BTreeSet<(usize, NodeId)> = pairs.filter(|(_, worker)| self.held.contains_key(worker)).collect();
        let must = self.moves_at_least(&was);
        while self.new.values().map(BTreeSet::len).sum::<usize>() > must {
            let steps = self.steps(&was);
            let Some(round) = negative_cycle(&steps) else { return };
            for step in round {
                let (Some(from), Some(to), Some(shard)) = (step.from, step.to, step.shard) else { continue };
                self.remove(shard, from);
                if was.contains(&(shard, to)) {
                    self.add(shard, to);
                } else {
                    self.add_new(shard, to);
                }
            }
        }
    }

    /// A number of moves that is often met, and never beaten: each worker keeps at most what it had, and at most its
    /// even part, the larger parts going to those that had most.
    fn moves_at_least(&self, was: &BTreeSet<(usize, NodeId)>) -> usize {
        let mut had: BTreeMap<NodeId, usize> = self.held.keys().map(|worker| (*worker, 0)).collect();
        for (_, worker) in was {
            had.entry(*worker).and_modify(|count| *count = count.saturating_add(1));
        }
        let mut had: Vec<usize> = had.into_values().collect();
        let mut parts: Vec<usize> = self.held.values().map(BTreeSet::len).collect();
        had.sort_unstable();
        parts.sort_unstable();
        had.into_iter().zip(parts).map(|(had, part)| part.saturating_sub(had)).sum()
    }

    /// The cheapest step between each two workers, and those that leave all even.
    fn steps(&self, was: &BTreeSet<(usize, NodeId)>) -> Vec<Step> {
        let mut steps = Vec::new();
        for (from, held) in &self.held {
            for (to, to_held) in self.held.iter().filter(|(to, _)| *to != from) {
                let cost =
                    |shard: usize| i32::from(!was.contains(&(shard, *to))) - i32::from(!was.contains(&(shard, *from)));
                let free = held.difference(to_held).map(|shard| (cost(*shard), *shard));
                if let Some((cost, shard)) = free.min() {
                    steps.push(Step { from: Some(*from), to: Some(*to), shard: Some(shard), cost });
                }
            }
        }
        let least = self.held.values().map(BTreeSet::len).min().unwrap_or(0);
        for (worker, held) in &self.held {
            let (worker, shard, cost) = (Some(*worker), None, 0);
            steps.push(match held.len() > least {
                true => Step { from: None, to: worker, shard, cost },
                false => Step { from: worker, to: None, shard, cost },
            });
        }
        steps
    }
}

/// A round of steps that costs less than nothing, after Bellman and Ford.
fn negative_cycle(steps: &[Step]) -> Option<Vec<&Step>> {
    let places: BTreeSet<Place> = steps.iter().flat_map(|step| [step.from, step.to]).collect();
    let mut costs: BTreeMap<Place, i32> = places.iter().map(|place| (*place, 0)).collect();
    let mut came_by: BTreeMap<Place, &Step> = BTreeMap::new();
    let mut cheaper = None;
    for _ in 0..=places.len() {
        cheaper = None;
        for step in steps {
            let cost = costs.get(&step.from)?.saturating_add(step.cost);
            let known = costs.get_mut(&step.to)?;
            if cost < *known {
                *known = cost;
                came_by.insert(step.to, step);
                cheaper = Some(step.to);
            }
        }
        cheaper?;
    }
    // Back far enough to be in the round, and then once around.
    let mut at = cheaper?;
    for _ in 0..places.len() {
        at = came_by.get(&at)?.from;
    }
    let start = at;
    let mut round = Vec::new();
    loop {
        let step = came_by.get(&at)?;
        round.push(*step);
        at = step.from;
        if at == start {
            return Some(round);
        }
    }
}
