//! A model of one's own: what most often came within a few places of the newest item. It is judged like all others, found by its name
//! and stored under it.

#![allow(clippy::print_stdout)]

use satf::evaluate::{EvaluateOptions, evaluate};
use satf::generate::{ShopOptions, shop};
use satf::models::{
    Fault, Learner, ModelEntry, ModelError, Recommender, Shares, StoredTensors, Tensor, TensorError,
    TrainingMonitor, TransitionsConfig, UserData,
};
use satf::prepare::{Split, SplitScheme, TiePolicy, Timeline};
use satf::{FitOptions, Histories, History, ItemIndex, Model, Registry, Request, UserIndex};
use serde::{Deserialize, Serialize};

/// What can be configured. `Default` and serde make it a model that is found by name, and its fields the keys of that model.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SuccessorsConfig {
    /// How many places after an item count as after it.
    reach: usize,
}

impl Default for SuccessorsConfig {
    fn default() -> Self {
        SuccessorsConfig { reach: 1 }
    }
}

/// What was learned: how often item `j` came after item `i`, row after row.
struct Successors {
    num_items: usize,
    counts: Vec<f32>,
}

impl Learner for SuccessorsConfig {
    fn name(&self) -> &'static str {
        "successors"
    }

    fn check(&self) -> Result<(), ModelError> {
        if self.reach > 0 {
            return Ok(());
        }
        let faults = vec![Fault::new("reach", self.reach, "at least 1")];
        Err(ModelError::Configuration { model: self.name(), faults })
    }

    fn fit(
        &self,
        histories: &Histories,
        _monitor: &dyn TrainingMonitor,
    ) -> Result<Box<dyn Recommender>, ModelError> {
        let num_items = histories.num_items();
        let mut counts = vec![0.0; num_items * num_items];
        for user in 0..histories.num_users() as u32 {
            let items = histories.items_of(UserIndex(user));
            for (at, item) in items.iter().enumerate() {
                for next in items[at + 1..].iter().take(self.reach) {
                    counts[item.get() * num_items + next.get()] += 1.0;
                }
            }
        }
        Ok(Box::new(Successors { num_items, counts }))
    }

    fn restore(&self, tensors: &StoredTensors<'_>) -> Result<Box<dyn Recommender>, TensorError> {
        let num_items = tensors.num_items();
        let counts = tensors.values("counts", &[Some(num_items), Some(num_items)])?;
        Ok(Box::new(Successors { num_items, counts }))
    }
}

impl Successors {
    /// How often each item came after this one.
    fn after(&self, item: ItemIndex) -> &[f32] {
        &self.counts[item.get() * self.num_items..][..self.num_items]
    }
}

impl Recommender for Successors {
    fn num_items(&self) -> usize {
        self.num_items
    }

    fn score_batch(&self, histories: &[History<'_>], scores: &mut [f32]) {
        for (history, scores) in histories.iter().zip(scores.chunks_exact_mut(self.num_items)) {
            match history.last() {
                Some(&newest) => scores.copy_from_slice(self.after(newest)),
                None => scores.fill(0.0),
            }
        }
    }

    fn shares(&self, history: History<'_>, item: ItemIndex) -> Shares {
        let mut of_history = vec![0.0; history.len()];
        if let (Some(share), Some(&newest)) = (of_history.last_mut(), history.last()) {
            *share = f64::from(self.after(newest)[item.get()]);
        }
        Shares { of_history, base: 0.0 }
    }

    fn tensors(&self) -> Vec<Tensor<'_>> {
        vec![Tensor::new("counts", &[self.num_items, self.num_items], &self.counts)]
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(self.counts.as_slice())
    }

    fn user_data(&self) -> UserData {
        UserData::None
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log = shop(&ShopOptions { users: 500, ..ShopOptions::default() })?;
    let scheme = SplitScheme::Holdout { test: "1month".parse()? };
    let partition = Split::new(Timeline::new(&log, TiePolicy::Shuffle, 0), scheme)?.test()?;
    let models: [&dyn Learner; 2] = [&SuccessorsConfig::default(), &TransitionsConfig::default()];
    for learner in models {
        let model = learner.fit(&partition.train, &())?;
        let num_items = partition.train.num_items();
        let outcome = evaluate(&*model, &partition.holdout, num_items, &EvaluateOptions::default(), &())?;
        let ndcg = outcome.estimate("NDCG@10".parse()?);
        println!("{:12} NDCG@10 {:.3} ± {:.3}", learner.name(), ndcg.value, ndcg.stderr.unwrap_or_default());
    }

    // By its name: `satf` knows it once a registry does, and whoever loads the file gives the same registry.
    let registry = Registry::default()
        .with(ModelEntry::new::<SuccessorsConfig>("successors", "what came within a few places"));
    let options = FitOptions { registry: registry.clone(), ..FitOptions::new("successors").set("reach", 2) };
    let model = Model::fit_with(&log, &options, &())?;
    let path = std::env::temp_dir().join(format!("own-model-{}.satf", std::process::id()));
    model.save(&path)?;
    let loaded = Model::load_with(&path, &registry)?;
    std::fs::remove_file(&path)?;
    assert_eq!(loaded.manifest().configuration["reach"], 2);
    let history = loaded.history(["laptop"]);
    let next = loaded.recommend(&history, &Request::new(3))?;
    assert_eq!(next, model.recommend(&history, &Request::new(3))?);
    println!("after a laptop: {}", next.items[0].item);
    Ok(())
}
