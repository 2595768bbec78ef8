// Sends the requests of `--live` to the provider: to the models that package.json names, with the
// credential from the environment.
import { importTestingKit } from "../support/testing-kit.ts";
import { createFinding, runCheck, type PackageFinding } from "./finding.ts";
import { checkOptionsOf, type PluginCheckOptions, type PluginManifest } from "./manifest.ts";
import type { ExportedPlugin } from "./package-exports.ts";

export async function checkLive(
  { tollgate = {} }: PluginManifest,
  plugins: readonly ExportedPlugin[],
): Promise<PackageFinding[]> {
  const providers = plugins.filter(({ definition }) => definition["~tollgate"] === "provider");
  if (providers.length === 0)
    return [
      createFinding(
        "live: a provider",
        false,
        "the package has no provider, and only providers are tested",
      ),
    ];
  const findings: PackageFinding[] = [];
  for (const plugin of providers)
    findings.push(...(await checkLivePlugin(plugin, checkOptionsOf(plugin, tollgate))));
  return findings;
}

async function checkLivePlugin(
  { definition }: ExportedPlugin,
  { live = [], with: options = {} }: PluginCheckOptions,
): Promise<PackageFinding[]> {
  const { fields, missing } = credentialFromEnv(definition as PluginWithCredential);
  const unpriced = live.some(
    ({ model, price }) =>
      typeof model !== "string" ||
      typeof price?.input !== "number" ||
      typeof price.output !== "number",
  );
  const needed = [
    createFinding(
      `live: ${definition.name}: models`,
      live.length > 0 && !unpriced,
      "package.json must list the models to call and the price of a million tokens: " +
        '"tollgate": { "live": [{ "model": "large-2", "price": { "input": 3, "output": ' +
        "15 } }] }",
    ),
    createFinding(
      `live: ${definition.name}: credential`,
      missing.length === 0,
      `no request was sent: set ${missing.join(", ")} in the environment`,
    ),
  ];
  if (needed.some(({ problem }) => problem !== undefined)) return needed;
  const { liveCheck } = await importTestingKit();
  for (const { model, price, capUsd } of live) {
    const of = { model, price, with: options, credential: fields, ...(capUsd && { capUsd }) };
    needed.push(await runCheck(`live: ${model}`, liveCheck(definition, of)));
  }
  return needed;
}

interface PluginWithCredential {
  readonly name: string;
  readonly credential?: {
    readonly properties?: Readonly<Record<string, unknown>>;
    readonly required?: readonly string[];
  };
}

/**
 * Reads the credential from variables that are named as in the templates: `api_key` of the provider
 * acme is ACME_API_KEY.
 */
function credentialFromEnv({ name, credential = {} }: PluginWithCredential) {
  const named = (field: string) => `${name}_${field}`.replace(/\W/g, "_").toUpperCase();
  const fields: Record<string, string> = {};
  for (const field in credential.properties) {
    const value = process.env[named(field)];
    if (value) fields[field] = value;
  }
  const missing = (credential.required ?? []).filter((field) => !(field in fields)).map(named);
  return { fields, missing };
}
