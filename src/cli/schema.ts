import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { editorSchemaText } from "../loader/schema.ts";
import { type CliCommand, CONFIG, EXIT } from "./command.ts";
import { configFile, load, nameOf } from "./loading.ts";
import { knownPlugins } from "./plugins.ts";
import { errorsIn } from "./report.ts";
import { remark, say, sayJson } from "./terminal.ts";

const PLACE = "schemas/gateway.schema.json";

export const command: CliCommand = {
  usage: "schema [options]",
  about:
    `Writes the JSON Schema of gateway.yaml, with the options of every plugin, to ${PLACE}.\n` +
    "Editors read it by the first line of the file: # yaml-language-server: $schema=./schemas/gateway.schema.json",
  options: {
    ...CONFIG,
    out: { short: "o", value: "file", about: "write there; - is stdout" },
    check: { about: "write nothing; exit with 1 when what is there is stale" },
  },
  examples: ["tollgate schema", "tollgate schema --out - | jq .title"],
  async run(given) {
    const file = configFile(given);
    const loaded = await load(file);
    const plugins = await knownPlugins(loaded);
    const text = editorSchemaText(plugins);
    const out = given.text("out") ?? PLACE;
    if (errorsIn(loaded.problems) > 0)
      remark(`${nameOf(file)} has errors: the plugins that it brings are not in the schema.`);
    if (given.has("check")) {
      const fresh = (await readFile(out, "utf8").catch(() => "")) === text;
      if (given.json) sayJson({ fresh, out });
      else say(`${out} is ${fresh ? "up to date" : "stale: run tollgate schema"}`);
      return fresh ? EXIT.fine : EXIT.failed;
    }
    if (out === "-") {
      say(text.trimEnd());
      return EXIT.fine;
    }
    await mkdir(dirname(out), { recursive: true });
    await writeFile(out, text);
    if (given.json) sayJson({ out, plugins: plugins.length });
    else say(`${out}: ${plugins.length} plugins`);
    return EXIT.fine;
  },
};
