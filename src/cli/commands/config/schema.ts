import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { editorSchemaText } from "../../../loader/editor-schema.ts";
import { type CliCommand, CONFIG_OPTIONS, EXIT_CODES } from "../../support/command.ts";
import { configFile, loadGatewayConfig, configName } from "../../support/load-config.ts";
import { knownPlugins } from "../../support/plugins.ts";
import { countErrors } from "../../format/problem-report.ts";
import { printRemark, print, printJson } from "../../format/terminal.ts";

const DEFAULT_PATH = "schemas/gateway.schema.json";

export const command: CliCommand = {
  usage: "schema [options]",
  description: `Writes the JSON Schema of gateway.yaml, with the options of every plugin, to ${DEFAULT_PATH}.\nTo use it in an editor, start gateway.yaml with: # yaml-language-server: $schema=./schemas/gateway.schema.json`,
  options: {
    ...CONFIG_OPTIONS,
    out: { short: "o", placeholder: "file", description: "Output file, or - for stdout" },
    check: { description: "Write nothing, and exit with 1 if the file is out of date" },
  },
  examples: ["tollgate schema", "tollgate schema --out - | jq .title"],
  async run(given) {
    const file = configFile(given);
    const loaded = await loadGatewayConfig(file);
    const plugins = await knownPlugins(loaded);
    const text = editorSchemaText(plugins);
    const out = given.getText("out") ?? DEFAULT_PATH;
    if (countErrors(loaded.problems) > 0)
      printRemark(
        `${configName(file)} has errors. The schema does not include the plugins that it adds.`,
      );
    if (given.has("check")) {
      const fresh = (await readFile(out, "utf8").catch(() => "")) === text;
      if (given.json) printJson({ fresh, out });
      else
        print(
          `${out} is ${fresh ? "up to date" : "out of date. Run tollgate schema to update it"}`,
        );
      return fresh ? EXIT_CODES.ok : EXIT_CODES.failed;
    }
    if (out === "-") {
      print(text.trimEnd());
      return EXIT_CODES.ok;
    }
    await mkdir(dirname(out), { recursive: true });
    await writeFile(out, text);
    if (given.json) printJson({ out, plugins: plugins.length });
    else print(`${out}: ${plugins.length} plugins`);
    return EXIT_CODES.ok;
  },
};
