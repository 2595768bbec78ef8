import { sortByFileOrder } from "../../../config/problem-report.ts";
import { startDryRun } from "../../../server/dry-run.ts";
import { plural } from "../../../lib/text.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { configFile, loadGatewayConfig, configName, quietLog } from "../../support/load-config.ts";
import {
  summarizeProblems,
  countErrors,
  shortPath,
  formatProblems,
  formatUnmounted,
} from "../../format/problem-report.ts";
import { paint, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "check [options]",
  description:
    "Checks gateway.yaml and reports all problems: keys, values, variables, plugins, " +
    "and their setup. It sends no requests and starts nothing. Exits with 1 if there " +
    "are errors.",
  options: {
    ...CONFIG_OPTIONS,
    "no-setup": {
      description: "Skip plugin setup, for machines without access to the secret stores",
    },
    strict: { description: "Exit with 1 for warnings too" },
  },
  examples: ["tollgate check", "tollgate check -c staging.yaml --strict --json"],
  async run(given) {
    const file = configFile(given);
    const loaded = await loadGatewayConfig(file);
    // Notes are hidden for the default config, because the operator cannot edit the file that ships
    // with the package.
    let problems = loaded.problems.filter((p) => file !== undefined || p.severity !== "note");
    const { config } = loaded;
    if (config && !given.has("no-setup")) {
      const rehearsed = await startDryRun({ loaded, config, ...quietLog() });
      const found = "problems" in rehearsed ? rehearsed.problems : rehearsed.warnings;
      problems = [...sortByFileOrder([...problems, ...found], loaded.sources)];
      if (!("problems" in rehearsed)) await rehearsed[Symbol.asyncDispose]();
    }
    const bad = problems.some(({ severity }) => given.has("strict") && severity === "warning");
    const unmountedProviders = [...(config?.unmountedProviders ?? [])].map(
      ([provider, reason]) => ({ provider, reason }),
    );
    const ok = countErrors(problems) === 0 && !bad;
    if (given.json) printJson({ ok, file: file ?? null, problems, unmountedProviders });
    else {
      if (problems.length > 0) print(`${formatProblems(problems, paint)}\n`);
      const name = file === undefined ? configName(file) : shortPath(file);
      const found = summarizeProblems(problems);
      if (!config || !ok) print(`${name}: ${found}`);
      else {
        const parts = [
          plural(config.providers.size, "provider"),
          plural(config.frontends.length, "frontend"),
          plural(config.models.size, "model name"),
        ];
        print(`${name} is valid: ${parts.join(", ")}${found === "" ? "" : ` (${found})`}`);
        if (unmountedProviders.length > 0)
          print(`not mounted: ${formatUnmounted(unmountedProviders)}`);
      }
    }
    return ok ? EXIT_CODES.ok : EXIT_CODES.failed;
  },
};
