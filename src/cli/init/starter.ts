// The gateway.yaml that an operator starts from: what ships, down to its providers, and then the providers that were asked for.
import { resolve } from "node:path";
import { stringify } from "yaml";
import { defaultText } from "../../config/default.ts";
import { nearest } from "../../lib/text.ts";
import { fail } from "../../model/error.ts";
import { builtins, createLoad } from "../loading.ts";

export interface Starting {
  /** Providers, as `use:` names them. */
  readonly names: readonly string[];
  /** Of a server of one's own. */
  readonly server?: string | undefined;
  /** Dollars a month, of each new key. */
  readonly budget?: string | undefined;
  /** How long rows of the ledger are kept. */
  readonly keep?: string | undefined;
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

/** The file that ships, down to its providers, and then the providers that were asked for. */
export async function starter(of: Starting): Promise<string> {
  const { names, budget, keep } = of;
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
  const more = [
    ...(keep === undefined
      ? []
      : [`ledger: { keep: ${keep} }                            # then sums stand for rows`]),
    ...(budget === undefined
      ? []
      : [`defaults: { limits: [usd=${budget}/month] }  # of each new key`]),
  ];
  const own = of.server === undefined ? [] : [serverOf(of.server)];
  return [modeline, "", ...settings, ...more, "providers:", [...blocks, ...own].join("\n")].join(
    "\n",
  );
}

/** A server of the operator's own that speaks chat completions. */
const serverOf = (address: string): string =>
  `  local:\n    use: openai-compatible\n    with: { base_url: ${JSON.stringify(address)} }\n`;

/** By name, the variables that hold what a provider must be given. */
export async function variablesOf(
  uses: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const load = createLoad();
  const found = await Promise.all(
    uses.map(async (use) => {
      const loaded = await load(use, "provider", resolve("gateway.yaml"));
      if (!("definition" in loaded)) return [use, [] as string[]] as const;
      const { credential = {}, options = {} } = loaded.definition as Provider;
      const needed = [credential, options].flatMap(({ required = [] }) => required);
      return [use, needed.map((key) => variableOf(use, key))] as const;
    }),
  );
  return new Map(found);
}

const variableOf = (name: string, key: string): string =>
  `${name}_${key}`.toUpperCase().replace(/[^A-Z0-9]/g, "_");

/** Options that must be given are read from a variable; the others stand beside them as comments. */
function provider(use: string, of: Provider): string {
  const { summary, credential = {}, options = {} } = of;
  // A package's address or a path is no key: clients write the key before the first / of a model.
  const name = /^[a-z][a-z0-9-]*$/.test(use) ? use : of.name;
  const variable = (key: string) => variableOf(name, key);
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
