// Builds the first gateway.yaml of an operator: the default config up to its providers, followed by
// the chosen providers.
import { resolve } from "node:path";
import { stringify } from "yaml";
import { readDefaultConfig } from "../../lib/package-root.ts";
import { didYouMean } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import { builtinPlugins, createPluginLoader } from "../support/load-config.ts";
import { parseDuration } from "../../lib/time/units.ts";

export interface StarterOptions {
  /** Providers by their `use` names. */
  readonly names: readonly string[];
  /** Address of a self-hosted server. */
  readonly server?: string | undefined;
  /** Budget of each new key, in US dollars per month. */
  readonly budget?: string | undefined;
  /** How long ledger rows are kept. */
  readonly retention?: string | undefined;
}

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

/** Builds the text: the default config up to its providers, followed by the chosen providers. */
export async function buildStarterConfig(of: StarterOptions): Promise<string> {
  const { names, budget, retention } = of;
  const known = Object.keys(builtinPlugins.provider);
  const [modeline, ...rest] = readDefaultConfig().split("\n");
  const settings = rest.slice(
    rest.findIndex((line) => line.startsWith("listen:")),
    rest.findIndex((line) => line.startsWith("providers:")),
  );
  const load = createPluginLoader();
  const blocks = await Promise.all(
    [...new Set(names)].map(async (use) => {
      const found = await load(use, "provider", resolve("gateway.yaml"));
      if ("definition" in found) return providerYaml(use, found.definition as Provider);
      const { id, message, hint } = found.problem;
      if (id !== "plugin/not-found")
        return fail("invalid", `${message}.${hint === undefined ? "" : ` ${hint}.`}`);
      return fail(
        "not_found",
        `Unknown provider "${use}".${didYouMean(use, known)} To list the built-in providers, run tollgate list provider. Install other providers with npm first.`,
      );
    }),
  );
  const more = [
    ...(retention === undefined
      ? []
      : [
          `ledger: { retention: ${retention} }                            # older rows are replaced by totals`,
        ]),
    ...(budget === undefined
      ? []
      : [`key_defaults: { limits: [usd=${budget}/month] }  # limit of each new key`]),
  ];
  const own = of.server === undefined ? [] : [ownServerYaml(of.server)];
  return [modeline, "", ...settings, ...more, "providers:", [...blocks, ...own].join("\n")].join(
    "\n",
  );
}

/** Returns the YAML of a self-hosted server that implements chat completions. */
const ownServerYaml = (address: string): string =>
  `  local:\n    use: openai-compatible\n    with: { base_url: ${JSON.stringify(address)} }\n`;

/** Returns for each provider the variables that contain its required options. */
export async function requiredVariables(
  uses: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const load = createPluginLoader();
  const found = await Promise.all(
    uses.map(async (use) => {
      const loaded = await load(use, "provider", resolve("gateway.yaml"));
      if (!("definition" in loaded)) return [use, [] as string[]] as const;
      const { credential = {}, options = {} } = loaded.definition as Provider;
      const needed = [credential, options].flatMap(({ required = [] }) => required);
      return [use, needed.map((key) => variableName(use, key))] as const;
    }),
  );
  return new Map(found);
}

const variableName = (name: string, key: string): string =>
  `${name}_${key}`.toUpperCase().replace(/[^A-Z0-9]/g, "_");

/**
 * Returns the YAML of a provider. Required options are read from variables. The other options are
 * added as comments.
 */
function providerYaml(use: string, of: Provider): string {
  const { summary, credential = {}, options = {} } = of;
  // The name of a package or a path cannot be a key, because clients write the key before the first
  // / of a model.
  const name = /^[a-z][a-z0-9-]*$/.test(use) ? use : of.name;
  const variable = (key: string) => variableName(name, key);
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
    lines.push(`    when: "\${env:${gate}:-}"  # not mounted if the variable is empty`);
  if (fields.length > 0) {
    lines.push(fields.some(({ always }) => always) ? "    with:" : "    # with:");
    for (const { always, line } of fields) lines.push(`      ${always ? "" : "# "}${line}`);
  }
  return `${lines.join("\n")}\n`;
}

// Asks the questions of `tollgate init` at a terminal. Each question has a default for Enter.

interface InterviewOptions {
  /** Providers that ship with Tollgate. */
  readonly builtInProviders: readonly string[];
  /** Providers whose variables are set. */
  readonly detectedProviders: readonly string[];
  ask(question: string): Promise<string>;
  print(text: string): void;
}

export async function askStarterOptions(of: InterviewOptions): Promise<StarterOptions> {
  const { detectedProviders, print } = of;
  print(
    detectedProviders.length === 0
      ? "No provider API key is set in the environment. The config names the variable " +
          "that each provider needs."
      : `Provider API keys are set for: ${detectedProviders.join(", ")}.`,
  );
  const usual = detectedProviders.length > 0 ? detectedProviders : ["demo"];
  const names = await askUntilValid(of, `Which providers? [${usual.join(", ")}] `, (text) => {
    const words = text.split(/[\s,]+/).filter(Boolean);
    const strange = words.find((word) => !of.builtInProviders.includes(word));
    if (strange === undefined) return { value: words.length > 0 ? words : usual };
    return `Unknown provider "${strange}".${didYouMean(strange, of.builtInProviders)} To list all providers, run tollgate list provider.`;
  });
  const server = await askUntilValid(
    of,
    "Base URL of your own server with the chat completions API? [none] ",
    (text) =>
      text === "" || /^https?:$/.test(URL.parse(text)?.protocol ?? "")
        ? { value: text || undefined }
        : "Enter a URL such as http://127.0.0.1:11434/v1.",
  );
  const budget = await askUntilValid(
    of,
    "Monthly budget of a new key, in US dollars? [no limit] ",
    (text) =>
      text === "" || /^\d{1,9}(\.\d{1,9})?$/.test(text)
        ? { value: text || undefined }
        : "Enter an amount such as 50 or 12.50.",
  );
  const retention = await askUntilValid(of, "How long are ledger rows kept? [400d] ", (text) =>
    text === "" || parseDuration(text) !== undefined || text === "forever"
      ? { value: text === "forever" ? undefined : text || "400d" }
      : "Enter a duration such as 90d, or forever.",
  );
  return { names, server, budget, retention };
}

/**
 * Maximum number of times that a question is repeated after an invalid answer. Bounded because the
 * input may not be a terminal.
 */
const MAX_TRIES = 10;

async function askUntilValid<T>(
  { ask, print }: InterviewOptions,
  question: string,
  read: (text: string) => { readonly value: T } | string,
): Promise<T> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const answer = read((await ask(question)).trim());
    if (typeof answer !== "string") return answer.value;
    print(answer);
  }
  throw new Error("Too many invalid answers.");
}
