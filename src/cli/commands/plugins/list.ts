import { fail } from "../../../model/error.ts";
import type { Needs } from "../../../plugin/plugin.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { configFile, loadGatewayConfig, configName } from "../../support/load-config.ts";
import { KINDS, knownPlugins } from "../../support/plugins.ts";
import { countErrors } from "../../format/problem-report.ts";
import { alignColumns, paint, printRemark, print, printJson } from "../../format/terminal.ts";

/**
 * Returns the needs that a plugin declares before it has options. `tollgate plugin <id>` shows the
 * needs with the configured options.
 */
function declaredNeeds(needs: Needs<never> | undefined): string[] {
  const fixedNeeds = (what: readonly string[] | Function | undefined, otherwise: string) =>
    typeof what === "function" ? [otherwise] : (what ?? []);
  return [
    ...fixedNeeds(needs?.origins, "addresses from its options"),
    ...(needs?.metadata ? ["metadata"] : []),
    ...(needs?.env ?? []),
    ...fixedNeeds(needs?.files, "files from its options"),
  ];
}

export const command: CliCommand = {
  usage: "list [frontend|middleware|observer|provider|store] [options]",
  description:
    "Lists the plugins that `use:` can name: built-in plugins, and plugins that " +
    "gateway.yaml adds. Declarations about third parties that were not verified are " +
    "marked.",
  options: CONFIG_OPTIONS,
  positionals: { least: 0, most: 1 },
  examples: ["tollgate list", "tollgate list provider --json"],
  async run(given) {
    const wanted = given.positionals[0]?.replace(/s$/, "");
    if (wanted !== undefined && !KINDS.some((kind) => kind === wanted))
      fail(
        "invalid",
        `Unknown plugin kind "${given.positionals[0]}". It must be one of ${KINDS.join(", ")}.`,
        {
          code: "usage",
        },
      );
    const file = configFile(given);
    const loaded = await loadGatewayConfig(file);
    const all = await knownPlugins(loaded);
    const plugins = all
      .filter(({ kind }) => wanted === undefined || kind === wanted)
      .map(({ kind, use, from, version, definition }) => ({
        kind,
        name: use,
        stability: definition.stability ?? "experimental",
        from,
        version,
        api: definition.api as number,
        summary: definition.summary,
        unverified: definition.unverified ?? [],
        needs: declaredNeeds(definition.needs),
      }));
    if (given.json) printJson({ plugins });
    else
      print(
        alignColumns(
          plugins.map(({ kind, name, stability, from, summary, unverified, needs }) => [
            paint("gray", kind),
            paint("bold", name),
            stability,
            from,
            [
              summary,
              needs.length > 0 && paint("gray", `(needs: ${needs.join(", ")})`),
              unverified.length > 0 && paint("gray", `(unverified: ${unverified.join(", ")})`),
            ]
              .filter(Boolean)
              .join(" "),
          ]),
        ),
      );
    if (countErrors(loaded.problems) > 0)
      printRemark(
        `${configName(file)} has errors. Plugins that it adds are not listed. Run tollgate check for details.`,
      );
    return EXIT_CODES.ok;
  },
};
