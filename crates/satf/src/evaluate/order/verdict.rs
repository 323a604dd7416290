//! What a check of order comes to, in a word and in sentences.

use std::fmt;

use serde::Serialize;

use super::super::compare::Difference;
use super::{FileOrder, OrderCheck, OrderEffect};

/// A p-value below this is as good as sure.
const SURE: f64 = 0.01;
/// A p-value below this is a sign.
const LIKELY: f64 = 0.05;
/// Gains from this share on are worth a more complicated model.
const CLEAR_GAIN: f64 = 0.05;

/// Whether order helps to predict what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The gain is at least 5 % and unlikely to be chance.
    HelpsClearly,
    /// There is a gain, but it is small, or not quite sure.
    HelpsALittle,
    /// A gain that matters is neither seen nor ruled out: there are too few events.
    CannotBeTold,
    /// There is no gain that matters.
    DoesNotHelp,
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Verdict::HelpsClearly => "order helps clearly",
            Verdict::HelpsALittle => "order helps a little",
            Verdict::CannotBeTold => "it is unclear whether order helps",
            Verdict::DoesNotHelp => "order does not help",
        })
    }
}

impl Verdict {
    /// Judges the first model. As it was chosen among those that know order, its p-value counts as many times as there are of
    /// them.
    pub(super) fn of(models: &[OrderEffect]) -> Self {
        let Some(best) = models.first() else { return Verdict::CannotBeTold };
        let chosen_from = models.iter().filter(|model| model.knows_order).count() as f64;
        let p_value = best.effect.p_value * chosen_from;
        let gain = best.gain().unwrap_or(if best.effect.difference > 0.0 { f64::INFINITY } else { 0.0 });
        let Some([low, high]) = best.effect.interval else { return Verdict::CannotBeTold };
        let largest = share(high, best.effect.first).unwrap_or(f64::INFINITY);
        if best.effect.difference > 0.0 && low > 0.0 && p_value < LIKELY {
            return if p_value < SURE && gain >= CLEAR_GAIN {
                Verdict::HelpsClearly
            } else {
                Verdict::HelpsALittle
            };
        }
        if largest < CLEAR_GAIN { Verdict::DoesNotHelp } else { Verdict::CannotBeTold }
    }
}

/// A part of a whole; `None` if the whole is 0.
pub(super) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

impl OrderCheck {
    /// The outcome in sentences: whether order helps, what ties have to do with it, and how a model without order does.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![self.about_order()];
        sentences.extend(self.file_order.as_ref().and_then(|file| self.about_ties(file)));
        sentences.extend(self.about_blind());
        sentences
    }

    fn about_order(&self) -> String {
        let best = self.best();
        let scores = format!(
            "{} reaches {} {:.4} on real histories and {:.4} on shuffled ones ({})",
            best.model,
            self.metric,
            best.effect.second,
            best.effect.first,
            how_sure(&best.effect)
        );
        match self.verdict {
            Verdict::HelpsClearly => format!("Order helps clearly: {scores}."),
            Verdict::HelpsALittle => format!("Order helps a little: {scores}."),
            Verdict::CannotBeTold => format!(
                "No evidence that order helps, but too few events to rule it out: {scores}. A longer test set would tell more."
            ),
            Verdict::DoesNotHelp => {
                format!(
                    "No evidence that order helps; a gain of {} or more is ruled out: {scores}.",
                    percent(CLEAR_GAIN)
                )
            }
        }
    }

    /// Ties in random order against ties in the order of the file, for the model to which that makes the largest difference.
    fn about_ties(&self, file: &FileOrder) -> Option<String> {
        let pairs = file.models.iter().filter_map(|seeming| {
            let drawn = self.models.iter().find(|drawn| drawn.model == seeming.model)?;
            // How much larger the gain seems, in units of the uncertainty of the two gains together.
            let half = |effect: &Difference| effect.interval.map(|[low, high]| 0.5 * (high - low));
            let noise = half(&drawn.effect)?.hypot(half(&seeming.effect)?).max(f64::MIN_POSITIVE);
            Some((drawn, seeming, (seeming.effect.difference - drawn.effect.difference) / noise))
        });
        // Without a difference to speak of, the first, which is the best.
        let (drawn, seeming, larger) =
            pairs.reduce(|most, next| if next.2.abs() > most.2.abs().max(1.0) { next } else { most })?;
        let gain = |effect: &OrderEffect| match effect.gain() {
            Some(gain) => format!("{:+.0} %", 100.0 * gain),
            None => format!("{:+.4}", effect.effect.difference),
        };
        let shown = format!(
            "{} ({:.4} against {:.4}) instead of {}",
            gain(seeming),
            seeming.effect.second,
            seeming.effect.first,
            gain(drawn)
        );
        let model = drawn.model;
        let compared = if larger > 1.0 && seeming.effect.difference > 0.0 {
            let from_file = 1.0 - drawn.effect.difference.max(0.0) / seeming.effect.difference;
            format!(
                "In the order of the file the gain of {model} would seem {shown}: {} of that comes from the order of rows in \
                 the file, which is that of events only if they were written down as they happened.",
                percent_near(from_file)
            )
        } else if larger < -1.0 {
            format!("In the order of the file the gain of {model} would seem smaller, {shown}.")
        } else {
            format!("In the order of the file the gain of {model} would be about the same, {shown}.")
        };
        Some(format!(
            "{} of the rows share user and time with another; their order is not known and was drawn at random. {compared}",
            percent_near(file.tied_share)
        ))
    }

    /// Whether order is worth it in the end.
    fn about_blind(&self) -> Option<String> {
        let (best, blind) = (self.best(), self.models.iter().find(|model| !model.knows_order)?);
        let difference = &self.against_blind;
        let scores = format!("{}, which knows no order, reaches {:.4}", blind.model, difference.first);
        let sure = difference.p_value < SURE;
        let helps = matches!(self.verdict, Verdict::HelpsClearly | Verdict::HelpsALittle);
        Some(if sure && difference.difference > 0.0 {
            let than = share(difference.difference, difference.first)
                .map(|share| format!(" by {}", percent(share)))
                .unwrap_or_default();
            let warning = if helps { "" } else { ", though not for its order" };
            format!("{scores}: {} is better{than}{warning}.", best.model)
        } else if sure {
            let though = if helps { "order helps, but " } else { "" };
            format!("{scores}: {though}a model without it does better here than {}.", best.model)
        } else {
            format!("{scores}: about as much as {}.", best.model)
        })
    }
}

/// `+28 %, 95 % interval +21 to +35 %, p < .001`
fn how_sure(effect: &Difference) -> String {
    let share = |part: f64| share(part, effect.first);
    let gain = match (share(effect.difference), effect.interval) {
        (Some(gain), Some([low, high])) => {
            let [low, high] = [low, high].map(|end| 100.0 * share(end).unwrap_or_default());
            format!("{:+.0} %, 95 % interval {low:+.0} to {high:+.0} %", 100.0 * gain)
        }
        (Some(gain), None) => format!("{:+.0} %, of one user", 100.0 * gain),
        (None, Some([low, high])) => {
            format!("{:+.4}, 95 % interval {low:+.4} to {high:+.4}", effect.difference)
        }
        (None, None) => format!("{:+.4}, of one user", effect.difference),
    };
    let p_value = match effect.p_value {
        p_value if p_value < 0.001 => "p < .001".to_owned(),
        p_value => format!("p = {p_value:.3}"),
    };
    format!("{gain}, {p_value}")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// The same, without saying that something is nothing or everything.
fn percent_near(share: f64) -> String {
    match 100.0 * share {
        percent if percent > 0.0 && percent < 1.0 => "less than 1 %".to_owned(),
        percent if percent < 100.0 && percent > 99.0 => "more than 99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::METRIC;
    use super::*;

    fn difference(first: f64, second: f64, half: f64, p_value: f64) -> Difference {
        let difference = second - first;
        let interval = Some([difference - half, difference + half]);
        Difference { first, second, difference, interval, p_value }
    }

    fn effect(model: &'static str, effect: Difference) -> OrderEffect {
        OrderEffect { model, knows_order: model != "pure-svd", effect }
    }

    fn verdict(first: f64, second: f64, half: f64, p_value: f64) -> Verdict {
        let flat = difference(0.05, 0.05, 0.001, 1.0);
        Verdict::of(&[
            effect("transitions", difference(first, second, half, p_value)),
            effect("la-satf", flat.clone()),
            effect("pure-svd", flat),
        ])
    }

    #[test]
    fn verdicts_need_size_and_certainty() {
        assert_eq!(verdict(0.05, 0.06, 0.003, 1e-4), Verdict::HelpsClearly);
        assert_eq!(verdict(0.05, 0.052, 0.001, 1e-4), Verdict::HelpsALittle, "sure but small");
        assert_eq!(verdict(0.05, 0.06, 0.009, 0.02), Verdict::HelpsALittle, "large but not quite sure");
        assert_eq!(verdict(0.05, 0.06, 0.0099, 0.04), Verdict::CannotBeTold, "the better of two by chance");
        assert_eq!(verdict(0.05, 0.052, 0.006, 0.4), Verdict::CannotBeTold);
        assert_eq!(verdict(0.05, 0.0501, 0.001, 0.8), Verdict::DoesNotHelp);
        assert_eq!(verdict(0.05, 0.04, 0.003, 1e-4), Verdict::DoesNotHelp, "order misleads");
        assert_eq!(verdict(0.0, 0.0, 0.0, 1.0), Verdict::CannotBeTold, "nothing was ever hit");
        assert_eq!(verdict(0.0, 0.02, 0.01, 1e-4), Verdict::HelpsClearly);
        let of_one_user = Difference { interval: None, ..difference(0.05, 0.06, 0.0, 1.0) };
        assert_eq!(how_sure(&of_one_user), "+20 %, of one user, p = 1.000");
        assert_eq!(Verdict::of(&[effect("transitions", of_one_user)]), Verdict::CannotBeTold);
    }

    fn check(real: f64, verdict: Verdict, file: Option<f64>, blind: f64) -> OrderCheck {
        let models = |real: f64| vec![effect("transitions", difference(0.048, real, 0.002, 1e-4))];
        OrderCheck {
            metric: METRIC,
            events: 4964,
            repetitions: 3,
            models: [models(real), vec![effect("pure-svd", difference(blind, blind, 0.0, 1.0))]].concat(),
            against_blind: difference(
                blind,
                real,
                0.002,
                if (real - blind).abs() > 0.002 { 1e-4 } else { 0.5 },
            ),
            file_order: file.map(|file| FileOrder { tied_share: 0.57, models: models(file) }),
            verdict,
        }
    }

    #[test]
    fn sentences_say_what_was_found() {
        let said = check(0.061, Verdict::HelpsClearly, Some(0.083), 0.046).sentences();
        assert_eq!(
            said[0],
            "Order helps clearly: transitions reaches NDCG@10 0.0610 on real histories and 0.0480 on shuffled ones (+27 %, \
             95 % interval +23 to +31 %, p < .001)."
        );
        assert!(said[1].starts_with("57 % of the rows share user and time"), "{}", said[1]);
        assert!(
            said[1].contains(
                "of transitions would seem +73 % (0.0830 against 0.0480) instead of +27 %: 63 % of"
            ),
            "{}",
            said[1]
        );
        assert_eq!(said[2], "pure-svd, which knows no order, reaches 0.0460: transitions is better by 33 %.");

        let said = check(0.0481, Verdict::DoesNotHelp, Some(0.0482), 0.06).sentences();
        assert!(
            said[0].starts_with("No evidence that order helps; a gain of 5 % or more is ruled out"),
            "{}",
            said[0]
        );
        assert!(said[1].contains("about the same"), "{}", said[1]);
        assert!(
            said[2].ends_with("reaches 0.0600: a model without it does better here than transitions."),
            "{}",
            said[2]
        );

        let said = check(0.05, Verdict::CannotBeTold, None, 0.05).sentences();
        assert_eq!(said.len(), 2);
        assert!(said[0].starts_with("No evidence that order helps, but too few events"), "{}", said[0]);
        assert!(said[1].ends_with("about as much as transitions."), "{}", said[1]);
    }
}
