// What `--live` asks of the provider itself: the models that package.json names, with the key that the environment has.
import { kit } from "../kit.ts";
import { finding, findingOf, type PackageFinding } from "./finding.ts";
import { mountingOf, type Mounting, type PluginManifest } from "./manifest.ts";
import type { ExportedPlugin } from "./plugins.ts";

export async function liveFindings(
  { tollgate = {} }: PluginManifest,
  plugins: readonly ExportedPlugin[],
): Promise<PackageFinding[]> {
  const providers = plugins.filter(({ definition }) => definition["~tollgate"] === "provider");
  if (providers.length === 0)
    return [finding("live: a provider", false, "it has no provider, and nothing else is asked")];
  const findings: PackageFinding[] = [];
  for (const plugin of providers)
    findings.push(...(await asked(plugin, mountingOf(plugin, tollgate))));
  return findings;
}

async function asked(
  { definition }: ExportedPlugin,
  { live = [], with: options = {} }: Mounting,
): Promise<PackageFinding[]> {
  const { fields, missing } = credentialOf(definition as Keyed);
  const unpriced = live.some(
    ({ model, price }) =>
      typeof model !== "string" ||
      typeof price?.input !== "number" ||
      typeof price.output !== "number",
  );
  const needed = [
    finding(
      `live: ${definition.name}: models`,
      live.length > 0 && !unpriced,
      'package.json has to say what is asked and what a million tokens cost: "tollgate": { "live": [{ "model": "large-2", "price": { "input": 3, "output": 15 } }] }',
    ),
    finding(
      `live: ${definition.name}: credential`,
      missing.length === 0,
      `nothing was asked: set ${missing.join(", ")} in the environment`,
    ),
  ];
  if (needed.some(({ wrong }) => wrong !== undefined)) return needed;
  const { liveCheck } = await kit();
  for (const { model, price, capUsd } of live) {
    const of = { model, price, with: options, credential: fields, ...(capUsd && { capUsd }) };
    needed.push(await findingOf(`live: ${model}`, liveCheck(definition, of)));
  }
  return needed;
}

interface Keyed {
  readonly name: string;
  readonly credential?: {
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[];
  };
}

/** `api_key` of the provider acme is ACME_API_KEY, as the templates write it. */
function credentialOf({ name, credential = {} }: Keyed) {
  const named = (field: string) => `${name}_${field}`.replace(/\W/g, "_").toUpperCase();
  const fields: Record<string, string> = {};
  for (const field in credential.properties) {
    const value = process.env[named(field)];
    if (value) fields[field] = value;
  }
  const missing = (credential.required ?? []).filter((field) => !(field in fields)).map(named);
  return { fields, missing };
}
