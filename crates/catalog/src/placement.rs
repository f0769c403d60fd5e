//! Where shard replicas go: never two of a shard on one worker, as many on each worker as on any other (leaders, and
//! all), and when workers come or go, as few moved as that allows (`reference/hologres.md` §0, §6.1).

mod saving;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::id::NodeId;

/// Places the replicas of shards on workers: one list a shard, the leader first.
///
/// Each worker gets as many leaders as any other, or one more; and as many replicas. When there are fewer workers than
/// `replica_count`, each shard is on all of them. `previous` is the placement so far, one list a shard, or
/// nothing: what can stay stays, and a leader that is lost is followed by a worker that held a replica already.
pub fn place(shard_count: u32, replica_count: u32, workers: &[NodeId], previous: &[Vec<NodeId>]) -> Vec<Vec<NodeId>> {
    let workers: BTreeSet<NodeId> = workers.iter().copied().collect();
    let replica_count = usize::try_from(replica_count).unwrap_or(usize::MAX).min(workers.len());
    let mut plan = Plan::new(shard_count, &workers);
    if previous.iter().flatten().any(|worker| workers.contains(worker)) {
        plan.keep(previous, &workers, replica_count);
    } else {
        plan.lay_out(replica_count);
    }
    plan.fill(replica_count);
    plan.even_out_replicas();
    plan.save_moves(previous);
    plan.even_out_leaders();
    plan.shards
}

/// A placement in the making.
struct Plan {
    /// The workers of each shard, the leader first.
    shards: Vec<Vec<NodeId>>,
    /// Which shards each worker holds.
    held: BTreeMap<NodeId, BTreeSet<usize>>,
    /// Which of them it did not hold in the previous placement: they cost nothing to move again.
    new: BTreeMap<NodeId, BTreeSet<usize>>,
}

impl Plan {
    fn new(shard_count: u32, workers: &BTreeSet<NodeId>) -> Self {
        Self {
            shards: (0..shard_count).map(|_| Vec::new()).collect(),
            held: workers.iter().map(|worker| (*worker, BTreeSet::new())).collect(),
            new: workers.iter().map(|worker| (*worker, BTreeSet::new())).collect(),
        }
    }

    fn add(&mut self, shard: usize, worker: NodeId) {
        if let (Some(workers), Some(held)) = (self.shards.get_mut(shard), self.held.get_mut(&worker))
            && held.insert(shard)
        {
            workers.push(worker);
        }
    }

    fn remove(&mut self, shard: usize, worker: NodeId) {
        if let (Some(workers), Some(held)) = (self.shards.get_mut(shard), self.held.get_mut(&worker)) {
            held.remove(&shard);
            workers.retain(|other| *other != worker);
        }
        if let Some(new) = self.new.get_mut(&worker) {
            new.remove(&shard);
        }
    }

    /// Puts a replica where there was none of its shard in the previous placement.
    fn add_new(&mut self, shard: usize, worker: NodeId) {
        self.add(shard, worker);
        self.new.entry(worker).or_default().insert(shard);
    }

    fn is_new(&self, shard: usize, worker: NodeId) -> bool {
        self.new.get(&worker).is_some_and(|new| new.contains(&shard))
    }

    fn load(&self, worker: NodeId) -> usize {
        self.held.get(&worker).map_or(0, BTreeSet::len)
    }

    fn leader(&self, shard: usize) -> Option<NodeId> {
        self.shards.get(shard)?.first().copied()
    }

    /// The first placement: the leader of shard k on worker k, its followers on the next ones, around.
    fn lay_out(&mut self, replica_count: usize) {
        let workers: Vec<NodeId> = self.held.keys().copied().collect();
        for shard in 0..self.shards.len() {
            let around = workers.iter().cycle().skip(shard.checked_rem(workers.len()).unwrap_or(0));
            for worker in around.take(replica_count) {
                self.add_new(shard, *worker);
            }
        }
    }

    /// Takes over the previous placement as far as its workers are still there. A shard that has too many replicas
    /// loses followers, on the fullest workers first.
    fn keep(&mut self, previous: &[Vec<NodeId>], workers: &BTreeSet<NodeId>, replica_count: usize) {
        for (shard, before) in previous.iter().enumerate() {
            for worker in before.iter().filter(|worker| workers.contains(worker)) {
                self.add(shard, *worker);
            }
        }
        for shard in 0..self.shards.len() {
            while self.shards.get(shard).is_some_and(|workers| workers.len() > replica_count) {
                let followers = self.shards.get(shard).into_iter().flatten().skip(1);
                let Some(fullest) = followers.copied().max_by_key(|worker| self.load(*worker)) else { break };
                self.remove(shard, fullest);
            }
        }
    }

    /// Gives each shard the replicas that it lacks, on the emptiest workers first.
    fn fill(&mut self, replica_count: usize) {
        for shard in 0..self.shards.len() {
            while self.shards.get(shard).is_some_and(|workers| workers.len() < replica_count) {
                let free = self.held.iter().filter(|(_, held)| !held.contains(&shard));
                let Some((worker, _)) = free.min_by_key(|(_, held)| held.len()) else { break };
                let worker = *worker;
                self.add_new(shard, worker);
            }
        }
    }

    /// Moves replicas from the fullest worker to the emptiest one until they differ by one at most. The fullest holds
    /// more shards than the emptiest, so there is always one that can be moved.
    fn even_out_replicas(&mut self) {
        loop {
            let by_load = |worker: &NodeId| (self.load(*worker), *worker);
            let fullest =
                self.held.keys().copied().max_by_key(|worker| (self.load(*worker), std::cmp::Reverse(*worker)));
            let emptiest = self.held.keys().copied().min_by_key(by_load);
            let (Some(from), Some(to)) = (fullest, emptiest) else { return };
            if self.load(from) <= self.load(to).saturating_add(1) {
                return;
            }
            let Some(shard) = self.cheapest_move(from, to) else { return };
            let was_new = self.is_new(shard, from);
            let led = self.leader(shard) == Some(from);
            self.remove(shard, from);
            self.add_new(shard, to);
            // Still nobody's data: the newcomer takes the place of the newcomer.
            if was_new
                && led
                && let Some(workers) = self.shards.get_mut(shard)
            {
                workers.rotate_right(1);
            }
        }
    }

    /// The shard that is best moved: one that was just put there, else one that is only followed there, else any.
    fn cheapest_move(&self, from: NodeId, to: NodeId) -> Option<usize> {
        let (held, new, to_held) = (self.held.get(&from)?, self.new.get(&from)?, self.held.get(&to)?);
        let follows = |shard: &&usize| {
            let workers = self.shards.get(**shard);
            workers.is_some_and(|workers| workers.first() != Some(&from))
        };
        let has_followers = self.shards.first().is_some_and(|workers| workers.len() > 1);
        let newest = new.difference(to_held).next();
        let followed = || has_followers.then(|| held.difference(to_held).find(follows)).flatten();
        newest.or_else(followed).or_else(|| held.difference(to_held).next()).copied()
    }

    /// Passes leads on along chains of workers, from one that leads too much to one that leads at least two less,
    /// until there is no such chain. With even replicas that is when leaders are even: were each shard to give an
    /// equal part of its lead to each of its workers, all would have between the floor and the ceiling of the
    /// average, and so a whole division exists that has, too; and a division without such a chain is as even as any.
    fn even_out_leaders(&mut self) {
        let mut led: BTreeMap<NodeId, BTreeSet<usize>> =
            self.held.keys().map(|worker| (*worker, BTreeSet::new())).collect();
        for shard in 0..self.shards.len() {
            if let Some(shards) = self.leader(shard).and_then(|leader| led.get_mut(&leader)) {
                shards.insert(shard);
            }
        }
        while let Some(chain) = self.chain(&led) {
            for (from, shard, to) in chain {
                if let Some(workers) = self.shards.get_mut(shard)
                    && let Some(position) = workers.iter().position(|worker| *worker == to)
                {
                    workers.remove(position);
                    workers.insert(0, to);
                }
                led.entry(from).or_default().remove(&shard);
                led.entry(to).or_default().insert(shard);
            }
        }
    }

    /// A shortest chain of leads to pass on: from whom, of which shard, to whom. The fullest leaders are tried first.
    fn chain(&self, led: &BTreeMap<NodeId, BTreeSet<usize>>) -> Option<Vec<(NodeId, usize, NodeId)>> {
        let count = |worker: &NodeId| led.get(worker).map_or(0, BTreeSet::len);
        let least = led.values().map(BTreeSet::len).min()?;
        let mut sources: Vec<NodeId> =
            led.keys().copied().filter(|worker| count(worker) >= least.saturating_add(2)).collect();
        sources.sort_by_key(|worker| std::cmp::Reverse(count(worker)));
        sources.into_iter().find_map(|source| {
            let mut reached: BTreeMap<NodeId, (NodeId, usize)> = BTreeMap::new();
            let mut open = VecDeque::from([source]);
            while let Some(from) = open.pop_front() {
                for shard in led.get(&from).into_iter().flatten().copied() {
                    for to in self.shards.get(shard).into_iter().flatten().copied() {
                        if to == source || reached.contains_key(&to) {
                            continue;
                        }
                        reached.insert(to, (from, shard));
                        if count(&to).saturating_add(2) <= count(&source) {
                            return Some(backwards(&reached, source, to));
                        }
                        open.push_back(to);
                    }
                }
            }
            None
        })
    }
}

/// The steps that led from `source` to `to`.
fn backwards(reached: &BTreeMap<NodeId, (NodeId, usize)>, source: NodeId, to: NodeId) -> Vec<(NodeId, usize, NodeId)> {
    let mut steps = Vec::new();
    let mut at = to;
    while at != source
        && let Some((from, shard)) = reached.get(&at)
    {
        steps.push((*from, *shard, at));
        at = *from;
    }
    steps
}
