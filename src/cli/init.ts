import { resolve } from "node:path";
import { stringify } from "yaml";
import { defaultText } from "../config/default.ts";
import { nearest } from "../lib/text.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, EXIT } from "./command.ts";
import { builtins, createLoad } from "./loading.ts";
import { paintRemark, remark, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "init [provider…] [options]",
  about:
    "Prints a gateway.yaml to start from: what ships with Tollgate, or the providers that are named, each with what it\n" +
    "takes. A name is that of a provider that comes with Tollgate or of one that is installed beside gateway.yaml.\n" +
    "Secrets come from variables.",
  options: {},
  words: { least: 0, most: 1_000 },
  examples: ["tollgate init > gateway.yaml", "tollgate init anthropic,openai > gateway.yaml"],
  async run(given) {
    const names = given.words.flatMap((word) => word.split(",")).filter(Boolean);
    const text = names.length === 0 ? defaultText() : await starter(names);
    if (given.json) sayJson({ providers: names, text });
    else say(text.trimEnd());
    if (process.stdout.isTTY)
      remark(paintRemark("gray", "\nKeep it: tollgate init … > gateway.yaml, then tollgate check"));
    return EXIT.fine;
  },
};

interface Property {
  readonly description?: string;
  readonly default?: unknown;
  readonly "x-secret"?: boolean;
}
interface Schema {
  readonly properties?: Readonly<Record<string, Property>>;
  readonly required?: readonly string[];
}
interface Provider {
  readonly name: string;
  readonly summary: string;
  readonly credential?: Schema;
  readonly options?: Schema;
}

/** The file that ships, down to its providers, and then the providers that were asked for. */
async function starter(names: readonly string[]): Promise<string> {
  const known = Object.keys(builtins.provider);
  const [modeline, ...rest] = defaultText().split("\n");
  const settings = rest.slice(
    rest.findIndex((line) => line.startsWith("listen:")),
    rest.findIndex((line) => line.startsWith("providers:")),
  );
  const load = createLoad();
  const blocks = await Promise.all(
    [...new Set(names)].map(async (use) => {
      const found = await load(use, "provider", resolve("gateway.yaml"));
      if ("definition" in found) return provider(use, found.definition as Provider);
      const { id, message, hint } = found.problem;
      if (id !== "plugin/not-found")
        return fail("invalid", `${message}.${hint === undefined ? "" : ` ${hint}.`}`);
      const near = nearest(use, known);
      return fail(
        "not_found",
        `There is no provider "${use}" here.${near === undefined ? "" : ` Did you mean "${near}"?`} ` +
          "tollgate list provider names those that come with Tollgate; others are installed with npm first.",
      );
    }),
  );
  return [modeline, "", ...settings, "providers:", blocks.join("\n")].join("\n");
}

/** Options that must be given are read from a variable; the others stand beside them as comments. */
function provider(use: string, of: Provider): string {
  const { summary, credential = {}, options = {} } = of;
  // A package's address or a path is no key: clients write the key before the first / of a model.
  const name = /^[a-z][a-z0-9-]*$/.test(use) ? use : of.name;
  const variable = (key: string) => `${name}_${key}`.toUpperCase().replace(/[^A-Z0-9]/g, "_");
  const needed: string[] = [];
  const fields = [credential, options].flatMap((schema) =>
    Object.entries(schema.properties ?? {}).map(([key, property]) => {
      const about = property.description === undefined ? "" : `  # ${property.description}`;
      const must = (schema.required ?? []).includes(key) || property["x-secret"] === true;
      const always = (schema.required ?? []).includes(key);
      if (always) needed.push(variable(key));
      const value = must
        ? `"\${env:${variable(key)}}"`
        : stringify(property.default ?? null).trim();
      return { always, line: `${key}: ${value}${about}` };
    }),
  );
  const [gate] = needed;
  const lines = [`  ${name}:`, `    use: ${stringify(use).trim()}  # ${summary}`];
  if (gate !== undefined)
    lines.push(`    when: "\${env:${gate}:-}"  # left out while the variable is empty`);
  if (fields.length > 0) {
    lines.push(fields.some(({ always }) => always) ? "    with:" : "    # with:");
    for (const { always, line } of fields) lines.push(`      ${always ? "" : "# "}${line}`);
  }
  return `${lines.join("\n")}\n`;
}
