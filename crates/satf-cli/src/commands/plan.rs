//! `satf plan`: what training will cost, before anything runs.

use satf::linalg::gemm_rate;
use serde_json::{Value, json};

use super::protocol::Protocol;
use super::settings::{SharedKeys, configure};
use crate::args::PlanArguments;
use crate::table;
use crate::terminal::Terminal;

pub(crate) fn run(arguments: &PlanArguments, terminal: &Terminal) -> anyhow::Result<()> {
    let protocol = Protocol::resolve(&arguments.protocol, &arguments.models.preset)?;
    let shared =
        SharedKeys { seed: protocol.seed, max_len: protocol.max_len, memory_bytes: arguments.models.memory };
    let choices = configure(&arguments.models, shared)?;
    let (log, _) = super::read(&arguments.log, terminal)?;
    let cut = protocol.cut(&log)?;
    terminal.finish();
    let rate = gemm_rate();

    let mut reports = Vec::new();
    let mut text = String::new();
    for choice in &choices {
        let Some(plan) = choice.configured.learner.plan(&cut.partition.train)? else {
            tracing::warn!("{} does not plan ahead", choice.label);
            continue;
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
                    let memory = size(cost.memory_bytes);
                    format!("{}: {:.2e}, {memory}", way.as_str().unwrap_or_default(), cost.operations)
                })
                .collect();
            shown.add_row([
                mode.mode.to_owned(),
                json!(mode.way).as_str().unwrap_or_default().to_owned(),
                format!("{:.2e}", mode.operations),
                size(mode.memory_bytes),
                others.join("\n"),
            ]);
        }
        text.push_str(&format!(
            "{}: {:.2e} operations and {} at the peak; about {:.1} s an iteration at {gflops:.0} GFLOP/s, this machine's \
             rate of dense products\n{shown}\n\n",
            choice.label,
            plan.operations,
            size(plan.memory_bytes),
            plan.expected_seconds(gflops),
        ));
        let mut report = json!(plan);
        report["model"] = json!(choice.label);
        report["gemm_gflops"] = json!(gflops);
        report["expected_seconds"] = json!(plan.expected_seconds(gflops));
        reports.push(report);
    }
    if reports.is_empty() {
        anyhow::bail!("none of these models plans ahead; ga-satf and la-satf do");
    }
    if arguments.json {
        let report = if reports.len() == 1 { reports.remove(0) } else { Value::Array(reports) };
        return table::print_json(&report);
    }
    table::print(text.trim_end())
}

/// `1.4 GiB`
fn size(bytes: u64) -> String {
    let (gib, mib) = (bytes as f64 / f64::from(1 << 30), bytes as f64 / f64::from(1 << 20));
    if gib >= 1.0 { format!("{gib:.2} GiB") } else { format!("{mib:.0} MiB") }
}
