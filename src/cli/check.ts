import { inFileOrder } from "../config/report.ts";
import { rehearse } from "../gateway/rehearse.ts";
import { plural } from "../lib/text.ts";
import { type CliCommand, CONFIG, EXIT } from "./command.ts";
import { configFile, load, nameOf, quietLog } from "./loading.ts";
import { counted, errorsIn, near, reported, sayLeftOut } from "./report.ts";
import { paint, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "check [options]",
  about:
    "Finds every mistake in gateway.yaml at once: words, values, variables, plugins and their setup. Sends nothing\n" +
    "and starts nothing. Exits with 1 when there are errors.",
  options: {
    ...CONFIG,
    "no-setup": { about: "do not set plugins up: for machines without the secrets' services" },
    strict: { about: "exit with 1 for warnings too" },
  },
  examples: ["tollgate check", "tollgate check -c staging.yaml --strict --json"],
  async run(given) {
    const file = configFile(given);
    const loaded = await load(file);
    // The operator cannot mend the file that ships with the package.
    let problems = loaded.problems.filter((p) => file !== undefined || p.severity !== "note");
    const { config } = loaded;
    if (config && !given.has("no-setup")) {
      const rehearsed = await rehearse({ loaded, config, ...quietLog() });
      const found = "problems" in rehearsed ? rehearsed.problems : rehearsed.warnings;
      problems = [...inFileOrder([...problems, ...found], loaded.sources)];
      if (!("problems" in rehearsed)) await rehearsed[Symbol.asyncDispose]();
    }
    const bad = problems.some(({ severity }) => given.has("strict") && severity === "warning");
    const leftOut = [...(config?.unmounted ?? [])].map(([provider, why]) => ({ provider, why }));
    const ok = errorsIn(problems) === 0 && !bad;
    if (given.json) sayJson({ ok, file: file ?? null, problems, leftOut });
    else {
      if (problems.length > 0) say(`${reported(problems, paint)}\n`);
      const name = file === undefined ? nameOf(file) : near(file);
      const found = counted(problems);
      if (!config || !ok) say(`${name}: ${found}`);
      else {
        const parts = [
          plural(config.providers.size, "provider"),
          plural(config.frontends.length, "frontend"),
          plural(config.models.size, "model name"),
        ];
        say(`${name} is fine: ${parts.join(", ")}${found === "" ? "" : ` (${found})`}`);
        if (leftOut.length > 0) say(`left out: ${sayLeftOut(leftOut)}`);
      }
    }
    return ok ? EXIT.fine : EXIT.failed;
  },
};
