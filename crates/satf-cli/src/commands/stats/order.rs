//! `satf stats --order-matters`: does order help to predict what comes next?

use satf::evaluate::{OrderCheck, OrderEffect, OrderOptions, check_order};
use satf::experiment::holdout_scheme;
use satf::interactions::Interactions;
use satf::prepare::SplitScheme;
use serde_json::{Value, json};

use crate::args::OrderArguments;
use crate::commands::protocol::tell;
use crate::table;
use crate::terminal::Terminal;

/// A check and how the log was cut for it.
pub(super) struct OrderReport {
    outcome: OrderCheck,
    scheme: SplitScheme,
    seed: u64,
}

impl OrderReport {
    pub(super) fn run(
        log: &Interactions,
        arguments: &OrderArguments,
        terminal: &Terminal,
    ) -> anyhow::Result<Self> {
        let mut warnings = Vec::new();
        let scheme = holdout_scheme(log, arguments.split.map(Into::into), arguments.test, &mut warnings);
        tell(&warnings);
        let scheme = scheme?;
        let seed = arguments.seed.unwrap_or(0);
        let mut options = OrderOptions { seed, ..OrderOptions::new(scheme) };
        if let Some(repetitions) = arguments.repetitions {
            options.repetitions = repetitions;
        }
        let outcome = check_order(log, &options, terminal)?;
        Ok(OrderReport { outcome, scheme, seed })
    }

    pub(super) fn to_json(&self) -> Value {
        let outcome = &self.outcome;
        let (split, test) = match self.scheme {
            SplitScheme::Holdout { test } | SplitScheme::Calendar { test, .. } => {
                ("calendar", Some(test.to_string()))
            }
            SplitScheme::LeaveOneOut => ("leave-one-out", None),
        };
        let models = |models: &[OrderEffect]| models.iter().map(effect_to_json).collect::<Value>();
        let against = &outcome.against_blind;
        json!({
            "verdict": outcome.verdict,
            "sentences": outcome.sentences(),
            "metric": outcome.metric,
            "events": outcome.events,
            "repetitions": outcome.repetitions,
            "split": split,
            "test": test,
            "seed": self.seed,
            "models": models(&outcome.models),
            "against_model_without_order": {
                "best": against.second,
                "without_order": against.first,
                "difference": against.difference,
                "interval": against.interval,
                "p_value": against.p_value,
            },
            "file_order": outcome.file_order.as_ref().map(|file| {
                json!({ "tied_share": file.tied_share, "models": models(&file.models) })
            }),
        })
    }

    /// What was done, the figures, and what they say.
    pub(super) fn describe(&self) -> String {
        let events = match self.scheme {
            SplitScheme::Holdout { test } | SplitScheme::Calendar { test, .. } => {
                format!("{} of the newest {test}", table::counted(self.outcome.events, "event"))
            }
            SplitScheme::LeaveOneOut => {
                format!("{}, the last of each user", table::counted(self.outcome.events, "event"))
            }
        };
        let metric = self.outcome.metric;
        let header = ["model", "knows order", "real order", "shuffled", "difference", "95 % interval", "p"];
        let mut shown = table::with_header(&header);
        for model in &self.outcome.models {
            shown.add_row(row(model, ""));
        }
        for model in self.outcome.file_order.iter().flat_map(|file| &file.models) {
            shown.add_row(row(model, ", ties as in the file"));
        }
        let times = match self.outcome.repetitions {
            1 => "shuffled once".to_owned(),
            repetitions => format!("mean of {repetitions} shuffles"),
        };
        format!(
            "Does order matter? {metric} of {events}, {times}, models as they come, untuned\n{shown}\n\n{}",
            self.outcome.sentences().join("\n")
        )
    }
}

fn effect_to_json(model: &OrderEffect) -> Value {
    json!({
        "model": model.model,
        "knows_order": model.knows_order,
        "real": model.effect.second,
        "shuffled": model.effect.first,
        "difference": model.effect.difference,
        "gain": model.gain(),
        "interval": model.effect.interval,
        "p_value": model.effect.p_value,
    })
}

fn row(model: &OrderEffect, tie_order: &str) -> [String; 7] {
    let effect = &model.effect;
    let gain = model.gain().map(|gain| format!(" ({:+.0} %)", 100.0 * gain)).unwrap_or_default();
    [
        format!("{}{tie_order}", model.model),
        if model.knows_order { "yes" } else { "no" }.to_owned(),
        format!("{:.4}", effect.second),
        format!("{:.4}", effect.first),
        format!("{:+.4}{gain}", effect.difference),
        table::interval(effect.interval),
        format!("{:.4}", effect.p_value),
    ]
}
