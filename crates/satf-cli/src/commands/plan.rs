//! `satf plan`: what training will cost, before anything runs.

use satf::evaluate::SeenPolicy;
use satf::experiment::SharedKeys;
use satf::models::Registry;
use satf::models::gemm_rate;
use serde_json::{Value, json};

use super::experiment::Failure;
use super::files::Files;
use super::protocol;
use super::settings::{configure, given_keys};
use crate::args::PlanArguments;
use crate::misuse::misuse;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &PlanArguments, registry: &Registry, terminal: &Terminal) -> anyhow::Result<()> {
    Files::of_log(&arguments.log).reading("--config", arguments.models.config.as_ref()).check_distinct()?;
    if arguments.protocol.seen != SeenPolicy::default() {
        misuse!(
            "--seen {}: a plan is of training, and nothing is ranked; hint: leave it out",
            arguments.protocol.seen
        );
    }
    let given = given_keys(&arguments.models, arguments.protocol.seed, arguments.protocol.max_len)?;
    let protocol = protocol::resolve(&arguments.protocol, &arguments.models.preset, registry)?;
    let shared = SharedKeys { memory_bytes: arguments.models.memory, ..protocol.shared_keys() };
    let choices = configure(&arguments.models, given, shared, registry)?;
    let (log, _) = super::read(&arguments.log, terminal)?;
    let cut = protocol::cut(&protocol, &log)?;
    terminal.finish();
    let rate = gemm_rate();

    let mut reports = Vec::new();
    let mut text = String::new();
    let mut failures = Vec::new();
    let several = choices.len() > 1;
    for choice in &choices {
        let plan = match choice.configured.learner.plan(&cut.partition.train) {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                tracing::warn!("{} does not plan ahead", choice.label);
                continue;
            }
            Err(error) => {
                let failure = Failure::new(choice, error);
                if several {
                    failure.tell();
                }
                reports.push(Value::Object(failure.to_json()));
                failures.push(failure);
                continue;
            }
        };
        let double = choice.configured.configuration["precision"] == "double";
        let gflops = if double { rate.double } else { rate.single };
        let mut shown = table::with_header(&["mode", "way", "operations", "memory", "others considered"]);
        for mode in &plan.modes {
            let others: Vec<String> = mode
                .considered
                .iter()
                .filter(|cost| cost.way != mode.way)
                .map(|cost| {
                    let way = json!(cost.way);
                    let memory = table::bytes(cost.memory_bytes);
                    format!("{}: {:.2e}, {memory}", way.as_str().unwrap_or_default(), cost.operations)
                })
                .collect();
            shown.add_row_of_lines([
                mode.mode.to_owned(),
                json!(mode.way).as_str().unwrap_or_default().to_owned(),
                format!("{:.2e}", mode.operations),
                table::bytes(mode.memory_bytes),
                others.join("\n"),
            ]);
        }
        text.push_str(&format!(
            "{}: {:.2e} operations and {} at the peak; about {:.1} s per iteration at {gflops:.0} GFLOP/s, this machine's \
             rate of dense products\n{shown}\n\n",
            choice.label,
            plan.operations,
            table::bytes(plan.memory_bytes),
            plan.expected_seconds(gflops),
        ));
        let mut report = json!(plan);
        report["model"] = json!(choice.entry.name);
        if choice.label != choice.entry.name {
            report["preset"] = json!(choice.label);
        }
        report["gemm_gflops"] = json!(gflops);
        report["expected_seconds"] = json!(plan.expected_seconds(gflops));
        reports.push(report);
    }
    if reports.is_empty() {
        anyhow::bail!("none of these models plans ahead; ga-satf and la-satf do");
    }
    if arguments.json {
        table::print_json(&json!({ "plans": reports }))?;
    } else if !text.is_empty() {
        table::print(text.trim_end())?;
    }
    Failure::end(failures, several)
}
